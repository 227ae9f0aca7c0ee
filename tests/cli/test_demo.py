"""The demo checks what it is told: a small corpus and a random model here, the bundled ones in `make demo`."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from ragcache_cli import demo
from typer.testing import Result

from ragcache import bundled

pytestmark = pytest.mark.slow

Run = Callable[..., Result]


@pytest.fixture
def golds(monkeypatch: pytest.MonkeyPatch, documents: Path, checkpoint: Path) -> dict[str, str]:
    """Gold answers by question, taken for those of the bundled questions; the random model gets none of them right."""
    known = {question.id: question for question in bundled.questions()}
    golds = dict.fromkeys(demo.QUESTIONS, "nobody")
    monkeypatch.setattr(bundled, "reader_path", lambda: checkpoint)
    monkeypatch.setattr(bundled, "corpus_path", lambda: documents)
    monkeypatch.setattr(
        bundled, "questions", lambda: [replace(known[name], answer=gold, bridge="") for name, gold in golds.items()]
    )
    return golds


def test_a_wrong_answer_ends_the_demo_with_exit_code_1_and_without_an_index_nothing_is_left_behind(
    run: Run, golds: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    done = run("demo", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["right"] == 0
    assert set(tmp_path.iterdir()) == before


def test_right_answers_end_it_with_0_and_the_next_commands(run: Run, golds: dict[str, str], tmp_path: Path) -> None:
    at = ["--index", tmp_path / "demo-index"]
    answers = {row["id"]: row for row in json.loads(run("demo", *at, "--json").stdout)["answers"]}
    golds.update({name: row["answer"] for name, row in answers.items()})
    done = run("demo", *at)
    assert done.exit_code == 0
    assert f"{len(golds)} of {len(golds)} answers are right" in done.stdout
    assert done.stdout.count("chunks cached") == len(golds)
    assert done.stdout.count("full prefill") == 1
    assert "ragcache ingest PATH" in done.stdout
    assert [name for name, row in answers.items() if row["compare"]] == [demo.COMPARED]


def test_the_questions_are_enough_and_some_need_two_documents() -> None:
    kinds = {question.id: question.kind for question in bundled.questions()}
    asked = [kinds[name] for name in demo.QUESTIONS]
    assert len(asked) >= 6
    assert asked.count("two-hop") >= 2
    assert demo.COMPARED in demo.QUESTIONS
