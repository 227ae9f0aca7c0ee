"""Questions as rows of `ragcache finetune`: to train on and to draw its curve from, none of an examined article."""

import json
import random
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from reader_tuning.contexts import MOST, Context, Contexts, shortest, validation_contexts
from reader_tuning.passages import Material, Part

PASSAGES = 5
"""Of each context: as many as the examined questions are asked with."""


def write_rows(material: Material, folder: Path, count: int, seed: int) -> None:
    """Write `training.jsonl`, of so many drawn contexts, and `validation.jsonl`.

    Each line is a question, its answers, the one to be said first, and the passages of its context; the questions of
    one context follow each other.
    """
    part = material.validation
    held = (Part(articles=part.articles), Part(single=part.single))
    _write(folder / "training.jsonl", islice(_drawn(material, seed), count))
    _write(folder / "validation.jsonl", (one for of in held for one in validation_contexts(of, PASSAGES)))


def _drawn(material: Material, seed: int) -> Iterator[Context]:
    contexts, rng = Contexts(material, worlds=False, counts=(PASSAGES,)), random.Random(f"rows {seed}")
    while True:
        context = contexts.draw(rng)
        if context.asked and len(context.passages) == PASSAGES:
            yield context


def _write(file: Path, contexts: Iterable[Context]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) for context in contexts for row in _rows(context))
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _rows(context: Context) -> Iterator[dict[str, object]]:
    for question, answers in context.asked[:MOST]:
        first = shortest(answers)
        ordered = [first, *(answer for answer in answers if answer != first)]
        yield {"question": question, "answers": ordered, "chunks": list(context.passages)}
