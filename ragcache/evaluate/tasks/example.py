"""What a benchmark question is, and how to cut one out of a generated context."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from ragcache.train.worlds import Context, Question


@dataclass(frozen=True)
class Example:
    """One question over given chunks.

    Attributes
    ----------
    id : str
        The same for the same task, seed and number; a twin shares the number of its original.
    task : str
        The task's name.
    chunks : tuple of str
        In reading order.
    question : str
        One sentence.
    answers : tuple of str
        Accepted answers; the last is what the bundled reader is trained to say. A two-hop question also accepts the
        name in the middle before the answer, "Mara Voss: Oslo".
    gold : tuple of int
        Indices of the chunks needed.
    """

    id: str
    task: str
    chunks: tuple[str, ...]
    question: str
    answers: tuple[str, ...]
    gold: tuple[int, ...]


def collect(
    task: str, n: int, seed: int, size: int, family: str, draw: Callable[[random.Random], Context]
) -> list[Example]:
    """Return `n` examples, each one question of `family` from a fresh context, with exactly `size` chunks."""
    out: list[Example] = []
    attempt = 0
    while len(out) < n:
        rng = random.Random(f"{task} {seed} {attempt}")
        attempt += 1
        context = draw(rng)
        fitting = [q for q in context.questions if q.family == family and len(q.gold) <= size]
        if fitting and len(context.chunks) >= size:
            out.append(_trimmed(rng, task, f"{task}-{seed}-{len(out)}", context, rng.choice(fitting), size))
    return out


def _trimmed(rng: random.Random, task: str, name: str, context: Context, question: Question, size: int) -> Example:
    others = [i for i in range(len(context.chunks)) if i not in question.gold]
    kept = sorted([*question.gold, *rng.sample(others, size - len(question.gold))])
    return Example(
        name, task, tuple(context.chunks[i] for i in kept), question.text,
        tuple(dict.fromkeys((question.answer, question.reply))), tuple(kept.index(i) for i in question.gold),
    )  # fmt: skip
