import pytest
from hypothesis import given
from hypothesis import strategies as st
from ragcache_bench.metrics import wilson
from ragcache_bench.recommend import SAFE, enough, recommend
from ragcache_bench.table import Row


def row(method: str, recompute: float | None, agreement: float, ttft_ms: float | None, n: int = 50) -> Row:
    found = wilson(agreement, n)
    return Row("questions", method, recompute, 0.1, 0.2, n, 0.5, agreement=agreement, agreement_low=found.low,
               agreement_high=found.high, ttft_ms=ttft_ms)  # fmt: skip


FULL = row("full", None, 1.0, 100.0, 400)


def test_the_soonest_of_what_is_safe_is_recommended() -> None:
    others = row("naive", None, 0.9, 10, 400), row("cacheblend", 0.15, 1.0, 50, 400)
    found = recommend([FULL, *others, row("fusionrag", 0.3, 1.0, 40, 400)])
    assert found.verdict == "use"
    assert found.row is not None
    assert (found.row.method, found.row.recompute) == ("fusionrag", 0.3)
    assert found.words.startswith("Use --method fusionrag --recompute 0.3")
    assert "100.0% [99.0%, 100.0%] of 400 questions" in found.words


def test_of_rows_that_are_equally_soon_the_first_is_recommended() -> None:
    found = recommend([FULL, row("auto", 0.0, 1.0, 40.9, 400), row("naive", None, 1.0, 40, 400)])
    assert found.row is not None
    assert found.row.method == "auto"


def test_what_surely_agrees_too_seldom_leaves_full_prefill() -> None:
    found = recommend([FULL, row("naive", None, 0.5, 10, 400), row("epic", 0.1, 0.95, 10, 400)])
    assert (found.verdict, found.row) == ("full prefill", None)
    assert found.words.startswith("Use full prefill: nothing that was tested and sooner")
    assert "--method epic --recompute 0.1 came closest" in found.words
    assert found.as_dict()["method"] == "full"


def test_what_is_safe_but_not_sooner_leaves_full_prefill() -> None:
    found = recommend([FULL, row("cacheblend", 0.9, 1.0, 120.0, 400)])
    assert found.words == "Use full prefill: nothing that was tested was sooner"


@pytest.mark.parametrize(("agreement", "n"), [(1.0, 3), (2 / 3, 3), (0.0, 3), (1.0, 188), (0.985, 400)])
def test_an_interval_that_holds_the_share_or_too_few_questions_decide_nothing(agreement: float, n: int) -> None:
    found = recommend([row("full", None, 1.0, 100.0, n), row("auto", 0.0, agreement, 10, n)])
    assert (found.verdict, found.row, found.as_dict()["method"]) == ("undecided", None, None)
    assert found.words.startswith(f"{n} questions are too few to tell")
    assert f"--method auto --recompute 0 {agreement:.1%} [" in found.words
    assert ("At least 189 are needed" in found.words) == (n < 189)
    assert "Use" not in found.words


@pytest.mark.parametrize("safe", [0.5, 0.8, 0.9, 0.98, 0.99])
def test_the_least_number_of_questions_is_where_full_agreement_begins_to_show_it(safe: float) -> None:
    least = enough(safe)
    assert wilson(1.0, least).low >= safe > wilson(1.0, least - 1).low


def test_a_lower_share_takes_fewer_questions() -> None:
    few = [row("full", None, 1.0, 100.0, 40), row("auto", 0.0, 1.0, 10, 40)]
    assert recommend(few).verdict == "undecided"
    assert recommend(few, 0.9).verdict == "use"


@pytest.mark.parametrize("method", ["random", "heads", "evidence", "true-deviation", "chance"])
def test_controls_and_references_are_never_recommended(method: str) -> None:
    assert recommend([FULL, row(method, 0.1, 1.0, 1.0)]).row is None


def test_full_prefill_alone_is_no_ground_for_a_verdict() -> None:
    found = recommend([FULL])
    assert found.verdict == "undecided"
    assert found.words.startswith("Nothing but full prefill was tested")


@pytest.mark.parametrize(("times", "verdict"), [((None, 120.0), "undecided"), ((None, 10.0), "use")])
def test_a_row_without_a_time_is_not_passed_over_as_too_slow(times: tuple[float | None, float], verdict: str) -> None:
    found = recommend([FULL, row("cacheblend", 0.15, 1.0, times[0], 400), row("naive", None, 1.0, times[1], 400)])
    assert found.verdict == verdict
    if verdict == "undecided":
        assert "of --method cacheblend --recompute 0.15; name another --out" in found.words
    few = recommend([row("full", None, 1.0, 100.0, 5), row("epic", 0.15, 1.0, None, 5)])
    assert "first token not timed" in few.words


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
    found = recommend([FULL, *others])
    offered = [r for r in others if r.method not in ("random", "evidence")]
    safe = [r for r in offered if (r.agreement_low or 0) >= SAFE and (r.ttft_ms or 0) < 100.0]
    if found.verdict == "use":
        assert found.row in safe
        assert (found.row.ttft_ms or 0) <= 1.05 * min(r.ttft_ms or 0 for r in safe)
    else:
        assert not safe
    if found.verdict == "full prefill":
        assert all((r.agreement_high or 0) < SAFE or (r.ttft_ms or 0) >= 100.0 for r in offered)
