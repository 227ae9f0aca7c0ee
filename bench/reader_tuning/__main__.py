"""`python -m reader_tuning --data FOLDER --out DIR`: tune SmolLM2-135M-Instruct to read several passages."""

import argparse
import random
from pathlib import Path

import torch

from ragcache import bundled
from ragcache.model import smollm2
from reader_tuning.adapter import Adapter
from reader_tuning.contexts import Contexts
from reader_tuning.facts import WORDINGS, Facts
from reader_tuning.mixture import Mixture
from reader_tuning.notes import Notes
from reader_tuning.passages import load, write_part
from reader_tuning.readers import load_reader
from reader_tuning.row_files import write_rows
from reader_tuning.rows import Layout
from reader_tuning.shapes import SHAPES, reshape
from reader_tuning.tuner import Settings, Source, Tuner

BASE = "HuggingFaceTB/SmolLM2-135M-Instruct"
_RANK, _SHAPE_RANK, _ALPHA = 12, 32, 24.0
"""Of the adapter, which takes 7.4 MB in bf16; of what readers of other shapes are tuned by; of both: a rate that suits
one rank suits another."""
_EVERY = 50
"""Steps between two checkpoints of a reader of another shape."""
_SAMPLE = 4
"""Contexts by which the size of queries and keys is measured."""


def main() -> None:
    """Parse the command line and tune."""
    parser = argparse.ArgumentParser(prog="python -m reader_tuning", description="Tune SmolLM2 to read passages.")
    parser.add_argument("--data", type=Path, required=True, help="folder of the public files, see docs/reader.md")
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoints, log and what is tuned")
    parser.add_argument("--shape", choices=list(SHAPES), help="tune the tuned model on invented notes, in this shape")
    parser.add_argument(
        "--start", type=Path, help="with --shape: a reader, or an adapter of the tuned model, to go on from"
    )
    parser.add_argument("--facts", choices=list(WORDINGS), help="with --shape: plain facts, told so")
    parser.add_argument(
        "--share", type=float, help="with --facts: share of the contexts that tell them; all by default"
    )
    parser.add_argument("--relations", type=int, nargs=2, help="with --facts: fewest and most told of each subject")
    parser.add_argument("--steps", type=int, default=Settings.steps)
    parser.add_argument("--rate", type=float, default=Settings.rate, help="learning rate")
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--batch", type=int, default=Settings.contexts, help="contexts a step")
    parser.add_argument("--every", type=int, help="steps between two checkpoints")
    parser.add_argument("--threads", type=int, default=1, help="contexts read side by side, one on a core")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--only-write", action="store_true", help="write the questions kept apart, and tune nothing")
    parser.add_argument("--contexts", type=int, default=600, help="with --only-write: contexts to train on elsewhere")
    given = parser.parse_args()
    if (given.start or given.facts) and not given.shape:
        parser.error("--start and --facts go with --shape; name one")
    if (given.share is not None or given.relations) and not given.facts:
        parser.error("--share and --relations are of plain facts; say how they are told with --facts")
    torch.set_num_threads(1)  # of each worker
    material = load(given.data)
    every = given.every or (_EVERY if given.shape else Settings.every)
    settings = Settings(
        steps=given.steps, contexts=given.batch, rate=given.rate, seed=given.seed, every=every,
        warm_up=min(Settings.warm_up, max(1, given.steps // 10)),
    )  # fmt: skip
    if given.only_write:
        write_part(material.examined, given.out / "examined")
        write_part(material.validation, given.out / "validation")
        write_rows(material, given.out, given.contexts, given.seed)
    elif given.shape:
        start = given.start or smollm2.prepare_checkpoint(bundled.adapter_path())
        notes: Source = Notes(Contexts(material, worlds=False))
        if given.facts:
            facts = Facts(given.facts, tuple(given.relations)) if given.relations else Facts(given.facts)
            notes = Mixture(facts, notes, given.share) if given.share is not None else facts
        tune_shape(given.out, given.shape, start, notes, settings, given.device, given.threads)
    else:
        model, tokenizer = load_reader(smollm2.prepare_checkpoint())
        model.to(given.device)
        adapter = Adapter.new(dict(model.named_parameters()), _RANK, _ALPHA, settings.seed)
        Tuner(given.out, model, tokenizer, Contexts(material), adapter, settings, BASE, given.threads).run()
        adapter.save(given.out / "adapter", BASE)


def tune_shape(
    out: Path, name: str, start: Path, notes: Source, settings: Settings, device: str = "cpu", workers: int = 1
) -> None:
    """Tune a reader of another shape on notes, and write it to the folder's `reader/`."""
    model, tokenizer = load_reader(start)
    layout, rng = Layout(tokenizer), random.Random(0)
    sample = [torch.tensor([layout.row(rng, notes.draw(rng)).ids]) for _ in range(_SAMPLE)]
    made = reshape(model, SHAPES[name], sample).to(device)
    adapter = Adapter.new(dict(made.named_parameters()), _SHAPE_RANK, _ALPHA, settings.seed)
    base = f"{name} of {start}, on {notes}"
    tuner = Tuner(out, made, tokenizer, notes, adapter, settings, base, workers)
    tuner.run()
    tuner.export(out / "reader")


if __name__ == "__main__":
    main()
