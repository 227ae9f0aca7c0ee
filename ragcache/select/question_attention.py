"""The tokens that the question attends to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from ragcache.errors import InvalidArgument
from ragcache.model.passes import Pass
from ragcache.model.plan import ScoreSink, Slots

Layers = Literal["last", "all"] | tuple[int | float, ...]
Reduce = Literal["sum", "mean", "max", "norm"]


@dataclass(frozen=True)
class QuestionAttention:
    """Attention mass from the question's rows to each context token, over the stitched, uncorrected cache.

    FusionRAG (2601.12904) takes the last layer and sums over rows and heads; ProphetKV (2602.02579) averages over all
    layers; InfoFlow (2603.05353) takes the L2 norm over rows of the head mean at some middle layers. With A[h, q, t]
    the attention probability of head h, question row q and token t, the score is, averaged over the layers:

    - "sum": sum over h, q of A; "mean": the mean over h, q (the same order)
    - "max": max over h, q of A (QCFuse's form)
    - "norm": sqrt(sum over q of (mean over h of A)^2)

    The pass costs the question's rows (and any fresh text in the context) through the layers up to the last one scored,
    where it stops. It writes nothing that outlives it: the question is computed again in the final forward.

    Attributes
    ----------
    layers : "last", "all", or tuple of int or float
        Layers to score: indices (negative from the end), or fractions of the depth.
    reduce : {"sum", "mean", "max", "norm"}
        How rows and heads become one number.
    """

    layers: Layers = "last"
    reduce: Reduce = "sum"
    needs: ClassVar[tuple[str, ...]] = ()

    def scores(self, p: Pass) -> Tensor:
        """Attention mass per slot."""
        question = p.question
        in_front = torch.arange(len(p.prompt)) < int(question[0])
        rows = Slots(torch.cat([(p.fresh & in_front).nonzero().squeeze(1), question]))
        wanted = set(question.tolist())
        scored = torch.tensor([slot in wanted for slot in rows.tolist()], device=p.reader.device)
        masses = {layer: _Mass(self.reduce, scored) for layer in _indices(self.layers, p.reader.layers)}
        sinks: dict[int, ScoreSink] = {layer: mass.add for layer, mass in masses.items()}
        p.forward(rows, scores=sinks, stop_after_scores=True)
        total = torch.stack([mass.total() for mass in masses.values()]).mean(0).cpu()  # (keys,)
        scores = torch.full((len(p.prompt),), float("-inf"))
        scores[: total.shape[0]] = total[: len(p.prompt)]
        return scores


class _Mass:
    """Reduces a layer's attention probabilities as they come, block of rows by block of rows."""

    def __init__(self, reduce: Reduce, scored: Tensor) -> None:
        self._reduce = reduce
        self._scored = scored  # (rows,) bool: rows of the question, not of other fresh text
        self._seen = 0
        self._sum: Tensor | None = None  # (keys,)

    def add(self, probabilities: Tensor) -> None:
        """Take in (heads, rows, keys)."""
        count = probabilities.shape[1]
        kept = probabilities[:, self._scored[self._seen : self._seen + count]]  # (heads, question rows, keys)
        self._seen += count
        if kept.shape[1] == 0:
            return
        if self._reduce == "max":
            part = kept.amax((0, 1))
            self._sum = part if self._sum is None else torch.maximum(self._sum, part)
            return
        part = kept.mean(0).pow(2).sum(0) if self._reduce == "norm" else kept.sum((0, 1))  # (keys,)
        self._sum = part if self._sum is None else self._sum + part

    def total(self) -> Tensor:
        """The reduced mass, (keys,)."""
        if self._sum is None:
            raise InvalidArgument("the question has no tokens; ask something")
        return self._sum.sqrt() if self._reduce == "norm" else self._sum


def _indices(layers: Layers, depth: int) -> Sequence[int]:
    if layers == "last":
        return [depth - 1]
    if layers == "all":
        return range(depth)
    found = sorted({min(depth - 1, int(x * depth)) if isinstance(x, float) else x % depth for x in layers})
    if not found:
        raise InvalidArgument(f"layers={layers!r} names no layer of {depth}")
    return found
