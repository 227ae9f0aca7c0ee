"""The best-scored tokens of a prompt."""

import pytest
import torch

from ragcache.errors import UnsupportedModel
from ragcache.schedule.ranking import top

INF = float("inf")


@pytest.mark.parametrize(
    ("values", "count", "chosen"),
    [
        ([0.1, 0.4, 0.4, 0.2], 2, [1, 2]),
        ([0.1, 0.4, 0.4, 0.2], 1, [1]),
        ([-INF, 0.1, INF, INF], 1, [2, 3]),
        ([-INF, -INF, 0.1], 3, [2]),
        ([], 0, []),
    ],
)
def test_the_greatest_are_chosen_and_all_that_must_and_none_that_may_not(
    values: list[float], count: int, chosen: list[int]
) -> None:
    assert top(torch.tensor(values), count).tolist() == chosen


def test_scores_that_are_no_numbers_are_refused_rather_than_left_out() -> None:
    with pytest.raises(UnsupportedModel, match="no numbers"):
        top(torch.tensor([0.1, float("nan"), 0.2]), 2)
