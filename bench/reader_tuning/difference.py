"""`python -m reader_tuning.difference READER --out DIR`: what leads from one model to another, as an adapter."""

import argparse
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from ragcache import bundled
from ragcache.model import smollm2
from reader_tuning.adapter import Adapter


def main() -> None:
    """Parse the command line, and write the adapter."""
    parser = argparse.ArgumentParser(prog="python -m reader_tuning.difference", description=__doc__)
    parser.add_argument("after", type=Path, help="folder of a reader")
    parser.add_argument("--before", type=Path, help="folder of what it was made of; else the tuned SmolLM2")
    parser.add_argument("--rank", type=int, default=12, help="of the adapter")
    parser.add_argument("--out", type=Path, required=True, help="folder for the adapter")
    given = parser.parse_args()
    before = given.before or smollm2.prepare_checkpoint(bundled.adapter_path())
    weights = [_weights(path) for path in (before, given.after)]
    made = Adapter.between(weights[0], weights[1], given.rank)
    made.save(given.out, given.before.name if given.before else "smollm2-tuned")


def _weights(folder: Path) -> dict[str, torch.Tensor]:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return dict(model.named_parameters())


if __name__ == "__main__":
    main()
