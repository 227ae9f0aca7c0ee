"""`ragcache documents` and what `ingest` says of files that are gone."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]


@pytest.fixture
def index(run: Run, documents: Path, tmp_path: Path, checkpoint: Path) -> Path:  # to be written to
    done = run("ingest", documents, "--index", tmp_path / "index", "--model", checkpoint)
    assert done.exit_code == 0, done.output
    return tmp_path / "index"


def test_documents_are_listed_as_a_table_and_as_json(run: Run, index: Path, documents: Path) -> None:
    shown = run("documents", "list", "--index", index)
    assert "tide.txt" in shown.stdout
    assert "3 documents" in shown.stdout
    rows = json.loads(run("documents", "list", "--index", index, "--json").stdout)
    assert [row["source"] for row in rows] == sorted(str(path) for path in documents.iterdir())
    assert set(rows[0]) == {"id", "source", "chunks", "tokens", "bytes", "added", "collection"}


def test_a_document_is_removed_once_it_is_confirmed(
    run: Run, index: Path, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = ["documents", "remove", documents / "tide.txt", "--index", index]
    refused = run(*remove)
    assert refused.exit_code == 2
    assert "repeat with --yes" in refused.stderr
    dry = run(*remove, "--dry-run")
    assert (dry.exit_code, dry.stdout.startswith("would be removed: 1 document, 1 chunk,")) == (0, True)
    monkeypatch.setattr("ragcache_cli.documents._somebody_there", lambda: True)
    for answer, code in ((False, 1), (True, 0)):
        monkeypatch.setattr("typer.confirm", lambda *_, answer=answer, **__: answer)
        assert run(*remove).exit_code == code
        left = json.loads(run("documents", "list", "--index", index, "--json").stdout)
        assert len(left) == (2 if answer else 3)
    again = run(*remove, "--yes")
    assert again.exit_code == 2
    assert "`ragcache documents list --index" in again.stderr
    found = json.loads(run("documents", "remove", "*.md", "--index", index, "--yes", "--json").stdout)
    assert [Path(one["source"]).name for one in found["removed"]] == ["otter.md"]


@pytest.mark.parametrize("what", [[], ["a.md", "--collection", "notes"]])
def test_either_paths_or_a_store_are_named(run: Run, index: Path, what: list[str]) -> None:
    refused = run("documents", "remove", *what, "--index", index, "--yes")
    assert refused.exit_code == 2
    assert "`ragcache documents list`" in refused.stderr


def test_neither_command_imports_torch(index: Path, documents: Path) -> None:
    for arguments in (["list"], ["remove", str(documents / "tide.txt"), "--yes"]):
        line = ["documents", *arguments, "--index", str(index)]
        script = (
            "import sys\nfrom ragcache_cli.main import app\n"
            f"try: app({line!r})\nexcept SystemExit as end: assert not end.code\n"
            "print(sorted({'torch', 'transformers'} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[]"


def test_a_folder_that_is_gone_is_forgotten_and_said_so(run: Run, index: Path, documents: Path) -> None:
    for path in documents.iterdir():
        path.unlink()
    done = run("ingest", documents, "--index", index)
    assert done.exit_code == 0, done.output
    assert "removed, since they are gone: " in done.stderr
    assert "3 removed" in done.stdout
    assert "next: ragcache ask" not in done.stderr
    assert run("ask", "Who?", "--index", index).exit_code == 2
    assert run("ingest", documents, "--index", index).exit_code == 2


def test_prune_forgets_a_folder_that_was_renamed(run: Run, index: Path, documents: Path) -> None:
    other = documents.rename(documents.parent / "renamed")
    done = run("ingest", other, "--index", index, "--prune", "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["added"], report["removed"], report["chunks"]) == (3, 3, 3)
    rows = json.loads(run("documents", "list", "--index", index, "--json").stdout)
    assert {str(Path(row["source"]).parent) for row in rows} == {str(other)}


def test_what_prune_removes_without_paths_is_said_before_and_counted_right(
    run: Run, index: Path, documents: Path
) -> None:
    gone = next(iter(sorted(documents.iterdir())))
    gone.unlink()
    at = ("ingest", "--index", index, "--prune", "--json")
    plan = json.loads(run(*at, "--dry-run").stdout)
    report = json.loads(run(*at).stdout)
    assert plan["forgotten"] == report["forgotten"] == [str(gone)]
    assert (report["removed"], report["unchanged"]) == (1, 2)
