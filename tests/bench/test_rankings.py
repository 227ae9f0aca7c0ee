import json
import runpy
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from ragcache_bench.records import Record

from ragcache.errors import InvalidArgument

STUDY: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "bench" / "studies" / "rankings.py"))
gather, compare = STUDY["gather"], STUDY["compare"]


def answers(shares: dict[str, float], tasks: tuple[str, ...] = ("a", "b"), n: int = 50) -> list[Record]:
    """Each method right on the first questions of every task."""
    return [
        Record(f"{method} {task} {i}", task, str(i), method, None, 0, "x", float(i < share * n), 0.0, 0.0, 0.0, None)
        for method, share in shares.items()
        for task in tasks
        for i in range(n)
    ]


SHARES = {"full": 0.9, "naive": 0.2, "epic": 0.4, "cacheblend": 0.6, "auto": 0.8}


def test_the_same_order_is_one_and_its_reverse_minus_one() -> None:
    reverse = {name: 1 - share for name, share in SHARES.items()}
    asked = gather({"x": answers(SHARES), "y": answers(SHARES), "z": answers(reverse)})
    assert asked.methods == ["naive", "epic", "cacheblend", "auto"]
    found = {(one.one, one.other): one for one in compare(asked, resamples=50)}
    assert (found["x", "y"].tau, found["x", "y"].low) == (1.0, 1.0)
    assert found["x", "z"].tau == -1.0
    assert -1.0 <= found["x", "z"].low <= found["x", "z"].high < 0


def test_what_cannot_be_told_apart_has_a_wide_interval() -> None:
    noisy = [replace(record, em=float(Random(record.key).random() < 0.5)) for record in answers(SHARES, n=20)]
    (one,) = compare(gather({"x": answers(SHARES, n=20), "y": noisy}), resamples=100)
    assert one.high - one.low > 0.4


def test_only_questions_and_methods_that_all_have_count_and_tasks_weigh_the_same() -> None:
    more = answers(SHARES) + answers({"naive": 0.0}, tasks=("c",))
    asked = gather(
        {"x": more, "y": answers({**SHARES, "prophetkv": 0.7}, tasks=("a",)) + answers(SHARES, ("b",), n=10)}
    )
    assert asked.methods == ["naive", "epic", "cacheblend", "auto"]
    assert [asked.tasks.count(task) for task in ("a", "b", "c")] == [50, 10, 0]
    assert asked.means()["x"] == pytest.approx([0.6, 0.7, 0.8, 0.9])  # of the first ten of b, all are right


def test_rows_with_titles_and_answers_made_anew_do_not_count() -> None:
    titled = answers({"naive+title": 1.0}, tasks=("a",))
    asked = gather({"x": answers({**SHARES, "naive": 0.9}) + answers(SHARES) + titled, "y": answers(SHARES) + titled})
    assert asked.methods == ["naive", "epic", "cacheblend", "auto"]
    assert asked.means()["x"] == pytest.approx(asked.means()["y"])


def test_who_ranks_nothing_has_no_tau(tmp_path: Path) -> None:
    (one,) = compare(gather({"x": answers(SHARES), "y": answers(dict.fromkeys(SHARES, 0.5))}), resamples=20)
    assert (one.tau, one.low, one.high) == (None, None, None)
    with pytest.raises(InvalidArgument, match=r"base=base\.jsonl"):
        STUDY["main"](["x", "y"], tmp_path / "out.json")


def test_runs_with_nothing_in_common_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="0 methods in common"):
        gather({"x": answers(SHARES), "y": answers({"full": 1.0})})
    with pytest.raises(InvalidArgument, match="nothing in common"):
        gather({"x": answers(SHARES), "y": answers(SHARES, tasks=("c",))})


def test_a_study_writes_scores_and_taus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, shares in (("x", SHARES), ("y", {**SHARES, "auto": 0.1})):
        lines = "".join(json.dumps(asdict(record)) + "\n" for record in answers(shares))
        (tmp_path / f"{name}.jsonl").write_text(lines)
    STUDY["main"]([f"{name}={tmp_path / name}.jsonl" for name in "xy"], tmp_path / "out.json")
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["meta"]["questions"] == 100
    assert content["scores"]["y"]["auto"] == pytest.approx(0.1)
    assert content["taus"][0]["tau"] == pytest.approx(0.0)
    assert "Kendall" in capsys.readouterr().out == (tmp_path / "out.md").read_text() + "\n"
