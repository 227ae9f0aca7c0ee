"""The tokens whose values moved most when the chunk was fused with its neighbours."""

from dataclasses import dataclass
from typing import ClassVar

from ragcache.model.lazy import Tensor, torch
from ragcache.model.prefill_context import PrefillContext
from ragcache.select.protocol import Selector

_EXTRA = "value_shift"


@dataclass(frozen=True)
class ValueShift(Selector):
    """How far a token's values moved from base to fused encoding, one stored number a token; unpublished, ours.

    A token that neighbours move offline depends on what stands around it, so its cached KV is likely to be wrong in
    this prompt too, and seeing that costs nothing online. It knows nothing of the question: meant for
    `Product(QuestionAttention(...), ValueShift())`, which has both factors of ProphetKV's bound (2602.02579).

    A chunk whose KV has no such number (the base encoding serves until a chunk is fused) gets the mean over all tokens
    that have one, so that it neither wins nor loses by it; 1 where no chunk has any.
    """

    needs: ClassVar[tuple[str, ...]] = (_EXTRA,)
    query_agnostic: ClassVar[bool] = True

    def scores(self, p: PrefillContext) -> Tensor:
        """The stored shift, selectable slots only."""
        scores = torch.full((len(p.prompt),), float("-inf"))
        placed = {segment: kv.extras.get(_EXTRA) for segment, kv in p.placed.items()}
        known = [shift.float().cpu() for shift in placed.values() if shift is not None]  # (tokens,) each
        typical = float(torch.cat(known).mean()) if known else 1.0
        for segment, shift in placed.items():
            scores[p.span(segment)] = typical if shift is None else shift.float().cpu()
        return scores.masked_fill(~p.selectable, float("-inf"))
