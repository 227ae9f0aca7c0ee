"""One set of tokens, in all layers."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ragcache.model.passes import Pass
from ragcache.model.plan import Slots


@dataclass(frozen=True)
class Flat:
    """The best-scored tokens, recomputed from the first layer to the last: what released code of every method does."""

    def rows(self, scores: Tensor, budget: float, p: Pass) -> Slots:
        """The top share of the selectable slots; ties go to the earlier slot."""
        candidates = p.selectable.nonzero().squeeze(1)  # (selectable,)
        values = scores[candidates]
        # A budget of 0.05 of 30 tokens is 2 tokens: rounding down would silently give short prompts nothing.
        count = round(budget * candidates.numel())
        always = int((values == float("inf")).sum())
        allowed = int((values > float("-inf")).sum())
        order = torch.argsort(values, descending=True, stable=True)[: min(max(count, always), allowed)]
        return Slots(candidates[order].sort().values)
