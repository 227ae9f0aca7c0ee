"""`python -m reader_tuning --data FOLDER --out DIR`: tune SmolLM2-135M-Instruct to read several passages."""

import argparse
from pathlib import Path

import torch
from reader_training.passages import load, write_examined

from ragcache.model import smollm2
from reader_tuning.tuner import Settings, Tuner

BASE = "HuggingFaceTB/SmolLM2-135M-Instruct"


def main() -> None:
    """Parse the command line and tune."""
    parser = argparse.ArgumentParser(prog="python -m reader_tuning", description="Tune SmolLM2 by LoRA.")
    parser.add_argument("--data", type=Path, required=True, help="folder of the public files, see docs/reader.md")
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoints, log and the adapter/")
    parser.add_argument("--steps", type=int, default=Settings.steps)
    parser.add_argument("--rate", type=float, default=Settings.rate, help="learning rate")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only-write", action="store_true", help="write the examined questions, and tune nothing")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    material = load(given.data)
    write_examined(material, given.out / "examined")
    if not given.only_write:
        settings = Settings(steps=given.steps, rate=given.rate)
        Tuner(given.out, smollm2.prepare_checkpoint(), BASE, material, settings).run()


if __name__ == "__main__":
    main()
