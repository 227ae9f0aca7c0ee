"""What the README says is so: its commands and its Python run, its table is the code's."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ragcache_cli.docs import methods_table
from typer.testing import Result

from ragcache.model.reader import Reader

Run = Callable[..., Result]
ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
INSTALLATION = [["pip", "install", ".[offline]"], ["uv", "pip", "install", "--torch-backend", "cpu", ".[offline]"]]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, documents: Path, checkpoint: Path) -> None:
    """A folder as the README's reader has it, and a tiny model for every hub id."""
    load = Reader.load.__func__  # type: ignore[attr-defined]

    def tiny(name: str, **options: Any) -> Reader:
        reader: Reader = load(Reader, str(checkpoint), **options)
        reader.name = name
        return reader

    monkeypatch.setattr(Reader, "load", staticmethod(tiny))
    monkeypatch.setattr("ragcache.model.hub._is_cached", lambda name: True)
    documents.rename(tmp_path / "handbook")
    (tmp_path / "notes.md").write_text("# Notes\n\nThe ferry was late.")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("hub")
def test_its_commands_run(run: Run) -> None:
    lines = [shlex.split(line) for block in blocks("bash") for line in block.splitlines()]
    for program, *arguments in lines:
        if program == "make":
            assert all(f"\n{target}:" in MAKEFILE for target in arguments)
        elif program == "ragcache":
            done = run(*arguments)
            assert done.exit_code == 0, done.output
        else:
            assert [program, *arguments] in INSTALLATION
    assert "ragcache" in {line[0] for line in lines}


@pytest.mark.usefixtures("hub")
def test_its_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), {})
    assert "4/4 chunks cached" in capsys.readouterr().out


def test_its_table_of_methods_is_the_code_s() -> None:
    assert f"-->\n{methods_table()}\n<!--" in README, "put `methods_table()` of ragcache_cli.docs there"


def test_its_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (ROOT / target).exists(), target
