"""One fact, stated in full in one chunk among others: nothing is lost by computing the chunks alone."""

import random
from dataclasses import dataclass

from ragcache.evaluate.tasks.example import Example, collect
from ragcache.train.worlds import Context, Level, make_context


@dataclass(frozen=True)
class Facts:
    """One-hop look-up with held-out names, three in ten questions in unseen phrasings.

    Attributes
    ----------
    chunks : int
        Chunks per question; those that are not needed hold facts about other subjects.
    filler : float
        Share of idle sentences around the facts.
    """

    chunks: int = 8
    filler: float = 0.4

    def examples(self, n: int, seed: int = 0) -> list[Example]:
        """Return `n` examples, the same for the same `seed`."""
        return collect("facts", n, seed, self.chunks, "fact", self._context)

    def _context(self, rng: random.Random) -> Context:
        return make_context(
            rng, Level(entities=(4, 6), relations=(1, 3), groups=4, forms=9, filler=self.filler), held=True
        )
