"""A table's rows as points of quality over cost: what both the picture and the page draw."""

from collections.abc import Sequence
from dataclasses import dataclass

from ragcache_bench.contenders import REFERENCES
from ragcache_bench.pareto import front
from ragcache_bench.table import Row

#: Field of a row to what the axis is called.
COSTS = {"charged": "charged recompute", "charged_flops": "charged FLOPs"}
#: Rows drawn as lines across.
LEVELS = ("full", "naive", "chance")
#: Two rows' scores differ where they do by more than noise and by more than this.
MATTERS = 0.05


@dataclass(frozen=True)
class Point:
    """A method at a budget.

    Attributes
    ----------
    method, words : str
        Which series it belongs to, and its name with the budget.
    cost, quality, low, high : float
        In [0, 1]; the interval is that of the difference to full prefill.
    """

    method: str
    words: str
    cost: float
    quality: float
    low: float
    high: float

    @property
    def rival(self) -> bool:
        """Whether it takes part in the front; a reference knows more than a method may, and does not."""
        return self.method not in REFERENCES


def words(row: Row) -> str:
    """A row's name with its budget."""
    return row.method if row.recompute is None else f"{row.method} {row.recompute:g}"


def cost(row: Row, axis: str) -> float | None:
    """A row's cost; full prefill computes everything, whichever way it is counted."""
    value: float | None = 1.0 if row.method == "full" else getattr(row, axis)
    return value


def points(rows: Sequence[Row], axis: str) -> list[Point]:
    """One task's rows that have a cost on this axis."""
    return [
        Point(row.method, words(row), at, row.score, row.score + below, row.score + above)
        for row in rows
        if row.method != "chance" and (at := cost(row, axis)) is not None
        for below, above in [_sides(row)]
    ]


def best(found: Sequence[Point]) -> list[Point]:
    """Those that no other rival beats, cheapest first."""
    rivals = [point for point in found if point.rival]
    return [rivals[i] for i in front([(point.cost, point.quality) for point in rivals])]


def differs(rows: Sequence[Row]) -> bool:
    """Whether some method or control answers one task otherwise than full prefill, by more than noise.

    By exact match, or by answers that an accepted one stands within: who replies in sentences has no exact ones.
    """
    ours = [row for row in rows if row.method not in REFERENCES]
    return any(_beyond(row.delta, row.ci_low, row.ci_high) for row in ours) or any(
        _beyond(row.sub_em_delta, row.sub_em_low, row.sub_em_high) for row in ours
    )


def _beyond(delta: float | None, low: float | None, high: float | None) -> bool:
    """Whether a difference is more than noise, and large enough to matter."""
    if delta is None or low is None or high is None:
        return False
    return (low > 0 or high < 0) and abs(delta) > MATTERS


def _sides(row: Row) -> tuple[float, float]:
    if row.delta is None or row.ci_low is None or row.ci_high is None:
        return 0.0, 0.0
    return row.ci_low - row.delta, row.ci_high - row.delta
