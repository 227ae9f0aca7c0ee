"""Of each chunk as many tokens as its cache fix overhead says."""

from dataclasses import dataclass, field
from math import ceil
from typing import ClassVar

from ragcache.model.lazy import Tensor, torch
from ragcache.model.plan import Slots
from ragcache.model.prefill_context import PrefillContext
from ragcache.schedule.flat import Flat
from ragcache.schedule.ranking import best, top

_EXTRA = "overhead"


@dataclass(frozen=True)
class CacheFix(Flat):
    """Cache-Craft's cache fix overhead (2502.15734): CFO = alpha CCI (1 - beta'), clipped to [0, 1].

    It is the share of a chunk that is recomputed in every layer, ceil(CFO |C|) tokens, those of the highest score: none
    at 0 and the whole chunk from 1 on. `ragcache.encode.PastPrompt` has CCI and beta'.

    alpha, which the paper tunes for each workload, is the recompute ratio times `scale`. CCI is 1/2 where a chunk
    hardly looked at others, so at a scale of 2 the ratio is what is recomputed of such a chunk if nothing of its old
    context is left, more of one that did look, and less as far as its old context stands in front again. At a ratio of
    1 all is recomputed, whatever CFO says.

    Attributes
    ----------
    scale : float
        alpha at a recompute ratio of 1 (tuned here: not at all).
    """

    scale: float = field(default=2.0, metadata={"tune": (1.0, 2.0, 4.0)})
    needs: ClassVar[tuple[str, ...]] = (_EXTRA,)

    def rows(self, scores: Tensor, budget: float, p: PrefillContext) -> Slots:
        """The best-scored tokens of each chunk, as many as its CFO says."""
        if budget >= 1:
            return best(scores, budget, p)
        chosen = [torch.empty(0, dtype=torch.int64)]
        for segment in sorted(p.placed.keys() - p.exact):
            span, overhead = p.span(segment), float(p.placed[segment].extras[_EXTRA][0])
            share = min(self.scale * budget * overhead, 1.0)
            chosen.append(span.start + top(scores[span], ceil(share * (span.stop - span.start))))
        return Slots(torch.cat(chosen))
