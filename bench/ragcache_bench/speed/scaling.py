"""How times grow with the context."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragcache_bench.speed.latency import Latency


@dataclass(frozen=True)
class Scaling:
    """One row's times over the context lengths.

    Attributes
    ----------
    method, recompute, store, chunk : str, float or None, str or None, int
        Whose.
    ms_per_1000 : float
        Slope of the least-squares line: milliseconds for a thousand more tokens of context.
    exponent : float
        Slope in logarithms: 1 is linear, 2 is quadratic.
    """

    method: str
    recompute: float | None
    store: str | None
    chunk: int
    ms_per_1000: float
    exponent: float


def scaling(rows: Sequence[Latency]) -> list[Scaling]:
    """Every row's growth, of those that were timed at two lengths or more."""
    named: dict[tuple[str, float | None, str | None, int], dict[int, float]] = {}
    for row in rows:
        named.setdefault((row.method, row.recompute, row.store, row.chunk), {})[row.context] = row.ttft_ms
    return [_fitted(*who, times) for who, times in named.items() if len(times) > 1]


def _fitted(method: str, recompute: float | None, store: str | None, chunk: int, times: dict[int, float]) -> Scaling:
    lengths, taken = np.array(list(times), dtype=float), np.array(list(times.values()))
    slope = np.polyfit(lengths / 1000, taken, 1)[0]
    exponent = np.polyfit(np.log(lengths), np.log(taken), 1)[0]
    return Scaling(method, recompute, store, chunk, float(slope), float(exponent))
