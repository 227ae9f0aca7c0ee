"""What is worth its cost: the rows that no other row beats, and tasks pooled so that one picture holds them."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from math import exp, log, sqrt
from statistics import fmean
from typing import Any

from ragcache_bench.table import Row

NEEDS, ALONE = "needs other chunks", "self-contained"
_NAMES = ("task", "method", "recompute", "n")
_CENTRES = {"ci": "delta", "sub_em": "sub_em_delta"}  # of intervals that are named otherwise
_RECOVERED = ("recovered", "recovered_low", "recovered_high")


def front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Indices of the points that nothing dominates, cheapest first.

    A point dominates another where it is no dearer and no worse, and one of the two strictly. Equal points do not
    dominate each other, so they stand on the front together.

    Parameters
    ----------
    points : sequence of (float, float)
        Cost and quality of each.
    """
    order = sorted(range(len(points)), key=lambda i: (points[i][0], -points[i][1]))
    kept: list[int] = []
    for i in order:
        if not kept or points[i][1] > points[kept[-1]][1] or points[i] == points[kept[-1]]:
            kept.append(i)
    return kept


def pools(tasks: Mapping[str, bool]) -> dict[str, list[str]]:
    """Tasks by whether they need other chunks; a pool without tasks is left out.

    Parameters
    ----------
    tasks : mapping of str to bool
        Whether each task needs other chunks than the one that holds the fact.
    """
    parts = {pool: [name for name, needs in tasks.items() if needs is wanted] for pool, wanted in _POOLS.items()}
    return {pool: names for pool, names in parts.items() if names}


_POOLS = {NEEDS: True, ALONE: False}


def pooled(rows: Sequence[Row], groups: Mapping[str, Sequence[str]]) -> list[Row]:
    """Means over the tasks of each group, every task counting the same however many questions it has.

    Intervals take the tasks for independent and normal: a half width is the root of the tasks' summed squares over
    their number. Recovered is taken of the means, without one, and of time ratios the mean is geometric. A method that
    lacks one of the tasks is left out, and a figure that one of them lacks is None.

    Parameters
    ----------
    rows : sequence of Row
        Of single tasks.
    groups : mapping of str to sequence of str
        Task names by the name of their pool, which takes the place of the task.
    """
    found: list[Row] = []
    for pool, tasks in groups.items():
        of_pool = [row for row in rows if row.task in tasks]
        names = dict.fromkeys((row.method, row.recompute) for row in of_pool)
        parts = [[row for row in of_pool if (row.method, row.recompute) == name] for name in names]
        means = [_mean(pool, part) for part in parts if len(part) == len(tasks)]
        found += [_recovered(row, means) for row in means]
    return found


def _mean(pool: str, rows: Sequence[Row]) -> Row:
    names = [field.name for field in fields(Row) if field.name not in (*_NAMES, *_RECOVERED)]
    figures: dict[str, Any] = {name: _figure(rows, name) for name in names}
    return Row(task=pool, method=rows[0].method, recompute=rows[0].recompute, n=sum(row.n for row in rows), **figures)


def _figure(rows: Sequence[Row], name: str) -> float | None:
    stem, _, side = name.rpartition("_")
    values = [getattr(row, name) for row in rows]
    if None in values:
        return None
    if side in ("low", "high"):
        centres = [getattr(row, _CENTRES.get(stem, stem)) for row in rows]
        half = sqrt(sum((value - centre) ** 2 for value, centre in zip(values, centres, strict=True))) / len(rows)
        return fmean(centres) + (half if side == "high" else -half)
    return exp(fmean(map(log, values))) if name == "ttft_ratio" else fmean(values)


def _recovered(row: Row, means: Sequence[Row]) -> Row:
    """Of what naive loses over the pool, where that loss is more than noise."""
    naive = next((one for one in means if one.method == "naive"), None)
    if naive is None or naive.delta is None or row.delta is None or naive.ci_high is None or naive.ci_high >= 0:
        return row
    return replace(row, recovered=(row.delta - naive.delta) / -naive.delta)
