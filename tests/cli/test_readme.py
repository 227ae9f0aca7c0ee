"""What the README says is so: its commands and its Python run, its figures are those of the committed files."""

import json
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


FILES = "xquad-smollm2-tuned.json", "nq-open-smollm2-tuned.json"
Row = tuple[str, float | None]
#: Lines of the first table, and the contender of each on XQuAD and on NQ-open, whose passages all have their titles.
ROWS: dict[str, tuple[Row, Row | None]] = {
    "full prefill": (("full", None), ("full", None)),
    "**ragcache's default**": (("auto+title", 0.0), ("auto", 0.0)),
    "the same, without title lines": (("auto", 0.0), None),
    "without, and 15 % recomputed": (("auto", 0.15), ("auto", 0.15)),
    "FusionRAG, 15 %": (("fusionrag", 0.15), ("fusionrag", 0.15)),
    "ProphetKV, 15 %": (("prophetkv", 0.15), ("prophetkv", 0.15)),
    "random tokens, 15 % (control)": (("random", 0.15), ("random", 0.15)),
    "naive reuse (control)": (("naive", None), ("naive", None)),
    "full prefill, with title lines": (("full+title", None), None),
    "naive reuse, with title lines": (("naive+title", None), None),
}


def test_its_first_table_is_smollm2_s_and_has_the_committed_figures() -> None:
    start, end = README.index("\n| | XQuAD"), README.index("\n\n", README.index("\n| | XQuAD") + 1)
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in README[start:end].splitlines()[3:]]
    assert [label for label, *_ in lines] == list(ROWS)
    assert README.index("\n| ") == start
    sooner = {spot.method: spot for spot in spots(BENCHMARKS)}
    for label, xquad, nq_open, times in lines:
        for said, file, row in zip((xquad, nq_open), FILES, ROWS[label], strict=True):
            assert said.replace("*", "") == ("-" if row is None else _said(file, *row)), (label, file)
        if times and times != "1×":
            spot = sooner[ROWS[label][0][0].removesuffix("+title")]
            assert times == f"{sooner_text(spot.sooner)} ({_short(spot.sooner_low)} to {_short(spot.sooner_high)})"


def _said(file: str, method: str, recompute: float | None) -> str:
    """Replies that hold an answer, and how far that is from full prefill."""
    content = json.loads((BENCHMARKS / file).read_text())
    assert (content["meta"]["reader"], content["meta"]["n"]) == ("smollm2-tuned", 200)
    [row] = [row for row in content["rows"] if (row["method"], row["recompute"]) == (method, recompute)]
    share, *gap = (row[f"sub_em{end}"] for end in ("", "_delta", "_low", "_high"))
    delta, low, high = (f"{value:+.2f}".replace("0.", ".") for value in gap)
    return f"{share:.2f}"[1:] + ("" if method == "full" else f", {delta} [{low}, {high}]")


def test_its_picture_is_described_by_the_figures_it_shows() -> None:
    text = " ".join(README[README.index("![") : README.index("hero.png")].split())
    said = {spot.method: (_short(spot.sooner), f"{100 * spot.kept:.0f}") for spot in spots(BENCHMARKS)}
    assert f"Default: {said['auto'][0]} times sooner, {said['auto'][1]} % kept" in text
    assert f"ProphetKV: {said['prophetkv'][0]} times, {said['prophetkv'][1]} %" in text
    fusionrag, cacheblend, epic = (said[name][1] for name in ("fusionrag", "cacheblend", "epic"))
    assert f"FusionRAG, CacheBlend, EPIC: {fusionrag}, {cacheblend} and {epic} %" in text
    assert f"Naive reuse: {said['naive'][0]} times, {said['naive'][1]} %" in text
    assert f"the control: {100 * kept(BENCHMARKS, 'random')['adjusted']:.0f} %" in text
    misled = kept(BENCHMARKS, "in-document", "documents-reader.json", "sections-misled")
    assert f"misleads: {100 * misled['adjusted']:.0f} %" in text
    share, low, high = (f"{100 * misled[name]:.1f}" for name in ("adjusted", "adjusted_low", "adjusted_high"))
    assert f"keeps {share} % [{low}, {high}]" in README


