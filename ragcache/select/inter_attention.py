"""The tokens that looked most at the chunks they once stood behind."""

from dataclasses import dataclass
from typing import ClassVar

from ragcache.model.lazy import Tensor, torch
from ragcache.model.prefill_context import PrefillContext
from ragcache.select.protocol import Selector

_EXTRA = "inter_attention"


@dataclass(frozen=True)
class InterAttention(Selector):
    """Cache-Craft's choice of tokens (2502.15734): stored attention to the chunks that stood in front once.

    The score of token t of chunk C_i is the sum over j < i of inter(C_j, t), its attention to chunk C_j in the prompt
    that its KV comes from, mean over heads and layers. It is read from the store and costs nothing; it knows neither
    the question nor what stands in front now.
    """

    needs: ClassVar[tuple[str, ...]] = (_EXTRA,)
    query_agnostic: ClassVar[bool] = True

    def scores(self, p: PrefillContext) -> Tensor:
        """The stored sums, selectable slots only."""
        scores = torch.full((len(p.prompt),), float("-inf"))
        for segment, kv in p.placed.items():
            if segment not in p.exact:
                scores[p.span(segment)] = kv.extras[_EXTRA].float().cpu()
        return scores
