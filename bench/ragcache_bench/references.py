"""References that know more than a method may, so that what is left to gain can be seen.

`evidence` is told which chunks hold the answer: the target of question-guided selection of whole chunks.
`true-deviation` is told what a full prefill would compute. Neither is an upper bound: the first leaves everything else
stale, and the second, like every selector by deviation, misses tokens that change little and matter much, and spends
its budget on tokens that change much and that nobody asks for.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self, runtime_checkable

import torch
from torch import Tensor

from ragcache.encode import Alone
from ragcache.method import Method
from ragcache.model.buffer import stack_kv
from ragcache.model.deviation import moved
from ragcache.model.plan import ForwardPlan, Positions, Slots, layer_index
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt
from ragcache.select import Selector
from ragcache_bench.tasks import Example


def stock_kv(reader: Reader, prompt: Prompt) -> list[Tensor]:
    """K and V of a prompt by stock full prefill, per layer as `ChunkKV` has them."""
    _, cache = reader.stock(prompt.token_ids)
    return [stack_kv(layer.keys, layer.values) for layer in cache.layers]


@runtime_checkable
class Told(Protocol):
    """A selector that has to be told about the question at hand."""

    def told(self, example: Example) -> Self:
        """The selector as it serves this question."""


@dataclass(frozen=True)
class Evidence(Selector):
    """Every token of the chunks that hold the answer, and no other.

    What it charges is what such a method would charge at best, since finding the chunks is free here. It stays below
    full prefill where the answer passes through chunks that are not evidence themselves.

    Attributes
    ----------
    texts : frozenset of str
        The chunks; `told` enters them.
    """

    texts: frozenset[str] = frozenset()

    def told(self, example: Example) -> Self:
        """The same for the gold chunks of an example."""
        return replace(self, texts=frozenset(example.chunks[i] for i in example.gold))

    def scores(self, p: PrefillContext) -> Tensor:
        """Always for tokens of the evidence, never for others."""
        scores = torch.full((len(p.prompt),), float("-inf"))
        for segment in p.prompt.chunks():
            if p.prompt.segments[segment].text in self.texts:
                scores[p.span(segment)] = float("inf")
        return scores


@dataclass(frozen=True)
class TrueDeviation(Selector):
    """The tokens whose K and V, over all layers, differ most from what a full prefill of this prompt computes.

    The score of token t is the mean over layers of ||dK[t]||^2 / mean ||K||^2 + ||dV[t]||^2 / mean ||V||^2. The full
    prefill that it takes is an oracle's and is not charged. No upper bound: deviation says which tokens would change,
    not which of the changes the answer depends on. Where a value token stands far downstream of the token that binds
    it, recomputing the value behind a stale binding mends nothing, however much the value deviates.

    Attributes
    ----------
    layer : int, float or None
        One layer alone, by index or by its share of the depth; None for all of them.
    """

    layer: int | float | None = None

    def scores(self, p: PrefillContext) -> Tensor:
        """Relative squared deviation."""
        end = p.context_end
        scores = torch.full((len(p.prompt),), float("-inf"))
        deviation = torch.zeros(end, device=p.reader.device)
        pairs = list(zip(p.buffer.read(0, end), self._truth(p), strict=True))
        if self.layer is not None:
            pairs = [pairs[layer_index(self.layer, len(pairs))]]
        for held, true in pairs:  # (2, kv_heads, slots, head_dim) each
            size = moved(true, torch.zeros_like(true)).mean(1, keepdim=True)  # (2, 1)
            deviation += (moved(held, true) / size).sum(0) / len(pairs)
        scores[:end] = deviation.cpu()
        return scores

    def _truth(self, p: PrefillContext) -> Sequence[Tensor]:
        """K and V of the context by full prefill, per layer (2, kv_heads, slots, head_dim)."""
        end = p.context_end
        buffer, slots = p.reader.buffer(end), Slots(torch.arange(end))
        plan = ForwardPlan.on(p.reader.device, slots, end, last=p.reader.kv_layers - 1)
        p.reader.forward(p.prompt.token_ids[:end], Positions(p.positions[:end]), buffer, plan)
        return buffer.read(0, end)


#: At a share of .99 everything that has a score is taken: the evidence, and nothing else.
EVIDENCE = Method("evidence", Alone(), Evidence(), 0.99, about="reference: the chunks with the answer, found for free")
TRUE_DEVIATION = Method(
    "true-deviation", Alone(), TrueDeviation(), 0.15, about="reference: what deviates most from full prefill, for free"
)
