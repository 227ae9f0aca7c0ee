"""Invented notes in many wordings, and public passages among them: what the readers of other shapes are tuned on."""

import random
from collections.abc import Iterable, Mapping

from ragcache_bench.questions.level import Level
from ragcache_bench.questions.worlds import Context as Drawn

from reader_tuning.contexts import Context, Contexts
from reader_tuning.wide import draw_mixed

_FAMILIES = ("sections", "pronouns", "labels", "units", "facts", "needles")
"""What is asked: the readers are to find and to tell apart, not to count or to compare."""
LEVEL = Level(mix=(1, 3), bindings=0.6, relations=(1, 4), forms=99, filler=0.45, interleaved=0.1, alike=0.15,
              titled=0.25, least=26, tokens=600, only=_FAMILIES)  # fmt: skip
_PUBLIC = 0.15
"""Share of the contexts that are public passages."""
_MOST = 16
"""Questions about one context, at most."""
_VALIDATION = 10
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

    def draw(self, rng: random.Random) -> Context:
        """Return a context; it may be without questions."""
        if rng.random() < _PUBLIC:
            return self._public.draw(rng)
        return _asked(rng, draw_mixed(rng, LEVEL))

    def validation(self) -> Mapping[str, Iterable[Context]]:
        """Notes about names that are never trained on, in wordings of which some are not either."""
        rng = random.Random(77)
        return {"notes": [_asked(rng, draw_mixed(rng, LEVEL, held=True)) for _ in range(_VALIDATION)]}


def _asked(rng: random.Random, drawn: Drawn) -> Context:
    asked = [(question.text, (question.reply,)) for question in drawn.questions]
    return Context(tuple(drawn.chunks), tuple(rng.sample(asked, min(_MOST, len(asked)))))
