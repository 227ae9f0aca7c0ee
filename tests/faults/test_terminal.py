"""No name and no text steers the terminal, or forges a line of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ragcache.report import make_printable

ROOT = Path(__file__).parents[2]
FORGED = "a\n  1  0.99  \x1b[2K\r/etc/trusted.md\x9b1m\u202e.md"


def test_what_would_steer_or_forge_is_written_out() -> None:
    assert make_printable(FORGED) == r"a\n  1  0.99  \x1b[2K\r/etc/trusted.md\x9b1m\u202e.md"
    assert make_printable("a\n\tb\x07", lines=True) == "a\n\tb\\x07"
    assert make_printable("Zürich 日本 \U0001f600 ñ") == "Zürich 日本 \U0001f600 ñ"
    assert make_printable(os.fsdecode(b"\xff")) == r"\udcff"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / FORGED.replace("/", "_")).write_text(
        "The bridge was built in 1931. It is painted green, and two brothers designed it.\x1b]0;owned\x07"
    )
    (folder / "bad\x1b[31m\nname.md").write_bytes(os.urandom(200))
    (folder / "skipped\x1b[31m\nname.xyz").write_text("a")
    done = run(tmp_path, "ingest", "files", "--index", "index", "--model", "bundled")
    assert done.returncode == 0, done.stderr
    assert_calm(done)
    assert sum("not ingested: " in line for line in done.stderr.splitlines()) == 1
    assert r"bad\x1b[31m\nname.md can't be read" in done.stderr
    assert r"skipped\x1b[31m\nname.xyz" in done.stderr
    return tmp_path


def run(cwd: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "RAGCACHE_CALIBRATE": "0"}
    command = [sys.executable, "-c", "from ragcache_cli.main import app; app()", *arguments]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=cwd, env=environment, errors="surrogateescape"
    )


def assert_calm(done: "subprocess.CompletedProcess[str]") -> None:
    for said in (done.stdout, done.stderr):
        assert make_printable(said, lines=True) == said


@pytest.mark.slow
def test_names_and_texts_are_shown_calmly_by_every_command(index: Path) -> None:
    asked = run(index, "ask", "When was the bridge built?", "--index", "index", "--explain", "--top-k", "1")
    assert asked.returncode == 0, asked.stderr
    assert_calm(asked)
    numbered = [line for line in asked.stdout.splitlines() if line.startswith("  1  ")]
    assert len(numbered) == 1
    assert "_etc_trusted.md" in numbered[0]
    assert r"\n  1  0.99" in numbered[0]
    listed = run(index, "documents", "list", "--index", "index")
    assert_calm(listed)
    assert r"\x1b[2K" in listed.stdout
    removed = run(index, "documents", "remove", "nothing\x1b[31m\nhere", "--index", "index")
    assert removed.returncode == 2
    assert_calm(removed)
    assert len(removed.stderr.splitlines()) == 1
    named = run(index, "documents", "remove", "files", "--index", "index", "--dry-run")
    assert_calm(named)
    as_json = run(index, "documents", "list", "--index", "index", "--json")
    assert_calm(as_json)
    assert "\x1b" in json.loads(as_json.stdout)[0]["source"], "machines get it as it is"
