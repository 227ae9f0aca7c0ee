"""`python -m reader_tuning.average READER READER --out DIR`: the mean of readers' weights, tuned from one another.

Two that are each better at something are often both in one, without being asked longer (model soups, 2203.05482).
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import PreTrainedModel

from reader_tuning.readers import load_reader


def main() -> None:
    """Parse the command line, and write a reader's folder."""
    parser = argparse.ArgumentParser(prog="python -m reader_tuning.average", description=__doc__)
    parser.add_argument("readers", type=Path, nargs="+", help="folders of readers of one shape")
    parser.add_argument("--out", type=Path, required=True, help="folder for the reader")
    given = parser.parse_args()
    loaded = [load_reader(folder) for folder in given.readers]
    average([model for model, _ in loaded]).save_pretrained(given.out)
    loaded[0][1].save_pretrained(given.out)


@torch.no_grad()
def average(models: Sequence[PreTrainedModel]) -> PreTrainedModel:
    """Return the first model with the mean of all their weights, computed in float32."""
    others = [dict(model.named_parameters()) for model in models]
    for name, weight in models[0].named_parameters():
        weight.copy_(torch.stack([of[name].float() for of in others]).mean(0))
    return models[0]


if __name__ == "__main__":
    main()
