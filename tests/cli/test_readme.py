"""What the README says is so: its commands and its Python run, its figures are those of the committed files."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from ragcache_bench.pages.figure import sooner_text
from ragcache_bench.pages.hero import Spot, kept, spots, time_row
from typer.testing import Result

from ragcache.methods import METHODS
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
        if program == "ragcache" and arguments == ["demo"]:
            assert run("demo", "--help").exit_code == 0  # its own run takes half a minute: tests/cli/test_demo.py
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


#: Two runs asked the same questions: one of all rows, one of the default at other shares.
FILES = ("xquad-smollm2-tuned", "share-xquad"), ("nq-open-smollm2-tuned", "share-nq-open")
SHARE = METHODS["auto"].recompute
Row = tuple[str, float | None]
#: Lines of the first table, and the contender of each on XQuAD and on NQ-open, whose passages all have their titles.
ROWS: dict[str, tuple[Row, Row | None]] = {
    "full prefill": (("full", None), ("full", None)),
    "**ragcache's default**": (("auto+title", SHARE), ("auto", SHARE)),
    "the same, nothing recomputed": (("auto+title", 0.0), ("auto", 0.0)),
    "the same, 15 % recomputed": (("auto+title", 0.15), ("auto", 0.15)),
    "FusionRAG, 15 %": (("fusionrag", 0.15), ("fusionrag", 0.15)),
    "ProphetKV, 15 %": (("prophetkv", 0.15), ("prophetkv", 0.15)),
    "random tokens, 15 % (control)": (("random", 0.15), ("random", 0.15)),
    "naive reuse (control)": (("naive", None), ("naive", None)),
    "full prefill, with title lines": (("full+title", None), None),
    "naive reuse, with title lines": (("naive+title", None), None),
}
DEFAULTS = [label for label in ROWS if "default" in label or "the same" in label]


def test_its_first_table_is_smollm2_s_and_has_the_committed_figures() -> None:
    start, end = README.index("\n| | XQuAD"), README.index("\n\n", README.index("\n| | XQuAD") + 1)
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in README[start:end].splitlines()[3:]]
    assert [label for label, *_ in lines] == list(ROWS)
    assert README.index("\n| ") == start
    sooner = {spot.method: spot for spot in spots(BENCHMARKS)}
    for label, xquad, nq_open, times in lines:
        for said, files, row in zip((xquad, nq_open), FILES, ROWS[label], strict=True):
            file = files[label.startswith("the same")]
            assert said.replace("*", "") == ("-" if row is None else _said(file, *row)), (label, file)
        if times and times != "1×":
            method, share = ROWS[label][0]
            assert times == (_sooner(share) if label in DEFAULTS else _of_spot(sooner[method.removesuffix("+title")]))


def _sooner(share: float | None) -> str:
    """How much sooner the default's first token comes at a share."""
    row = _row("grid-qwen2.5-0.5b", context=4096, method="auto", chunk=512)
    if share:
        row = time_row(BENCHMARKS, "auto", share)
    return f"{_short(row['speedup'])}× ({_short(row['speedup_low'])} to {_short(row['speedup_high'])})"


def _of_spot(spot: Spot) -> str:
    return f"{sooner_text(spot.sooner)} ({_short(spot.sooner_low)} to {_short(spot.sooner_high)})"


def _said(file: str, method: str, recompute: float | None) -> str:
    """Replies that hold an answer, and how far that is from full prefill."""
    content = json.loads((BENCHMARKS / f"{file}.json").read_text())
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
    share, interval = _percent(mended, "adjusted"), _percents(mended, "adjusted_low", "adjusted_high")
    assert f"answers, {share} [{interval}] with" in text
    believed = _row("documents-reader", task="sections-misled", method="in-document", recompute=0.0)
    assert f"and {_percent(believed, 'adjusted')} with `--recompute 0`" in text
    full = _row("documents-reader", task="sections-bare", method="full")
    bare, own = (
        _row("documents-reader", task="sections-bare", method="in-document", recompute=share) for share in (0.0, SHARE)
    )
    said = f"{_percent(bare, 'score')} right with `--recompute 0`, {_percent(own, 'score')} by default"
    assert f"{said}, {_percent(full, 'score')} by full prefill" in text


def test_its_sentence_on_other_readers_is_as_measured() -> None:
    files = sorted(BENCHMARKS.glob("fresh-sections-*.json"))
    assert len(files) == 5
    assert "Five small readers keep two thirds of full prefill's answers at 5 %, three quarters at 15 %" in README
    for share, said in ((SHARE, 2 / 3), (0.15, 3 / 4)):
        kept = [_row(one.stem, task="fresh-sections", method="auto", recompute=share)["adjusted"] for one in files]
        assert all(abs(one - said) < 0.1 for one in kept)
        assert abs(fmean(kept) - said) < 0.03


def test_its_sentence_on_invented_names_is_as_measured() -> None:
    default, naive, full = (
        f"{_pooled('own-tasks-smollm2-tuned', method=f'{name}+title')['sub_em']:.2f}"[1:]
        for name in ("auto", "naive", "full")
    )
    said = f"SmolLM2 answers {default} by default, {naive} by naive reuse, {full} by full prefill"
    assert said in " ".join(README.split())


def test_it_names_as_many_architectures_as_were_found_to_work() -> None:
    found = json.loads((BENCHMARKS / "models.json").read_text())["rows"]
    assert f"[{sum(row['verdict'] == 'works' for row in found)} architectures](docs/models.md)" in README


def test_its_sentence_on_passages_that_stand_alone_is_as_measured() -> None:
    row = _row("share-nq-open", method="auto", recompute=SHARE)
    gain, low, high = (f"{row[name]:.3f}"[1:] for name in ("gain", "gain_low", "gain_high"))
    assert f"It is {gain} [{low}, {high}] better than naive reuse" in " ".join(README.split())
    assert row["sub_em_high"] < 0, "clearly below full prefill"


def test_its_other_ratios_are_as_measured() -> None:
    text = " ".join(README.split())
    short, long = (
        _row("grid-qwen2.5-0.5b", context=context, chunk=512, method="auto")["speedup"] for context in (512, 8192)
    )
    assert f"{_short(short)} times at 512 tokens with nothing recomputed, {_short(long)} at 8,192" in text
    same, other = (
        _row("latency-qwen2.5-0.5b", context=4096, method=f"prefix cache{order}") for order in (", same order", "")
    )
    for row, between in ((same, "{} times sooner ({} to {}) if"), (other, "no cache ({} times, {} to {}) if")):
        assert between.format(*(_short(row[f"speedup{end}"]) for end in ("", "_low", "_high"))) in text
    others = ("latency-qwen2.5-0.5b", "growth-qwen2.5-0.5b", "peers-qwen2.5-0.5b")
    runs = [_row(name, context=4096, chunk=512, method="naive")["speedup"] for name in others]
    assert f"In other runs naive reuse was {_short(min(runs))} to {_short(max(runs))} times faster" in text


def _row(file: str, **wanted: object) -> dict[str, Any]:
    """The first row of a committed table with these values."""
    rows: list[dict[str, Any]] = json.loads((BENCHMARKS / f"{file}.json").read_text())["rows"]
    return next(row for row in rows if all(row[name] == value for name, value in wanted.items()))


def _pooled(file: str, **wanted: object) -> dict[str, Any]:
    """The same of its rows over all tasks."""
    rows: list[dict[str, Any]] = json.loads((BENCHMARKS / f"{file}.json").read_text())["pooled"]
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
