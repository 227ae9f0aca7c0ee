"""What the README says is so: its commands and its Python run, its figures are those of the committed files."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ragcache_bench.pages.figure import sooner_text
from ragcache_bench.pages.hero import kept, spots
from typer.testing import Result

from ragcache.model.reader import Reader

Run = Callable[..., Result]
ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "docs" / "benchmarks"
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


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 120


@pytest.mark.parametrize(
    ("method", "starts"),
    [
        ("auto", "| **ragcache's default**"),
        ("prophetkv", "| ProphetKV"),
        ("naive", "| naive reuse"),
        ("random", "The control"),
    ],
)
def test_its_figures_are_those_of_the_committed_files(method: str, starts: str) -> None:
    text = " ".join(README[README.index(f"\n{starts}") :][:420].split())
    on_misleading = "in-document" if method == "auto" else method
    misled = kept(BENCHMARKS, on_misleading, "documents-reader.json", "sections-misled")
    for row in (kept(BENCHMARKS, method), misled):
        share, low, high = (f"{100 * row[name]:.1f}" for name in ("adjusted", "adjusted_low", "adjusted_high"))
        assert re.search(rf"{share} %(\*\*)? \[{low}, {high}\]", text)
    for spot in (spot for spot in spots(BENCHMARKS) if spot.method == method):
        said = sooner_text(spot.sooner).removesuffix("×")
        assert re.search(rf"\| (\*\*)?{said}×(\*\*)? \({_short(spot.sooner_low)} to {_short(spot.sooner_high)}\)", text)


def _short(ratio: float) -> str:
    return sooner_text(ratio).removesuffix("×")


def test_its_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (ROOT / target).exists(), target
