"""Axis C: in which layers are the selected tokens recomputed?"""

from typing import Protocol

from torch import Tensor

from ragcache.model.passes import Pass
from ragcache.model.plan import Slots


class Schedule(Protocol):
    """Turns scores and a budget into rows, and runs them."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Extras that the encoder must have stored."""

    @property
    def apart(self) -> bool:
        """Whether the context's rows come out the same if they run ahead of the question's, by themselves."""

    def rows(self, scores: Tensor, budget: float, p: Pass) -> Slots:
        """Selected slots, ascending, among the selectable ones: those recomputed from the first layer on.

        Parameters
        ----------
        scores : Tensor
            (slots,) fp32 from a selector.
        budget : float
            Share of the selectable tokens, as a mean over layers.
        p : Pass
            The prompt being answered.
        """

    def logits(self, scores: Tensor, rows: Slots, budget: float, p: Pass) -> Tensor:
        """Compute the rows and all fresh text: (vocabulary,) fp32 logits of the last one.

        Parameters
        ----------
        scores, budget, p
            As above.
        rows : Slots
            What `rows` gave.
        """
