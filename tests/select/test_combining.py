"""Grouped, Product and Union against the definition, written as loops; properties for any scores."""

import math

import pytest
import torch
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from ragcache.errors import InvalidArgument
from ragcache.select import Everything, FirstTokens, Grouped, Product, QuestionAttention, RandomTokens, Union

INF = float("inf")
LENGTHS = st.lists(st.integers(1, 21), min_size=1, max_size=4)
FINITE = st.floats(0, 100, width=32, allow_subnormal=False)
SCORE = st.one_of(FINITE, st.sampled_from([-INF, INF, 0.0]))
MIXED = st.one_of(SCORE, st.floats(-100, 0, width=32, allow_subnormal=False))


def scores(data, p, kind) -> list[float]:
    return data.draw(st.lists(kind, min_size=len(p.prompt), max_size=len(p.prompt)))


def dense_groups(values: list[float], window: int, stride: int) -> list[float]:
    """A chunk's scores, window by window."""
    best = [-INF] * len(values)
    for start in range(0, len(values), stride):
        inside = range(start, min(start + window, len(values)))
        finite = [values[i] for i in inside if math.isfinite(values[i])]
        for i in inside if finite else ():
            best[i] = max(best[i], sum(finite) / len(finite))
        if inside.stop == len(values):
            break
    return [v if math.isinf(v) else b for v, b in zip(values, best, strict=True)]


@settings(max_examples=80, deadline=None)
@drawn(lengths=LENGTHS, window=st.integers(1, 12), stride=st.integers(1, 12), data=st.data())
def test_a_token_has_the_mean_of_its_best_window(bare, given, lengths, window, stride, data) -> None:
    p = bare(lengths)
    values = scores(data, p, MIXED)
    found = Grouped(given(values), window=window, stride=stride).scores(p)
    for i in p.prompt.chunks():
        expected = dense_groups(values[p.span(i)], window, min(stride, window))
        torch.testing.assert_close(found[p.span(i)], torch.tensor(expected), atol=1e-4, rtol=1e-4)


@settings(max_examples=40, deadline=None)
@drawn(lengths=LENGTHS, data=st.data())
def test_a_window_of_one_is_the_selector_itself(bare, given, lengths, data) -> None:
    p = bare(lengths)
    values = scores(data, p, MIXED)
    assert Grouped(given(values), window=1).scores(p).tolist() == values


def test_windows_end_with_the_chunk_and_take_in_always_and_never(bare, given) -> None:
    p = bare([5, 3])
    values = [0, 0, 1, 3, -INF, 5, 9, INF, 8, 2, 0, 0]
    found = Grouped(given(values), window=4, stride=2).scores(p)
    # Windows of the first chunk: 1, 3, never, 5 and never, 5, 9; of the second: always, 8, 2.
    assert found.tolist() == [0, 0, 3, 3, -INF, 7, 7, INF, 5, 5, 0, 0]


def test_a_whole_chunk_is_one_window(bare, given) -> None:
    found = Grouped(given([0, 0, 1, 2, 6, 4, 0, 9, 9]), window=None).scores(bare([3, 2]))
    assert found.tolist() == [0, 0, 3, 3, 3, 2, 2, 9, 9]


@pytest.mark.parametrize(("window", "stride"), [(0, 1), (4, 0), (None, 0), (-1, 1)])
def test_windows_below_one_token_are_refused(window, stride) -> None:
    with pytest.raises(InvalidArgument, match=f"window is {window} and stride {stride}"):
        Grouped(RandomTokens(), window=window, stride=stride)


@settings(max_examples=80, deadline=None)
@drawn(lengths=LENGTHS, data=st.data())
def test_a_product_multiplies_and_respects_never_and_always(bare, given, lengths, data) -> None:
    p = bare(lengths, exact=[1])
    left, right = scores(data, p, SCORE), scores(data, p, SCORE)
    found = Product(given(left), given(right)).scores(p)
    for slot, (a, b) in enumerate(zip(left, right, strict=True)):
        if not p.selectable[slot] or -INF in (a, b):
            assert found[slot] == -INF
        elif INF in (a, b):
            assert found[slot] == INF
        else:
            assert float(found[slot]) == pytest.approx(a * b, rel=1e-5)


