"""What share of one row's right answers another keeps."""

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ragcache_bench.records import Record

from ragcache.errors import InvalidArgument

STUDY: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "bench" / "studies" / "kept.py"))
kept, markdown, ALL = STUDY["kept"], STUDY["markdown"], STUDY["ALL"]
ONE = Record("", "", "", "", None, 0, "", 1.0, 1.0, None, 1.0, None)


def answers(method: str, right: str, recompute: float | None = None, task: str = "facts") -> list[Record]:
    """An answer a letter: `x` is right."""
    one = replace(ONE, task=task, method=method, recompute=recompute)
    return [replace(one, key=f"{task}{method}{n}", id=str(n), em=float(x == "x")) for n, x in enumerate(right)]


def test_only_questions_that_the_reference_has_right_count_as_kept() -> None:
    records = [*answers("full+title", "xxxx-"), *answers("naive+title", "x----"), *answers("auto+title", "xxx-x", 0.0)]
    rows = {row["method"]: row for row in kept(records, "full+title", "naive+title") if row["task"] == "facts"}
    assert rows["auto+title"]["kept"]["mean"] == 0.75
    assert rows["auto+title"]["score"] == 0.8
    assert rows["auto+title"]["gain"]["mean"] == pytest.approx(0.6)
    assert rows["full+title"]["kept"]["mean"] == 1
    assert rows["naive+title"]["gain"]["mean"] == 0


def test_the_last_rows_are_over_all_tasks_question_by_question() -> None:
    records = [
        *answers("full+title", "xx"), *answers("naive+title", "--"), *answers("auto", "x-"),
        *answers("full+title", "xx", task="units"), *answers("naive+title", "xx", task="units"),
        *answers("auto", "xx", task="units"),
    ]  # fmt: skip
    rows = [row for row in kept(records, "full+title", "naive+title") if row["method"] == "auto"]
    assert {row["task"]: row["kept"]["mean"] for row in rows} == {"facts": 0.5, "units": 1.0, ALL: 0.75}
    assert markdown(rows, "full+title", "naive+title").count("0.750 [") == 1


def test_a_row_that_nobody_answered_as_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"nobody answered as 'naive\+title'; the file has full\+title"):
        list(kept(answers("full+title", "x"), "full+title", "naive+title"))
