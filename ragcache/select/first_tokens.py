"""The first tokens of every chunk, whatever they say."""

from dataclasses import dataclass
from typing import ClassVar

from ragcache.model.lazy import Tensor, torch
from ragcache.model.prefill_context import PrefillContext
from ragcache.select.protocol import Selector


@dataclass(frozen=True)
class FirstTokens(Selector):
    """LegoLink-k of EPIC (2410.15332): the same number of leading tokens of each chunk.

    The budget decides how many; with `tokens` set, no chunk gets more than that.

    Attributes
    ----------
    tokens : int or None
        At most this many of each chunk (paper: 1 to 32 of 512).
    """

    tokens: int | None = None
    query_agnostic: ClassVar[bool] = True

    def scores(self, p: PrefillContext) -> Tensor:
        """Minus the offset within the chunk."""
        scores = torch.full((len(p.prompt),), float("-inf"))
        for segment in p.prompt.chunks():
            span = p.span(segment)
            end = span.stop if self.tokens is None else min(span.stop, span.start + self.tokens)
            scores[span.start : end] = -torch.arange(end - span.start, dtype=torch.float32)
        return scores
