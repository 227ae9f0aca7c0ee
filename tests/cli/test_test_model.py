"""Commands that answer by the built-in test model say so on stderr, each time."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from ragcache_cli.main import app
from typer.testing import CliRunner, Result

from ragcache.errors import MissingExtra
from ragcache.model import notice, smollm2

Run = Callable[..., Result]
QUESTION = "Who leads the Tide project?"


def test_each_command_that_answers_says_what_answers_and_json_stays_json(
    run: Run, documents: Path, tmp_path: Path
) -> None:
    at = ["--index", tmp_path / "index"]
    for arguments in (["ingest", documents], ["ingest", documents], ["ask", QUESTION]):
        done = run(*arguments, *at)
        assert done.stderr.count(notice.TEST_MODEL) == 1
        assert notice.TEST_MODEL not in done.stdout
    as_json = run("ask", QUESTION, *at, "--json")
    assert as_json.stderr.count(notice.TEST_MODEL) == 1
    assert "Mara Voss" in json.loads(as_json.stdout)["answer"]
    talk = CliRunner().invoke(app, ["chat", "--index", str(at[1])], input=f"{QUESTION}\n")
    assert talk.stderr.count(notice.TEST_MODEL) == 1
    assert "Mara Voss" in talk.stdout


def test_what_it_cannot_read_is_refused_in_words(run: Run, documents: Path, tmp_path: Path) -> None:
    at = ["--index", tmp_path / "index"]
    run("ingest", documents, *at)
    done = run("ask", "Ποιος διευθύνει το έργο;", *at)
    assert done.stdout.startswith(notice.UNREADABLE)
    assert notice.TEST_MODEL not in done.stderr


def test_a_model_of_ones_own_is_not_talked_about(run: Run, index: Path) -> None:
    done = run("ask", QUESTION, "--index", index, "--max-new-tokens", 4)
    assert notice.TEST_MODEL not in done.stderr + done.stdout


def test_the_unpacking_of_smollm2_is_announced_and_what_it_lacks_is_one_sentence(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(packed: Path, folder: Path, adapter: Path | None) -> None:
        raise MissingExtra("gguf is too old")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(smollm2, "_packed_file", lambda: tmp_path / "model.gguf")
    monkeypatch.setattr(smollm2, "_require_gguf", lambda: None)
    monkeypatch.setattr(smollm2, "_convert", fail)
    done = run("doctor", "--model", "smollm2")
    assert done.exit_code == 2
    unpacking, sentence = done.stderr.splitlines()
    assert "is unpacked once into" in unpacking
    assert sentence == "ragcache: gguf is too old"
