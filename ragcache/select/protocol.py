"""Axis B: which of the reused tokens are recomputed?"""

from typing import Protocol

from torch import Tensor

from ragcache.model.passes import Pass


class Selector(Protocol):
    """Scores the prompt's tokens; a schedule turns scores and budget into rows.

    Attributes
    ----------
    needs : tuple of str
        Extras that the encoder must have stored.
    """

    @property
    def needs(self) -> tuple[str, ...]:
        """Extras that the encoder must have stored."""

    def scores(self, p: Pass) -> Tensor:
        """One score per slot of the prompt, (slots,) fp32: higher first, -inf never, +inf always.

        Only the scores of selectable slots (cached and inexact) are looked at.
        """
