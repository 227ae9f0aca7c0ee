"""An index that is published at a URL, by its commands."""

import json
from pathlib import Path

import pytest
from cli.conftest import Run
from ragcache_cli.main import app
from typer.testing import CliRunner

from ragcache.store import read_attachment

pytest.importorskip("obstore")


def test_one_command_publishes_and_another_reads_by_the_url(
    run: Run, documents: Path, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("RAGCACHE_DISK_CACHE", "5MB")
    url, index = f"file://{tmp_path / 'shared'}", tmp_path / "index"
    made = run("ingest", documents, "--index", index, "--model", checkpoint, "--remote", url, "--max-size", "1GiB")
    assert made.exit_code == 0, made.output
    known = read_attachment(index)
    assert known is not None
    assert (known.url, known.max_bytes) == (url, 1 << 30)
    asked = run("ask", "Who leads the Tide project?", "--index", url, "--json", "--max-new-tokens", 2)
    assert asked.exit_code == 0, asked.output
    answer = json.loads(asked.stdout)
    assert {chunk["cache"] for chunk in answer["chunks"]} <= {"hit", "exact"}
    [copy] = (tmp_path / "cache" / "ragcache" / "indexes").iterdir()
    attached = read_attachment(copy)
    assert attached is not None
    assert attached.max_bytes == 5_000_000
    removed = run("documents", "remove", documents / "otter.md", "--yes", "--index", index)
    assert removed.exit_code == 0, removed.output
    listed = run("documents", "list", "--index", url, "--json")
    assert not [one for one in json.loads(listed.stdout) if "otter" in str(one)]


@pytest.mark.parametrize("url", ["ftp://bucket/x", "s3://id:a-secret@bucket/x"])
def test_a_url_that_is_none_is_refused_without_a_traceback(url: str) -> None:
    result = CliRunner().invoke(app, ["ask", "Who?", "--index", url])
    assert result.exit_code == 2
    assert "a-secret" not in result.output
    assert "object store" in result.output or "environment" in result.output
