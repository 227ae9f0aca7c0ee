"""Invented notes in many wordings, and public passages among them: what the readers of other shapes are tuned on."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ragcache_bench.questions.level import Level
from ragcache_bench.questions.worlds import Context as Drawn
from ragcache_bench.questions.worlds import World

from reader_tuning.contexts import Context, Contexts
from reader_tuning.wide import LEXICON, draw_mixed

_FAMILIES = ("sections", "pronouns", "facts", "needles")
"""What is asked: the readers are to find and to tell apart, not to count or to compare."""
LEVEL = Level(mix=(1, 3), bindings=0.6, relations=(1, 4), forms=99, filler=0.45, interleaved=0.1, alike=0.3,
              titled=0.25, least=26, tokens=600, only=_FAMILIES)  # fmt: skip
_PUBLIC = 0.1
"""Share of the contexts that are public passages."""
_OF_ONE_KIND = 0.7
"""Share of the others that tell much of few subjects."""
_SUBJECTS, _RELATIONS = (2, 4), (3, 6)
"""How many subjects these are about, and what is told of each: enough to mistake one for another."""
_DENSE = 0.7
"""Share of them that tell little else, of more subjects: most errors were another subject's value."""
_DENSE_LEVEL = replace(LEVEL, filler=0.1, least=0)
_DENSE_SUBJECTS, _DENSE_RELATIONS = (3, 6), (2, 4)
_SECTIONS, _TWINS = 0.4, 0.2
"""Share of them in sections, and of those the share whose chunks all name their subject."""
_MOST = 16
"""Questions about one context, at most."""
_VALIDATION = 4
"""Contexts that the curve is drawn from."""


class Notes:
    """Draws contexts of invented notes, whose chunks always see each other.

    Parameters
    ----------
    public : Contexts
        Draws the contexts between them.
    """

    def __init__(self, public: Contexts) -> None:
        self._public = public

    def __str__(self) -> str:
        return "notes"

    def draw(self, rng: random.Random) -> Context:
        """Return a context; it may be without questions."""
        if rng.random() < _PUBLIC:
            return self._public.draw(rng)
        return ask_some(rng, _draw_notes(rng))

    def validation(self) -> Mapping[str, Iterable[Context]]:
        """Notes about names that are never trained on, in wordings of which some are not either."""
        rng = random.Random(77)
        return {"notes": [ask_some(rng, _draw_notes(rng, held=True)) for _ in range(_VALIDATION)]}


def _draw_notes(rng: random.Random, held: bool = False) -> Drawn:
    """Mixed families, or several facts about each of several subjects of one kind, in sections or plainly."""
    if rng.random() >= _OF_ONE_KIND:
        return draw_mixed(rng, LEVEL, held)
    dense = rng.random() < _DENSE
    world = World(rng, _DENSE_LEVEL if dense else LEVEL, held, LEXICON)
    subjects, relations = (_DENSE_SUBJECTS, _DENSE_RELATIONS) if dense else (_SUBJECTS, _RELATIONS)
    facts = world.table(rng.choice(LEXICON.kinds), rng.randint(*subjects), rng.randint(*relations), {})
    if rng.random() < _SECTIONS:
        world.tell_in_sections(facts, twin=rng.random() < _TWINS)
    else:
        world.tell_plainly(facts)
    return world.finish([world.ask(fact) for fact in world.facts])


def ask_some(rng: random.Random, drawn: Drawn) -> Context:
    """A context with some of its questions, in any order."""
    asked = [(question.text, (question.reply,)) for question in drawn.questions]
    return Context(tuple(drawn.chunks), tuple(rng.sample(asked, min(_MOST, len(asked)))))
