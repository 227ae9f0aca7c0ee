"""Plain facts and nothing else: by itself a look-up is learnt in minutes that a million tokens of a mix did not teach.

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

_LEVEL = replace(LEVEL, filler=0.0, titled=0.0, alike=0.0, least=0)
_SUBJECTS = (3, 5)
_VALIDATION = 5
"""Contexts that the curve is drawn from."""


def _only_value_first(relations: Mapping[str, Iterable[Relation]]) -> Mapping[str, tuple[Relation, ...]]:
    """The relations that can be told so, in those wordings alone."""
    kept = {kind: [(row, value_first(row)) for row in rows] for kind, rows in relations.items()}
    return {kind: tuple(replace(row, says=ways) for row, ways in rows if ways) for kind, rows in kept.items()}


_RELATIONS = _only_value_first(LEXICON.relations)
EITHER: Lexicon = replace(LEXICON, kinds=tuple(kind for kind in LEXICON.kinds if _RELATIONS[kind]), invented=0.0)
"""The wide lexicon, of subjects that can be told of with the value first: so is half of what is told."""
VALUE_FIRST: Lexicon = replace(EITHER, relations=_RELATIONS)
"""The wordings of it whose value stands before the subject."""
WORDINGS = {"value-first": VALUE_FIRST, "either": EITHER}


class Facts:
    """Draws contexts that tell plain facts of three to five subjects.

    Parameters
    ----------
    wordings : str
        One of `WORDINGS`.
    relations : tuple of int
        Fewest and most that is told of each subject. With one, its name is told of once, and what is asked about it
        need not be looked at.
    """

    def __init__(self, wordings: str, relations: tuple[int, int] = (1, 2)) -> None:
        self._wordings, self._relations = wordings, relations

    def __str__(self) -> str:
        return f"facts ({self._wordings}, {self._relations[0]} to {self._relations[1]} of a subject)"

    def draw(self, rng: random.Random, held: bool = False) -> Context:
        """Return a context; `held`, about names that are never trained on."""
        lexicon = WORDINGS[self._wordings]
        world = World(rng, _LEVEL, held, lexicon)
        facts = world.table(rng.choice(lexicon.kinds), rng.randint(*_SUBJECTS), rng.randint(*self._relations), {})
        world.tell_plainly(facts)
        return ask_some(rng, world.finish([world.ask(fact) for fact in facts]))

    def validation(self) -> Mapping[str, Iterable[Context]]:
        """Facts about names that are never trained on."""
        rng = random.Random(77)
        return {"facts": [self.draw(rng, held=True) for _ in range(_VALIDATION)]}
