"""Repeat traffic: the same chunks come back in other company and other orders, the popular ones most."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import ClassVar

from ragcache_bench.questions.families.bindings import labels, pronouns, sections
from ragcache_bench.questions.families.lookups import facts, needles
from ragcache_bench.questions.level import Level
from ragcache_bench.questions.worlds import Question, World
from ragcache_bench.tasks.example import Example

_LEVEL = Level(forms=9, filler=0.4, alike=0.1, least=26)


@dataclass(frozen=True)
class Trace:
    """One pool of self-contained chunks; every question draws its own few, in its own order.

    Attributes
    ----------
    pool : int
        Chunks in the pool, at least.
    chunks : int
        Chunks per question, the one with the answer among them.
    skew : float
        Exponent of the popularity by rank (Zipf).
    """

    pool: int = 60
    chunks: int = 10
    skew: float = 1.0
    needs: ClassVar[bool] = False

    def examples(self, n: int, seed: int = 0) -> list[Example]:
        """Return `n` examples over one pool, the same for the same `seed`."""
        rng = Random(f"trace {seed}")
        world = World(rng, _LEVEL, held=True)
        while world.size < self.pool:
            rng.choice((facts, facts, needles))(world)
        context = world.finish([world.ask(fact) for fact in world.facts])
        popular = _popularity(rng, range(world.size), self.skew)
        out = []
        for i in range(n):
            question = rng.choices(context.questions, [popular[q.gold[0]] for q in context.questions])[0]
            order = _drawn(rng, popular, question.gold, self.chunks)
            gold = tuple(order.index(g) for g in question.gold)
            texts = tuple(context.chunks[j] for j in order)
            out.append(Example(f"trace-{seed}-{i}", "trace", texts, question.text, (question.answer,), gold))
        return out


@dataclass(frozen=True)
class BoundTrace:
    """The same of chunks that need another: a fact, and the header that says whose it is, which comes right before it.

    Attributes
    ----------
    pool : int
        Chunks in the pool, at least.
    facts : int
        Facts of a prompt, the one that is asked for among them; those under one header share it.
    skew : float
        Exponent of the popularity of facts by rank (Zipf).
    """

    pool: int = 200
    facts: int = 6
    skew: float = 1.0
    needs: ClassVar[bool] = True

    def examples(self, n: int, seed: int = 0) -> list[Example]:
        """Return `n` examples over one pool, the same for the same `seed`."""
        rng = Random(f"bound trace {seed}")
        world = World(rng, replace(_LEVEL, relations=(1, 2), interleaved=0.0), held=True)
        while world.size < self.pool:
            rng.choice((sections, pronouns, labels))(world, False)
        context = world.finish([world.ask(fact) for fact in world.facts])
        asked = {question.gold[-1]: question for question in context.questions if len(question.gold) == 2}
        popular = _popularity(rng, sorted(asked), self.skew)
        out = []
        for i in range(n):
            question = asked[rng.choices(list(popular), list(popular.values()))[0]]
            order = _grouped(rng, [asked[fact] for fact in _drawn(rng, popular, question.gold[-1:], self.facts)])
            gold = tuple(order.index(g) for g in question.gold)
            texts = tuple(context.chunks[j] for j in order)
            out.append(Example(f"bound-{seed}-{i}", "bound trace", texts, question.text, (question.answer,), gold))
        return out


def _popularity(rng: Random, items: Sequence[int], skew: float) -> dict[int, float]:
    """Weights by rank, in an order that is drawn."""
    return {item: 1 / (rank + 1) ** skew for rank, item in enumerate(rng.sample(items, len(items)))}


def _grouped(rng: Random, questions: Sequence[Question]) -> list[int]:
    """Each header once, with its facts right behind it in their document's order; headers in any order."""
    groups: dict[int, list[int]] = {}
    for question in questions:
        groups.setdefault(question.gold[0], []).append(question.gold[-1])
    headers = rng.sample(list(groups), len(groups))
    return [chunk for header in headers for chunk in (header, *sorted(groups[header]))]


def _drawn(rng: Random, popular: dict[int, float], gold: list[int], size: int) -> list[int]:
    """`gold` and popular others, in any order."""
    kept = list(gold)
    while len(kept) < size:
        found = rng.choices(list(popular), list(popular.values()))[0]
        if found not in kept:
            kept.append(found)
    rng.shuffle(kept)
    return kept
