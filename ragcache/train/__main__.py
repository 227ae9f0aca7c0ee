"""`python -m ragcache.train --out DIR`: train the bundled reader from nothing."""

import argparse
from pathlib import Path

import torch

from ragcache.train.trainer import Settings, Trainer


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(prog="python -m ragcache.train", description="Train the bundled reader.")
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoints, log and the final reader/")
    parser.add_argument("--minutes", type=float, default=Settings.minutes, help="wall clock")
    parser.add_argument("--threads", type=int, default=1, help="two are 1.7 times as fast where two cores are free")
    parser.add_argument("--smoke", action="store_true", help="six seconds, to see that everything runs")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    Trainer(given.out, Settings(minutes=0.1 if given.smoke else given.minutes)).run()


if __name__ == "__main__":
    main()
