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
from reader_tuning.wide import LEXICON, value_first

_SUBJECTS, _ONE_RELATION = (3, 5), 0.6
"""How many subjects; share of the contexts that tell one thing of each, the others telling two."""
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
    """Draws contexts of a few facts told with the value first."""

    def draw(self, rng: random.Random) -> Context:
        """Return a context."""
        return _draw(rng)

    def validation(self) -> Mapping[str, Iterable[Context]]:
        """Facts about names that are never trained on."""
        rng = random.Random(77)
        return {"value-first": [_draw(rng, held=True) for _ in range(_VALIDATION)]}


def _draw(rng: random.Random, held: bool = False) -> Context:
    world = World(rng, _LEVEL, held, VALUE_FIRST)
    relations = 1 if rng.random() < _ONE_RELATION else 2
    facts = world.table(rng.choice(VALUE_FIRST.kinds), rng.randint(*_SUBJECTS), relations, {})
    world.tell_plainly(facts)
    return ask_some(rng, world.finish([world.ask(fact) for fact in facts]))
