"""One set of tokens, in all layers."""

from dataclasses import dataclass
from typing import ClassVar

from ragcache.model.lazy import Tensor
from ragcache.model.plan import Slots
from ragcache.model.prefill_context import PrefillContext
from ragcache.schedule.protocol import Schedule
from ragcache.schedule.ranking import best


@dataclass(frozen=True)
class Flat(Schedule):
    """The best-scored tokens, recomputed from the first layer to the last: what released code of every method does."""

    precomputable: ClassVar[bool] = True

    def rows(self, scores: Tensor, budget: float, p: PrefillContext) -> Slots:
        """The top share of the selectable slots; ties go to the earlier slot."""
        return best(scores, budget, p)

    def logits(self, scores: Tensor, rows: Slots, budget: float, p: PrefillContext) -> Tensor:
        """One forward over all of them."""
        return p.logits(p.with_fresh(rows))
