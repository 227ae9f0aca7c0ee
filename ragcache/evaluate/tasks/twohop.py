"""Two facts in two chunks: `Where is the project that Mara Voss leads based?`"""

import random
from dataclasses import dataclass

from ragcache.evaluate.tasks.example import Example, collect
from ragcache.train.worlds import Context, Level, make_context


@dataclass(frozen=True)
class TwoHop:
    """Two-hop questions with held-out names.

    Attributes
    ----------
    chunks : int
        Chunks per question.
    filler : float
        Share of idle sentences around the facts.
    """

    chunks: int = 8
    filler: float = 0.4

    def examples(self, n: int, seed: int = 0) -> list[Example]:
        """Return `n` examples, the same for the same `seed`."""
        return collect("twohop", n, seed, self.chunks, "twohop", self._context)

    def _context(self, rng: random.Random) -> Context:
        level = Level(entities=(4, 6), relations=(1, 3), groups=3, forms=9, filler=self.filler, twohop=1.0)
        return make_context(rng, level, held=True)
