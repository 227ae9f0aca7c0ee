"""The study of whole answers: what counts as quoted, and what a way is compared with."""

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def study() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "bench" / "studies" / "whole_answer.py"))


def test_eight_tokens_in_a_row_are_a_quotation_and_seven_are_not(study: dict[str, Any]) -> None:
    prompt = range(100)
    quoted_share = study["quoted_share"]
    assert quoted_share((*range(20, 28), 200, 201), prompt) == 0.8
    assert quoted_share((*range(20, 27), 200, *range(50, 57)), prompt) == 0
    assert quoted_share((*range(20, 30), *range(60, 70)), prompt) == 1
    assert quoted_share((), prompt) == 0


def test_a_way_is_compared_with_generate_and_with_itself_without_lookup(study: dict[str, Any]) -> None:
    way, written = study["Way"], study["Written"]
    taken = {
        way(): [written((1, 2), 0.0, 2, 0.5, 8.0), written((3,), 0.0, 1, 0.5, 6.0)],
        way(looked_up=True): [written((1, 2), 0.0, 1, 0.5, 4.0), written((3,), 0.0, 1, 0.5, 6.0)],
        way("naive"): [written((1, 2), 0.0, 2, 0.5, 2.0), written((3,), 0.0, 1, 0.5, 2.0)],
        way("naive", looked_up=True): [written((1, 2), 0.0, 1, 0.5, 1.0), written((4,), 1.0, 1, 0.5, 2.0)],
    }
    row = study["_row"](way("naive", looked_up=True), taken)
    assert (row["by"], row["prompt_lookup"], row["quoted"]) == ("naive", True, 0.5)
    assert row["than_generate"] == [5.5, 3.0, 8.0]
    assert row["than_generate_with_lookup"] == [3.5, 3.0, 4.0]
    assert row["than_without"] == [1.5, 1.0, 2.0]
    assert row["same_tokens_as_without"] == 1
    assert (row["tokens_per_forward"], row["first_token_seconds"], row["seconds"]) == (1.5, 0.5, 1.5)
