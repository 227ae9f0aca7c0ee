"""The examples run as they stand."""

import json
import runpy
from pathlib import Path

import pytest
from conftest import byte_tokenizer, tiny_model

from ragcache.bundled import corpus_path

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_the_quickstart_answers_offline_from_what_was_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = runpy.run_path(str(EXAMPLES / "quickstart.py"))
    question = "Who is the founder of Grefi Partners?"
    assert script["main"](str(tmp_path / "index"), str(corpus_path() / "partners"), question) == "Julie Norxa"
    assert "chunks cached" in capsys.readouterr().out


def test_compositions_are_asked_and_set_beside_their_controls(tmp_path: Path) -> None:
    model, out = tmp_path / "model", tmp_path / "tried.json"
    tiny_model("llama", max_position_embeddings=8192).save_pretrained(model)
    byte_tokenizer().save_pretrained(model)
    script = runpy.run_path(str(EXAMPLES.parent / "bench" / "studies" / "compositions.py"))
    questions = {"tasks": "sections,units", "n": 1, "seed": 101}
    script["main"](**questions, methods="", budgets="0.1,0.15", model=str(model), workers=1, out=out)
    found = json.loads(out.read_text())
    asked = {(row["method"], row["recompute"]) for row in found["rows"]}
    assert {(row["task"], row["n"]) for row in found["pooled"]} == {("all tasks", 2)}
    assert {("full", None), ("naive", None), ("evidence", None), ("random", 0.15)} <= asked
    assert asked >= {(method.name, budget) for method in script["TRIED"] for budget in (0.1, 0.15)}
    assert len({method.name for method in script["TRIED"]}) == len(script["TRIED"])
    assert found["meta"]["beyond"]["random"]["all tasks"]["alone 0.1"].keys() == {"mean", "low", "high"}
