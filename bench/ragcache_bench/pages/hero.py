"""The README's picture: how soon the first token comes, and how many right answers are kept, from committed JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragcache.methods import DEFAULT_METHOD, METHODS
from ragcache_bench.pages.figure import CONTROL, INK, LINE, OURS, PUBLISHED, SOFT, empty_figure, plain, sooner_text

#: The share that published selectors recompute in the picture, and the context that times are from.
SHARE, CONTEXT = 0.15, 4096
DEFAULT_SHARE = METHODS[DEFAULT_METHOD].recompute
#: Which file of the folder has a method's right answers; all are of the same four tasks and the same model.
_ANSWERS = {
    "auto": ("default-reader.json", "all tasks"),
    "naive": ("default-reader.json", "all tasks"),
    "random": ("default-reader.json", "all tasks"),
    "prophetkv": ("default-reader.json", "all tasks"),
    "fusionrag": ("rows-admitted-reader.json", "needs other chunks"),
    "cacheblend": ("rows-admitted-reader.json", "needs other chunks"),
    "epic": ("rows-admitted-reader.json", "needs other chunks"),
}
_TIMES = "latency-qwen2.5-0.5b.json"
_TIMED_AS = {"auto": ("prophetkv", DEFAULT_SHARE)}
"""Whose time is a method's: the default differs from ProphetKV in what KV it loads, not in what it computes."""
_NAMES = {
    "auto": "ragcache's default", "naive": "naive reuse", "prophetkv": "ProphetKV", "fusionrag": "FusionRAG",
    "cacheblend": "CacheBlend", "epic": "EPIC",
}  # fmt: skip
_COLOURS = {"auto": OURS, "naive": CONTROL}  # the others: published
_NOTE = """\
%: the share of context tokens that is recomputed; the default recomputes 5 %, naive reuse none. Bars: 95 % intervals.
Times: 4,096 tokens of context, a model of Qwen2.5-0.5B's size with random weights, 2 CPU cores. Answers: a test model
of 4M parameters, questions that need another chunk of the same document. On self-contained questions everything
here is within 1 point of full prefill."""


@dataclass(frozen=True)
class Spot:
    """A method's place in the picture.

    Attributes
    ----------
    method : str
        A row of the table of methods.
    time, sooner, sooner_low, sooner_high : float
        Time to the first token over full prefill's; full prefill's over this one's: median, least and most.
    kept, low, high : float
        Share of the questions which full prefill answers right that this one does too, with its 95 % interval.
    n : int
        Questions asked.
    """

    method: str
    time: float
    sooner: float
    sooner_low: float
    sooner_high: float
    kept: float
    low: float
    high: float
    n: int


def spots(folder: Path) -> list[Spot]:
    """Everything that has both a time and right answers, as the committed files have it.

    Parameters
    ----------
    folder : Path
        `docs/benchmarks`.
    """
    return [_spot(folder, method) for method in _ANSWERS if method != "random"]


def kept(folder: Path, method: str, file: str = "", task: str = "") -> Mapping[str, Any]:
    """The row of right answers that a method has in a file: at `SHARE`, or at what it recomputes of itself."""
    own, pool = _ANSWERS.get(method, ("", ""))
    return _row(folder / (file or own), "rows" if task else "pooled", method, task=task or pool)


def draw_hero(file: Path, folder: Path) -> None:
    """Draw the picture.

    Parameters
    ----------
    file : Path
        PNG to write.
    folder : Path
        `docs/benchmarks`.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.
    """
    figure = empty_figure(8.6, 5.0)
    panel = figure.subplots()
    plain(panel, grid="y")
    _draw_control(panel, kept(folder, "random"))
    for spot in spots(folder):
        _draw_spot(panel, spot)
    _draw_full(panel)
    _draw_misled(panel, spots(folder)[0], kept(folder, "in-document", "documents-reader.json", "sections-misled"))
    panel.set(xlim=(-1, 108), ylim=(-4, 109), yticks=range(0, 101, 20), xticks=range(0, 101, 20))
    panel.xaxis.set_major_formatter("{x:.0f} %")
    panel.yaxis.set_major_formatter("{x:.0f} %")
    panel.set_xlabel("← sooner       time to the first token, in % of full prefill's", fontsize=10, color=INK)
    panel.set_ylabel("right answers of full prefill that are kept", fontsize=10, color=INK)
    figure.supxlabel(_NOTE, fontsize=8, color=SOFT, x=0.01, ha="left")
    figure.savefig(file, dpi=130)


