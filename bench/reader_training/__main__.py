"""`python -m reader_training --out DIR`: train a small reader from nothing."""

import argparse
from pathlib import Path

import torch

from ragcache.model import smollm2
from ragcache.model.checkpoint import SMOLLM2
from reader_training.model import SHAPES
from reader_training.trainer import Settings, Trainer


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(prog="python -m reader_training", description="Train a small reader.")
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoints, log and the final reader/")
    parser.add_argument("--minutes", type=float, default=Settings.minutes, help="wall clock")
    parser.add_argument("--threads", type=int, default=1, help="two are 1.7 times as fast where two cores are free")
    parser.add_argument("--start", type=Path, help="a trained reader to go on from, instead of from nothing")
    parser.add_argument("--level", type=int, default=Settings.level, help="where in the curriculum, with --start")
    parser.add_argument("--layers", type=int, help="with --start, of its layers")
    parser.add_argument("--shape", choices=list(SHAPES), default=Settings.shape)
    parser.add_argument("--vocabulary", type=int, default=Settings.vocabulary, help="tokens")
    parser.add_argument("--wide", action="store_true", help="many wordings and names, see reader_training.language")
    parser.add_argument("--words", help="smollm2, or a checkpoint's folder: token vectors that the reader's start as")
    parser.add_argument("--public", type=Path, help="folder of public questions, a tenth of what is read")
    parser.add_argument("--whole", action="store_true", help="never a chunk on its own, see `Questions`")
    parser.add_argument("--rate", type=float, default=Settings.rate, help="learning rate")
    parser.add_argument("--blocked", type=float, default=0.0, help="see `Questions`; of the control")
    parser.add_argument("--smoke", action="store_true", help="six seconds, to see that everything runs")
    given = parser.parse_args()
    if given.public and not given.wide:
        parser.error("--public is read in wide notes only; add --wide")
    torch.set_num_threads(given.threads)
    settings = Settings(
        minutes=0.1 if given.smoke else given.minutes, rate=given.rate, layers=given.layers, blocked=given.blocked,
        start=given.start, level=given.level, shape=given.shape, vocabulary=given.vocabulary, wide=given.wide,
        words=_checkpoint(given.words), public=given.public, whole=given.whole,
    )  # fmt: skip
    Trainer(given.out, settings).run()


def _checkpoint(name: str | None) -> Path | None:
    """The folder that `--words` names."""
    if name is None:
        return None
    return smollm2.prepare_checkpoint() if name == SMOLLM2 else Path(name)


if __name__ == "__main__":
    main()
