"""Facts told with the value first, and nothing else: by itself this look-up is learnt in minutes, in a mix it was not.

"Ismail P. Ebbdobach teaches Course NA94": asked who teaches the course, a reader has to find what stands before a name.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ragcache_bench.questions.lexicon import Lexicon
from ragcache_bench.questions.relations import Relation
from ragcache_bench.questions.worlds import World

from reader_tuning.contexts import Context
from reader_tuning.notes import LEVEL, ask_some
from reader_tuning.tuner import Source
from reader_tuning.wide import LEXICON, value_first

_SUBJECTS = (3, 5)
_FILLER = 0.3
"""Of half of the contexts that tell more than two things of each subject; the others tell nothing else."""
_VALIDATION = 4
"""Contexts that the curve is drawn from."""


def _only_value_first(relations: Mapping[str, Iterable[Relation]]) -> Mapping[str, tuple[Relation, ...]]:
    """The relations that can be told so, in those wordings alone."""
    kept = {kind: [(row, value_first(row)) for row in rows] for kind, rows in relations.items()}
    return {kind: tuple(replace(row, says=ways) for row, ways in rows if ways) for kind, rows in kept.items()}


_RELATIONS = _only_value_first(LEXICON.relations)
VALUE_FIRST: Lexicon = replace(
    LEXICON, relations=_RELATIONS, kinds=tuple(kind for kind in LEXICON.kinds if _RELATIONS[kind]), invented=0.0
)
"""The wide lexicon's wordings whose value stands before the subject."""
_LEVEL = replace(LEVEL, filler=0.0, titled=0.0, alike=0.0, least=0)


class ValueFirst:
    """Draws contexts of a few facts told with the value first, among others.

    Parameters
    ----------
    others : Source
        Draws the others.
    share : float
        Share of the contexts that are drawn here; 1 leaves others out.
    relations : int
        Most that is told of each subject. With one or two a name is often told of once, and its relation need not be
        looked at.
    """

    def __init__(self, others: Source, share: float = 1.0, relations: int = 2) -> None:
        self._others, self._share, self._relations = others, share, relations

    def __str__(self) -> str:
        return f"{self._others}, {self._share:.0%} value first with up to {self._relations} relations"

    def draw(self, rng: random.Random) -> Context:
        """Return a context."""
        return self._facts(rng) if rng.random() < self._share else self._others.draw(rng)

    def validation(self) -> Mapping[str, Iterable[Context]]:
        """Facts about names that are never trained on, and what the others are examined by."""
        rng = random.Random(77)
        own = {"value-first": [self._facts(rng, held=True) for _ in range(_VALIDATION)]}
        return own if self._share == 1 else {**own, **self._others.validation()}

    def _facts(self, rng: random.Random, held: bool = False) -> Context:
        relations = rng.randint(1, self._relations)
        level = replace(_LEVEL, filler=_FILLER) if relations > 2 and rng.random() < 0.5 else _LEVEL
        world = World(rng, level, held, VALUE_FIRST)
        facts = world.table(rng.choice(VALUE_FIRST.kinds), rng.randint(*_SUBJECTS), relations, {})
        world.tell_plainly(facts)
        return ask_some(rng, world.finish([world.ask(fact) for fact in facts]))
