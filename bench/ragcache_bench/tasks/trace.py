"""Repeat traffic: the same chunks come back in other company and other orders, the popular ones most."""

from dataclasses import dataclass
from random import Random
from typing import ClassVar

from ragcache_bench.questions.families.lookups import facts, needles
from ragcache_bench.questions.level import Level
from ragcache_bench.questions.worlds import World
from ragcache_bench.tasks.example import Example


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
        world = World(rng, Level(forms=9, filler=0.4, alike=0.1, least=26), held=True)
        while world.size < self.pool:
            rng.choice((facts, facts, needles))(world)
        context = world.finish([world.ask(fact) for fact in world.facts])
        popular = {i: 1 / (rank + 1) ** self.skew for rank, i in enumerate(rng.sample(range(world.size), world.size))}
        out = []
        for i in range(n):
            question = rng.choices(context.questions, [popular[q.gold[0]] for q in context.questions])[0]
            order = _drawn(rng, popular, question.gold, self.chunks)
            gold = tuple(order.index(g) for g in question.gold)
            texts = tuple(context.chunks[j] for j in order)
            out.append(Example(f"trace-{seed}-{i}", "trace", texts, question.text, (question.answer,), gold))
        return out


def _drawn(rng: Random, popular: dict[int, float], gold: list[int], size: int) -> list[int]:
    """`gold` and popular others, in any order."""
    kept = list(gold)
    while len(kept) < size:
        found = rng.choices(list(popular), list(popular.values()))[0]
        if found not in kept:
            kept.append(found)
    rng.shuffle(kept)
    return kept