def time_row(folder: Path, method: str, share: float | None = None) -> Mapping[str, Any]:
    """The row of times that a method has, at the share of the picture or at another."""
    timed, own = _TIMED_AS.get(method, (method, None))
    at = share if share is not None else own
    return _row(folder / _TIMES, "rows", timed, context=CONTEXT, chunk=512, **({} if at is None else {"recompute": at}))


def _spot(folder: Path, method: str) -> Spot:
    answers = kept(folder, method)
    times = time_row(folder, method)
    return Spot(
        method, 1 / times["speedup"], times["speedup"], times["speedup_low"], times["speedup_high"],
        answers["adjusted"], answers["adjusted_low"], answers["adjusted_high"], answers["n"],
    )  # fmt: skip


def _row(file: Path, part: str, method: str, **wanted: Any) -> Mapping[str, Any]:
    rows: Sequence[Mapping[str, Any]] = json.loads(file.read_text(encoding="utf-8"))[part]
    own = None if method == "naive" else DEFAULT_SHARE if method in ("auto", "in-document") else SHARE
    wanted = {"recompute": own, **wanted}
    (row,) = (
        row for row in rows if row["method"] == method if all(row[name] == value for name, value in wanted.items())
    )
    return row


def _draw_spot(panel: Any, spot: Spot) -> None:
    x, y = 100 * spot.time, 100 * spot.kept
    default, colour = spot.method == "auto", _COLOURS.get(spot.method, PUBLISHED)
    panel.plot([x, x], [100 * spot.low, 100 * spot.high], color=colour, lw=1.4, alpha=0.6)
    panel.plot(x, y, "o", ms=14 if default else 8, color=colour, zorder=3)
    share = "" if spot.method in _COLOURS else f" {100 * SHARE:.0f} %"
    text = f"{_NAMES[spot.method]}{share}: {sooner_text(spot.sooner)} sooner, {y:.0f} % kept"
    if spot.method == "naive":  # which has a neighbour on its right
        text = text.replace(": ", "\n").replace(", ", "\n")
    look: dict[str, Any] = {"fontsize": 13, "fontweight": "bold"} if default else {"fontsize": 10}
    away = (12 if default else 7, 0)
    panel.annotate(text, (x, y), away, textcoords="offset points", va="center", color=colour, **look)


def _draw_full(panel: Any) -> None:
    panel.plot(100, 100, "s", ms=10, color=INK, zorder=3)
    panel.annotate("full prefill", (100, 100), (0, -10), textcoords="offset points", ha="center", va="top", fontsize=11)


def _draw_control(panel: Any, row: Mapping[str, Any]) -> None:
    """Random tokens were not timed at this size, so that they have a height and no place."""
    panel.axhspan(100 * row["adjusted_low"], 100 * row["adjusted_high"], color=LINE, alpha=0.6, lw=0)
    text = f"control: random tokens {100 * SHARE:.0f} %: {100 * row['adjusted']:.0f} % kept"
    panel.text(107, 100 * row["adjusted"], text, ha="right", va="center", fontsize=10, color=SOFT)


def _draw_misled(panel: Any, default: Spot, row: Mapping[str, Any]) -> None:
    x, y = 100 * default.time, 100 * row["adjusted"]
    panel.plot(x, y, "o", ms=9, color=OURS, mfc="white", mew=2, zorder=3)
    text = f"the default where the document misleads: {y:.0f} % kept"
    panel.annotate(text, (x, y), (9, 6), textcoords="offset points", va="bottom", fontsize=10, color=OURS)