def test_a_product_of_negative_scores_names_the_selector(bare) -> None:
    p = bare([4, 2])
    with pytest.raises(InvalidArgument, match=r"FirstTokens\(tokens=None\) gives -3.*Union"):
        Product(RandomTokens(), FirstTokens()).scores(p)
    with pytest.raises(InvalidArgument, match="FirstTokens"):
        Product(FirstTokens(), RandomTokens()).scores(p)
    assert (Product(RandomTokens(), FirstTokens()).scores(bare([4, 1], exact=[1]))[p.span(1)] == -INF).all()


def best(values: list[float], p) -> list[int]:
    """Selectable slots that may be taken, best first."""
    allowed = [slot for slot in p.selectable.nonzero().flatten().tolist() if values[slot] > -INF]
    return sorted(allowed, key=lambda slot: (-values[slot], slot))


@settings(max_examples=100, deadline=None)
@drawn(lengths=LENGTHS, share=st.sampled_from([0.25, 0.5, 0.75]), data=st.data())
def test_the_best_of_a_union_are_the_best_of_both(bare, given, lengths, share, data) -> None:
    p = bare(lengths, exact=[2] if len(lengths) > 1 else [])
    first, second = scores(data, p, MIXED), scores(data, p, MIXED)
    found = Union(given(first), given(second), share).scores(p)
    one, two = best(first, p), best(second, p)
    always = {slot for slot in {*one, *two} if INF in (first[slot], second[slot])}
    assert {slot for slot, score in enumerate(found.tolist()) if score == INF} == always
    assert {slot for slot, score in enumerate(found.tolist()) if score > -INF} == {*one, *two}
    for taken in (1, 2, 4, 8, 16, 32, 64):  # shares of these are whole numbers or halves
        expected = {*one[: int(share * taken)], *two[: int((1 - share) * taken)]} | always
        assert {slot for slot, score in enumerate(found.tolist()) if score >= -taken} == expected


@settings(max_examples=30, deadline=None)
@drawn(lengths=LENGTHS, data=st.data())
def test_a_union_with_all_of_one_share_is_its_ranking(bare, given, lengths, data) -> None:
    p = bare(lengths)
    first, second = scores(data, p, FINITE), scores(data, p, FINITE)
    assert best(Union(given(first), given(second), 1.0).scores(p).tolist(), p) == best(first, p)
    assert best(Union(given(first), given(second), 0.0).scores(p).tolist(), p) == best(second, p)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_outside_zero_to_one_is_refused(share: float) -> None:
    with pytest.raises(InvalidArgument, match="between 0 and 1"):
        Union(FirstTokens(), RandomTokens(), share)


def test_a_union_under_a_budget_holds_both(stage) -> None:
    """Half of a budget goes to the first tokens of the chunks, half to what the question looks at."""
    p = stage.passed()
    budget = 40
    first, looked = (best(selector.scores(p).tolist(), p) for selector in (FirstTokens(), QuestionAttention()))
    taken = set(best(Union(FirstTokens(), QuestionAttention()).scores(p).tolist(), p)[:budget])
    assert len(taken & set(first[: budget // 2])) == budget // 2
    assert len(taken & set(looked[: budget // 2])) >= budget // 2 - 1


def test_a_selector_made_of_others_needs_begins_and_closes_what_they_do(bare, given) -> None:
    class Counting(Everything):
        begun = closed = 0

        def begin(self, prompt):
            Counting.begun += 1
            return self

        def close(self):
            Counting.closed += 1

    written = given([0.0])
    assert Everything().needs == ()
    for selector in (Product(Everything(), written), Union(written, written), Grouped(written)):
        assert selector.needs == ("written",)
    prompt = bare([1]).prompt
    for selector in (Grouped(Counting()), Product(Counting(), Counting()), Union(Counting(), Grouped(Counting()))):
        assert selector.begin(prompt) == selector
        selector.close()
    assert Counting.begun == Counting.closed == 5
