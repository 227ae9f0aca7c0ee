"""`python -m reader_tuning.difference READER --out DIR`: what a reader has over the tuned SmolLM2, as an adapter."""

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
    parser.add_argument("reader", type=Path, help="folder of a reader")
    parser.add_argument("--rank", type=int, default=12, help="of the adapter")
    parser.add_argument("--out", type=Path, required=True, help="folder for the adapter")
    given = parser.parse_args()
    tuned = smollm2.prepare_checkpoint(bundled.adapter_path())
    Adapter.between(_weights(tuned), _weights(given.reader), given.rank).save(given.out, "smollm2-tuned")


def _weights(folder: Path) -> dict[str, torch.Tensor]:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return dict(model.named_parameters())


if __name__ == "__main__":
    main()
