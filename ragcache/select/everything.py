"""Every reused token: full prefill through the recompute path."""

from dataclasses import dataclass
from typing import ClassVar

from ragcache.model.lazy import Tensor, torch
from ragcache.model.prefill_context import PrefillContext
from ragcache.select.protocol import Selector


@dataclass(frozen=True)
class Everything(Selector):
    """The reference at the upper end: r = 1 in every budget."""

    query_agnostic: ClassVar[bool] = True

    def scores(self, p: PrefillContext) -> Tensor:
        """Always, for every slot."""
        return torch.full((len(p.prompt),), float("inf"))
