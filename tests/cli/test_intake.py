"""What `ingest` and `ask` say of files: which are left out, and where an answer comes from."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]


@pytest.fixture
def mixed(documents: Path) -> Path:
    """Three documents, an image, an ignored one, and more unreadable ones than are listed."""
    (documents / "image.png").write_text("x")
    (documents / "secret.md").write_text("Nobody knows.")
    (documents / ".gitignore").write_text("secret.md\n")
    for number in range(7):
        (documents / f"empty{number}.md").write_text("")
    return documents


@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_what_is_left_out_is_named_and_counted(
    run: Run, mixed: Path, tmp_path: Path, checkpoint: Path, dry: list[str]
) -> None:
    line = ["ingest", mixed, "--index", tmp_path / "index", "--model", checkpoint, *dry]
    shown = run(*line)
    assert shown.exit_code == 0
    assert shown.stderr.count("not ingested: ") == 5
    assert "empty4.md can't be read: it is empty" in shown.stderr
    assert "and 2 more that can't be read" in shown.stderr
    assert "no reader takes them: " in shown.stderr
    assert "a pattern leaves them out: " in shown.stderr
    answer = json.loads(run(*line, "--json").stdout)
    assert len(answer["errors"]) == 7
    assert [Path(path).name for path in answer["skipped"]] == ["image.png"]
    assert [Path(path).name for path in answer["ignored"]] == [".gitignore", "secret.md"]
    assert run(*line, "--strict").exit_code == 1
    assert run(*line, "--strict", "--exclude", "empty*", "--exclude", "*.png").exit_code == 0


def test_patterns_and_ignore_files_decide_what_is_read(
    run: Run, documents: Path, tmp_path: Path, checkpoint: Path
) -> None:
    (documents / ".ragcacheignore").write_text("otter.md\n")

    def planned(*options: str) -> int:
        line = ["ingest", documents, "--index", tmp_path / "index", "--model", checkpoint, "--dry-run", "--json"]
        return int(json.loads(run(*line, *options).stdout)["documents"])

    assert planned() == 2
    assert planned("--no-ignore") == 3
    assert planned("--exclude", "!otter.md") == 3
    assert planned("--exclude", "*.html", "--exclude", "tide.*", "--no-ignore") == 1


def test_sources_are_shown_with_their_heading_and_an_excerpt(run: Run, index: Path) -> None:
    lines = run("ask", "How often does the Otter ferry cross the sound?", "--index", index).stdout.splitlines()
    number = next(number for number, line in enumerate(lines) if line.startswith("  1  "))
    assert lines[number].endswith('otter.md, "Otter"')
    assert lines[number + 1].strip() == "Otter is a ferry that crosses the sound every hour from seven in the morning."


def test_a_limit_that_keeps_chunks_shorter_is_said(run: Run, documents: Path, tmp_path: Path, checkpoint: Path) -> None:
    line = ["ingest", documents, "--index", tmp_path / "index", "--model", checkpoint, "--chunk-tokens", 300]
    assert "chunks are shorter than the 300 tokens asked for" in run(*line).stderr
    assert len(json.loads(run(*line, "--json").stdout)["notes"]) == 1
