import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import byte_tokenizer, tiny_model
from ragcache_bench.admission import Admission, Measured, Rule, admit, judge, markdown, measuring
from ragcache_bench.records import Journal
from ragcache_bench.reference_attention import View, answer, prompt_of
from ragcache_bench.runs import Bench
from ragcache_bench.tasks import Example
from ragcache_cli.main import app
from typer.testing import CliRunner

from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader

N = 100
NEEDS = {
    "full": 0.95, "naive": 0.30, "random": 0.35, "heads": 0.30, "blind full": 0.94, "blind naive": 0.30,
    "control full": 0.90, "control naive": 0.33, "twin full": 0.96, "twin naive": 0.95,
}  # fmt: skip


def measured(charged: float = 0.029, same: float = 1.0, end: int = 2, **changed: float | None) -> Measured:
    """Scores with these means; a condition that is None was not measured."""
    means = NEEDS | {key.replace("_", " "): value for key, value in changed.items()}
    scores = {key: [1.0] * round(m * N) + [0.0] * (N - round(m * N)) for key, m in means.items() if m is not None}
    return Measured(scores, charged, same, end)


def judged(*, twin: bool = False, control: bool = True, **changed: Any) -> Admission:
    return judge("sections", measured(**changed), Rule(), twin=twin, control=control)


def failed(one: Admission) -> list[str]:
    return [check.name for check in one.checks if not check.passed]


def test_a_task_that_passes_every_check_needs_other_chunks() -> None:
    one = judged()
    assert one.verdict == "needs other chunks"
    assert (one.n, len(one.checks), failed(one)) == (N, 9, [])


@pytest.mark.parametrize(
    ("changed", "check"),
    [
        ({"random": 0.90}, "random loses"),
        ({"heads": 0.90}, "heads lose"),
        ({"charged": 0.05}, "heads lose"),
        ({"blind_full": 0.35}, "blind naive loses"),
        ({"control_naive": 0.85}, "second reader loses"),
        ({"control_full": 0.50}, "second reader loses"),
        ({"twin_naive": 0.80}, "twin loses nothing"),
        ({"twin_full": None, "twin_naive": None}, "twin loses nothing"),
        ({"same": 0.9}, "r = 1 is full"),
        ({"end": 1}, "end of chunk"),
        ({"naive": 0.83}, "naive loses"),
    ],
)
def test_one_failed_check_keeps_a_task_out_and_is_named(changed: dict[str, Any], check: str) -> None:
    one = judged(**changed)
    assert one.verdict == "undecided"
    assert failed(one) == [check]


def test_a_loss_within_noise_is_no_loss() -> None:
    assert judged(naive=0.94).verdict == "self-contained"
    assert judged(naive=0.97).verdict == "self-contained"
    one = judged(naive=0.90)
    assert one.verdict == "undecided"
    assert one.checks[1].low is not None
    assert one.checks[1].low > 0


def test_a_weak_reader_says_nothing_about_a_task() -> None:
    assert judged(full=0.84).verdict == "reader too weak"
    assert judged(full=0.84, naive=0.84).verdict == "reader too weak"


def test_a_second_reader_counts_only_where_one_was_given() -> None:
    one = judged(control=False, control_full=None, control_naive=None)
    assert one.verdict == "needs other chunks"
    assert "second reader loses" not in [check.name for check in one.checks]


def test_a_twin_is_never_admitted() -> None:
    assert judged(twin=True).verdict == "undecided"


def test_losses_are_paired_by_question() -> None:
    lost = Measured({"a": [1, 1, 0, 0], "b": [0, 1, 1, 0]}, 0, 1, 2).lost("a", "b")
    assert (lost.mean, lost.low < 0 < lost.high) == (0, True)


def test_the_page_shows_what_passed_failed_and_says_nothing() -> None:
    page = markdown([judged(), judged(random=0.9), judged(control_full=0.5)], Rule())
    lines = page.splitlines()
    assert lines[2].count("**") == 18
    assert lines[3].count("**") == 16
    assert "too weak to say" in lines[4]
    assert "full 0.85" in page


def examples(name: str = "sections") -> list[Example]:
    chunks = ("This page is about Tide.", "It is based in Oslo.", "It is led by Mara.")
    asked = "Where is Tide?"
    return [Example(f"{name}-{i}", name, (f"Page {i}.", *chunks), asked, ("Oslo",), (0,)) for i in (0, 1)]


def admitted(raw: Path, rule: Rule, reader: Reader, control: Reader | None = None) -> list[Admission]:
    tasks = {name: examples(name) for name in ("sections", "sections-twin")}
    bench = Bench(reader, Journal(raw), Sampling(max_new_tokens=3))
    return admit(bench, tasks, rule, seeds=(0, 1), control=control and replace(bench, reader=control))


ANYTHING = Rule(full=0, loss=0, random_below=0, heads_charged=0.2)


def test_every_condition_is_measured_and_a_second_run_answers_nothing(
    readers: Callable[[str], Reader], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = (tmp_path / "a.jsonl", ANYTHING, readers("llama"), readers("qwen2"))
    seen: list[Measured] = []
    monkeypatch.setattr(measuring, "judge", lambda task, m, *a, **k: seen.append(m) or judge(task, m, *a, **k))
    first = admitted(*work)
    assert set(seen[0].scores) == set(NEEDS)
    assert {len(scores) for scores in seen[0].scores.values()} == {2}
    assert (seen[0].same, seen[0].end_tokens) == (1.0, 2)
    assert 0 < seen[0].heads_charged <= 0.2
    monkeypatch.setattr(measuring, "answer", lambda *_: pytest.fail("answered again"))
    size = (tmp_path / "a.jsonl").stat().st_size
    assert admitted(*work) == first
    assert (tmp_path / "a.jsonl").stat().st_size == size


def test_controls_are_measured_only_where_naive_loses(reader: Reader, tmp_path: Path) -> None:
    one = admitted(tmp_path / "a.jsonl", replace(ANYTHING, loss=0.5), reader)[0]
    assert "blind naive loses" not in [check.name for check in one.checks]


def test_blind_answers_are_read_through_the_blind_mask(reader: Reader, tmp_path: Path) -> None:
    admitted(tmp_path / "a.jsonl", ANYTHING, reader)
    kept = [entry for entry in Journal(tmp_path / "a.jsonl").known.values() if isinstance(entry, str)]
    views = (View(blind=True), View(alone=True, blind=True))
    asked = [prompt_of(reader, one) for name in ("sections", "sections-twin") for one in examples(name)]
    assert kept == [answer(reader, prompt, view, Sampling(max_new_tokens=3)) for prompt in asked for view in views]


def test_admit_writes_json_and_page(tmp_path: Path) -> None:
    model, out = tmp_path / "model", tmp_path / "docs" / "a.json"
    tiny_model("llama", max_position_embeddings=8192).save_pretrained(model)
    byte_tokenizer().save_pretrained(model)
    options = ["--model", str(model), "--n", "1", "--max-new-tokens", "2", "--random-seeds", "1", "--out", str(out)]
    result = CliRunner().invoke(app, ["bench", "admit", "--tasks", "sections", *options, "--json"])
    assert result.exit_code == 0, result.output
    content = json.loads(out.read_text())
    assert json.loads(result.stdout) == content
    assert [row["task"] for row in content["rows"]] == ["sections", "sections-twin"]
    assert {row["verdict"] for row in content["rows"]} == {"reader too weak"}
    assert "| sections | 1 | reader too weak |" in out.with_suffix(".md").read_text()
