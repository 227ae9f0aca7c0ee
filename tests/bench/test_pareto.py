import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ragcache_bench.pareto import ALONE, NEEDS, front, pooled, pools
from ragcache_bench.table import Row

Points = st.lists(st.tuples(st.integers(0, 6).map(lambda x: x / 6), st.integers(0, 6).map(lambda x: x / 6)))


def dominates(a: tuple[float, float], b: tuple[float, float]) -> bool:
    return a[0] <= b[0] and a[1] >= b[1] and a != b


@given(Points)
def test_the_front_holds_exactly_what_nothing_dominates(points: list[tuple[float, float]]) -> None:
    best = [i for i, one in enumerate(points) if not any(dominates(other, one) for other in points)]
    assert sorted(front(points)) == best


@given(Points)
def test_the_front_rises_with_cost_and_something_on_it_beats_every_other_point(
    points: list[tuple[float, float]],
) -> None:
    kept = [points[i] for i in front(points)]
    assert kept == sorted(kept)
    assert all(point in kept or any(dominates(one, point) for one in kept) for point in points)


def row(task: str, method: str, score: float, delta: float, half: float = 0.1, **more: float | None) -> Row:
    return Row(
        task,
        method,
        None,
        0.2,
        0.3,
        10,
        score,
        score,
        score,
        delta,
        delta - half,
        delta + half,
        **more,  # type: ignore[arg-type]
    )


def test_pools_separate_tasks_that_need_other_chunks() -> None:
    assert pools({"a": True, "b": False, "c": True}) == {NEEDS: ["a", "c"], ALONE: ["b"]}
    assert pools({"b": False}) == {ALONE: ["b"]}


def test_a_pool_is_the_mean_over_its_tasks() -> None:
    rows = [
        row("a", "full", 0.9, 0.0, 0.0), row("a", "naive", 0.3, -0.6), row("a", "epic", 0.6, -0.3, ttft_ratio=1.0),
        row("b", "full", 0.7, 0.0, 0.0), row("b", "naive", 0.5, -0.2), row("b", "epic", 0.5, -0.2, ttft_ratio=4.0),
        row("c", "naive", 0.0, -1.0),
    ]  # fmt: skip
    found = {one.method: one for one in pooled(rows, {"both": ["a", "b"]})}
    assert list(found) == ["full", "naive", "epic"]
    epic = found["epic"]
    assert (epic.task, epic.n, epic.charged) == ("both", 20, pytest.approx(0.2))
    assert epic.score == pytest.approx(0.55)
    assert epic.delta == pytest.approx(-0.25)
    assert epic.ci_high == pytest.approx(-0.25 + math.sqrt(2 * 0.1**2) / 2)
    assert epic.ci_low == pytest.approx(-0.25 - math.sqrt(2 * 0.1**2) / 2)
    assert epic.recovered == pytest.approx((0.55 - 0.4) / (0.8 - 0.4))
    assert epic.ttft_ratio == pytest.approx(2.0)


def test_a_method_that_lacks_a_task_is_not_pooled_and_a_missing_figure_stays_missing() -> None:
    rows = [row("a", "epic", 0.5, 0.0), replace(row("b", "epic", 0.7, 0.0), charged=None), row("a", "link0", 1.0, 0.0)]
    (epic,) = pooled(rows, {"both": ["a", "b"]})
    assert (epic.score, epic.charged, epic.recovered) == (pytest.approx(0.6), None, None)
