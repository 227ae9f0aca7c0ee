"""`python -m auxiliary_tuning --out DIR`: tune the built-in test model's sibling to choose tokens for it."""

import argparse
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from auxiliary_tuning.tuner import Settings, Tuner
from ragcache import bundled


def main() -> None:
    """Parse the command line and tune."""
    parser = argparse.ArgumentParser(prog="python -m auxiliary_tuning", description="Tune an auxiliary to choose.")
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoints, log and the adapter/")
    parser.add_argument("--steps", type=int, default=Settings.steps)
    parser.add_argument("--rate", type=float, default=Settings.rate, help="learning rate")
    parser.add_argument("--rank", type=int, default=Settings.rank, help="of the adapter")
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    settings = Settings(steps=given.steps, rate=given.rate, rank=given.rank, seed=given.seed)
    auxiliary, primary = _model(bundled.sibling_path()), _model(bundled.reader_path())
    tokenizer = AutoTokenizer.from_pretrained(bundled.reader_path())
    Tuner(given.out, auxiliary, primary, tokenizer, settings, "sibling").run()


def _model(folder: Path) -> PreTrainedModel:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    return model.eval()


if __name__ == "__main__":
    main()
