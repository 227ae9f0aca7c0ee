"""Axis C: in which layers are the selected tokens recomputed?"""

from typing import Protocol

from torch import Tensor

from ragcache.model.passes import Pass
from ragcache.model.plan import Slots


class Schedule(Protocol):
    """Turns scores and a budget into the rows that are recomputed."""

    def rows(self, scores: Tensor, budget: float, p: Pass) -> Slots:
        """Selected slots, ascending, among the selectable ones.

        Parameters
        ----------
        scores : Tensor
            (slots,) fp32 from a selector.
        budget : float
            Share of the selectable tokens.
        p : Pass
            The prompt being answered.
        """
