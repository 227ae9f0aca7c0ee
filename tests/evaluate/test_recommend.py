import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcache.evaluate.metrics import wilson
from ragcache.evaluate.recommend import SAFE, recommend
from ragcache.evaluate.table import Row


def row(method: str, recompute: float | None, agreement: float, ttft_ms: float, n: int = 50) -> Row:
    found = wilson(agreement, n)
    return Row("questions", method, recompute, 0.1, 0.2, n, 0.5, agreement=agreement, agreement_low=found.low,
               agreement_high=found.high, ttft_ms=ttft_ms)  # fmt: skip


FULL = row("full", None, 1.0, 100.0)


def test_the_soonest_of_what_is_safe_is_recommended() -> None:
    found = recommend(
        [FULL, row("naive", None, 0.9, 10), row("fusionrag", 0.3, 0.98, 40), row("cacheblend", 0.15, 1.0, 50)]
    )
    assert found.row is not None
    assert (found.row.method, found.row.recompute) == ("fusionrag", 0.3)
    assert "--method fusionrag --recompute 0.3" in found.words
    assert "98.0% of 50 questions" in found.words
    assert "95 % sure of 8" in found.words


def test_nothing_safe_is_full_prefill() -> None:
    found = recommend([FULL, row("naive", None, 0.5, 10), row("epic", 0.1, 0.97, 10)])
    assert found.row is None
    assert found.words.startswith("full prefill: nothing tested was safe")
    assert "--method epic" in found.words
    assert found.as_dict()["method"] == "full"


def test_what_is_safe_but_not_sooner_is_full_prefill() -> None:
    found = recommend([FULL, row("cacheblend", 0.9, 1.0, 120.0)])
    assert found.row is None
    assert "nothing that was safe was sooner" in found.words


@pytest.mark.parametrize("method", ["random", "heads", "evidence", "true-deviation", "chance"])
def test_controls_and_references_are_never_recommended(method: str) -> None:
    assert recommend([FULL, row(method, 0.1, 1.0, 1.0)]).row is None


def test_full_prefill_alone_says_so() -> None:
    assert recommend([FULL]).words == "full prefill: nothing tested was safe"


@pytest.mark.parametrize(("n", "warned"), [(50, True), (400, False)])
def test_too_few_questions_are_said_to_be(n: int, warned: bool) -> None:
    assert ("ask 189 or more" in recommend([FULL, row("naive", None, 1.0, 10, n)]).words) == warned


rows = st.builds(
    row,
    st.sampled_from(["naive", "epic", "cacheblend", "fusionrag", "random", "evidence"]),
    st.sampled_from([None, 0.05, 0.3]),
    st.floats(0, 1),
    st.floats(0.1, 300),
    st.integers(1, 500),
)


@given(st.lists(rows, max_size=8))
def test_nothing_unsafe_slow_or_beaten_is_ever_recommended(others: list[Row]) -> None:
    found = recommend([FULL, *others]).row
    safe = [r for r in others if r.method not in ("random", "evidence") and (r.agreement or 0) >= SAFE]
    if found is None:
        assert all((r.ttft_ms or 0) >= 100.0 for r in safe)
    else:
        assert found in safe
        assert found.ttft_ms == min(r.ttft_ms or 0 for r in safe) < 100.0
