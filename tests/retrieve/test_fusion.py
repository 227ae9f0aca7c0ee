"""Rankings fused by reciprocal rank, against the formula."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcache.retrieve import fuse_ranks

RANKINGS = st.lists(st.permutations("abcdef").map(lambda all: all[:4]), max_size=4)


@given(RANKINGS)
def test_the_order_is_that_of_the_sums_of_reciprocal_ranks(rankings: list[Sequence[str]]) -> None:
    sums = {one: sum(1 / (61 + r.index(one)) for r in rankings if one in r) for r in rankings for one in r}
    fused = fuse_ranks(*rankings)
    assert sorted(fused) == sorted(sums)
    assert [sums[one] for one in fused] == pytest.approx(sorted(sums.values(), reverse=True))


def test_what_both_rankings_have_comes_before_what_one_has_first() -> None:
    assert fuse_ranks(["a", "b"], ["c", "b"]) == ["b", "a", "c"]