def test_what_recompute_and_a_missing_heading_do_is_as_measured() -> None:
    text = " ".join(README.split())
    mended = _row("documents-reader", task="sections-misled", method="in-document", recompute=0.15)
    assert f"and {_percent(mended, 'adjusted')} [{_percents(mended, 'adjusted_low', 'adjusted_high')}] with" in text
    bare = _row("documents-reader", task="sections-bare", method="in-document", recompute=0.0)
    full = _row("documents-reader", task="sections-bare", method="full")
    said = f"it answers {_percent(bare, 'score')} right, and {_percent(full, 'score')} with full prefill"
    assert f"{said}: {_percents(bare, 'delta')} points [{_percents(bare, 'ci_low', 'ci_high')}]" in text


def test_its_sentence_on_other_readers_is_as_measured() -> None:
    files = sorted(BENCHMARKS.glob("fresh-sections-*.json"))
    numbers = {4: "Four", 5: "Five"}
    assert f"{numbers[len(files)]} small readers keep half of their answers by default, two thirds at 15 %" in README
    for share, low, high in ((0.0, 0.4, 0.6), (0.15, 0.55, 0.75)):
        kept = [_row(one.stem, task="fresh-sections", method="auto", recompute=share)["adjusted"] for one in files]
        assert low < min(kept) <= max(kept) < high


def test_its_sentence_on_invented_names_is_as_measured() -> None:
    pooled = json.loads((BENCHMARKS / "own-tasks-smollm2-tuned.json").read_text())["pooled"]
    default, naive, full = (
        next(f"{row['sub_em']:.2f}"[1:] for row in pooled if row["method"] == f"{name}+title")
        for name in ("auto", "naive", "full")
    )
    said = f"SmolLM2 answers {default} by default and by naive reuse with titles alike, and {full} by full prefill with"
    assert naive == default
    assert said in " ".join(README.split())


def test_its_other_ratios_are_as_measured() -> None:
    text = " ".join(README.split())
    short, long = (
        _row("grid-qwen2.5-0.5b", context=context, chunk=512, method="auto")["speedup"] for context in (512, 8192)
    )
    assert f"{_short(short)} times at 512 tokens, {_short(long)} at 8,192" in text
    same, other = (
        _row("latency-qwen2.5-0.5b", context=4096, method=f"prefix cache{order}") for order in (", same order", "")
    )
    for row, between in ((same, "{} times sooner ({} to {}) if"), (other, "no cache ({} times, {} to {}) if")):
        assert between.format(*(_short(row[f"speedup{end}"]) for end in ("", "_low", "_high"))) in text
    others = ("latency-qwen2.5-0.5b", "growth-qwen2.5-0.5b", "peers-qwen2.5-0.5b")
    runs = [_row(name, context=4096, chunk=512, method="naive")["speedup"] for name in others]
    assert f"Other runs gave {_short(min(runs))} to {_short(max(runs))} times" in text


def _row(file: str, **wanted: object) -> dict[str, Any]:
    """The first row of a committed table with these values."""
    rows: list[dict[str, Any]] = json.loads((BENCHMARKS / f"{file}.json").read_text())["rows"]
    return next(row for row in rows if all(row[name] == value for name, value in wanted.items()))


def _percent(row: dict[str, Any], name: str) -> str:
    return f"{_percents(row, name)} %"


def _percents(row: dict[str, Any], *names: str) -> str:
    return ", ".join(f"{100 * row[name]:.0f}" for name in names)


def _short(ratio: float) -> str:
    return sooner_text(ratio).removesuffix("×")


def test_its_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (ROOT / target).exists(), target
