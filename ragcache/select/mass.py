"""From attention probabilities to one number a token."""

from typing import Literal

from ragcache.errors import InvalidArgument
from ragcache.model.lazy import Tensor, torch
from ragcache.model.plan import layer_index

Layers = Literal["last", "all"] | tuple[int | float, ...]
Reduce = Literal["sum", "mean", "max", "norm"]


class Mass:
    """Reduces a layer's attention probabilities as they come, block of rows by block of rows.

    Parameters
    ----------
    reduce : {"sum", "mean", "max", "norm"}
        As in `QuestionAttention`.
    before : int
        Rows of other fresh text, which stand in front of the question's.
    """

    def __init__(self, reduce: Reduce, before: int) -> None:
        self._reduce = reduce
        self._before = before
        self._terms = 0
        self._sum: Tensor | None = None  # (keys,)

    def add(self, probabilities: Tensor) -> None:
        """Take in (heads, rows, keys)."""
        count = probabilities.shape[1]
        kept = probabilities[:, min(self._before, count) :].contiguous()  # (heads, question rows, keys)
        self._before -= min(self._before, count)
        if kept.shape[1] == 0:
            return
        self._terms += kept.shape[0] * kept.shape[1]
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
        if self._reduce == "mean":
            return self._sum / self._terms
        return self._sum.sqrt() if self._reduce == "norm" else self._sum


def layer_indices(layers: Layers, depth: int) -> list[int]:
    """Which layers of a model with `depth` layers are meant, ascending.

    Parameters
    ----------
    layers : "last", "all", or tuple of int or float
        Indices (negative from the end), or fractions of the depth.

    Raises
    ------
    InvalidArgument
        If no layer is named, or one that the model doesn't have.
    """
    if layers == "last":
        return [depth - 1]
    if layers == "all":
        return list(range(depth))
    if missing := [x for x in layers if not _exists(x, depth)]:
        raise InvalidArgument(
            f"layers={layers!r} names {missing} in a model with {depth} layers; name indices below {depth}, or "
            "fractions between 0.0 and 1.0, which fit any model"
        )
    found = sorted({layer_index(x, depth) for x in layers})
    if not found:
        raise InvalidArgument(f"layers={layers!r} names no layer of {depth}")
    return found


def _exists(layer: int | float, depth: int) -> bool:
    return 0 <= layer <= 1 if isinstance(layer, float) else -depth <= layer < depth
