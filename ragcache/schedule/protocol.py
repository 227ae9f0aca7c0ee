"""Axis C: in which layers are the selected tokens recomputed?"""

from typing import Protocol

from ragcache.model.lazy import Tensor
from ragcache.model.plan import Slots
from ragcache.model.prefill_context import PrefillContext


class Schedule(Protocol):
    """Turns scores and a budget into rows, and runs them.

    Schedules inherit from it, those of other packages too.
    """

    @property
    def needs(self) -> tuple[str, ...]:
        """Extras that the encoder must have stored; none, unless the schedule says so."""
        return ()

    @property
    def precomputable(self) -> bool:
        """Whether all that is done with `rows` is to run them through every layer, so that it may be done ahead."""
        return False

    def rows(self, scores: Tensor, budget: float, p: PrefillContext) -> Slots:
        """Selected slots, ascending, among the selectable ones: those recomputed from the first layer on.

        Parameters
        ----------
        scores : Tensor
            (slots,) fp32 from a selector.
        budget : float
            Share of the selectable tokens, as a mean over layers.
        p : PrefillContext
            The prompt being answered.
        """

    def logits(self, scores: Tensor, rows: Slots, budget: float, p: PrefillContext) -> Tensor:
        """Compute the rows and all fresh text: (vocabulary,) fp32 logits of the last one.

        Parameters
        ----------
        scores, budget, p
            As above.
        rows : Slots
            What `rows` gave.
        """
