"""The study of a tuned auxiliary: what a look takes of the primary's choice and the evidence, and what tuning adds."""

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ragcache_bench.records import Record

STUDY: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "bench" / "studies" / "auxiliary.py"))
ONE = Record("", "sections", "", "", None, 0, "", 0.0, 0.0, 0.1, 1.0, None)


def test_a_look_is_held_against_the_primary_and_the_evidence_at_each_budget() -> None:
    ranked = {"primary": [7, 1, 2], "sibling": [7, 2, 9]}  # of 20 tokens, 5 % is one and 15 % are three
    found = dict(STUDY["shares"](ranked, {"tokens": 20, "gold": [7, 8]}))
    assert found["sibling 0.05 overlap"] == 1
    assert found["sibling 0.15 overlap"] == pytest.approx(2 / 3)
    assert found["sibling 0.15 evidence"] == found["primary 0.05 evidence"] == 1 / 2
    exact = dict(STUDY["shares"](ranked, {"tokens": 20, "gold": []}))  # the answer stands in the first chunk
    assert not [key for key in exact if "evidence" in key]


def test_tuning_adds_what_the_same_row_answers_more_question_by_question() -> None:
    right = {"full": "xxx-", "cacheclip": "x---", "cacheclip, tuned": "xx-x", "cacheclip, all layers": "xxx-"}
    records = [
        replace(ONE, id=str(n), method=who.name, recompute=who.recompute, em=float(x == "x"))
        for who in STUDY["field"]()
        for n, x in enumerate(right.get(who.name, "----"))
    ]
    rows = {(r["group"], r["method"], r["budget"]): r for r in STUDY["compare_answers"](records)}
    tuned = rows["needs other chunks", "cacheclip, tuned", 0.05]
    assert tuned["gain"]["mean"] == pytest.approx(0.5)
    assert tuned["over_layers"]["mean"] == 0
    assert tuned["kept"]["mean"] == pytest.approx(2 / 3)
    assert rows["sections", "cacheclip", 0.15]["gain"] is None
    assert ("self-contained twins", "full", None) not in rows
