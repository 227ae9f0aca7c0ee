"""Two sources read in turn: what is learnt from one alone is forgotten while the other alone is read."""

import random
from collections.abc import Iterable, Mapping

from reader_tuning.contexts import Context
from reader_tuning.tuner import Source


class Mixture:
    """Draws contexts of one source among those of another.

    Parameters
    ----------
    one, others : Source
        What is drawn from.
    share : float
        Share of the contexts that come from `one`.
    """

    def __init__(self, one: Source, others: Source, share: float) -> None:
        self._one, self._others, self._share = one, others, share

    def __str__(self) -> str:
        return f"{self._share:.0%} {self._one}, else {self._others}"

    def draw(self, rng: random.Random) -> Context:
        """Return a context; it may be without questions."""
        return (self._one if rng.random() < self._share else self._others).draw(rng)

    def validation(self) -> Mapping[str, Iterable[Context]]:
        """What both are examined by."""
        return {**self._one.validation(), **self._others.validation()}
