"""`python -m reader_training --out DIR`: train the bundled reader from nothing."""

import argparse
from pathlib import Path

import torch

from reader_training.trainer import Settings, Trainer


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(prog="python -m reader_training", description="Train the bundled reader.")
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoints, log and the final reader/")
    parser.add_argument("--minutes", type=float, default=Settings.minutes, help="wall clock")
    parser.add_argument("--threads", type=int, default=1, help="two are 1.7 times as fast where two cores are free")
    parser.add_argument("--start", type=Path, help="a trained reader to go on from, instead of from nothing")
    parser.add_argument("--level", type=int, default=Settings.level, help="where in the curriculum, with --start")
    parser.add_argument("--layers", type=int, default=Settings.layers, help="with --start, of its layers")
    parser.add_argument("--rate", type=float, default=Settings.rate, help="learning rate")
    parser.add_argument("--blocked", type=float, default=0.0, help="see `Questions`; of the control")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default=Settings.dtype, help="of the arithmetic")
    parser.add_argument("--smoke", action="store_true", help="six seconds, to see that everything runs")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    settings = Settings(
        minutes=0.1 if given.smoke else given.minutes, rate=given.rate, layers=given.layers, blocked=given.blocked,
        start=given.start, level=given.level, dtype=given.dtype,
    )  # fmt: skip
    Trainer(given.out, settings).run()


if __name__ == "__main__":
    main()
