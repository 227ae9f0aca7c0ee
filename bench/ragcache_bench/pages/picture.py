"""PNGs: how right each method answers, a line per method and a panel per task; one question's tokens, band by band."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import Any

from ragcache.methods import METHODS
from ragcache_bench.contenders import CONTROLS, EXTRA, REFERENCES
from ragcache_bench.pages.figure import (
    CONTROL,
    INK,
    OURS,
    PUBLISHED,
    REFERENCE,
    SOFT,
    empty_figure,
    legend,
    plain,
)  # fmt: skip
from ragcache_bench.pages.pixels import COOL, Strip
from ragcache_bench.pages.points import LEVELS, MATTERS, differs
from ragcache_bench.table import Row

_WHOSE = {"ragcache's own": OURS, "published": PUBLISHED, "control": CONTROL, "reference, told the answer": REFERENCE}
_DASHES = {"full": "-", "naive": "--", "chance": ":"}
_NAMES = {"full": "full prefill", "naive": "naive", "chance": "chance"}
_ACROSS, _MANY = 3, 16  # panels in a row; methods beyond which only the first two have room
_CLOSE = 0.09  # points nearer than this share a label


def draw(file: Path, rows: Sequence[Row]) -> None:
    """Draw exact match, a line per method and a panel per task that differs; dots are the shares that it recomputed.

    Pooled rows always have a panel. Tasks on which nothing differs from full prefill are named below instead.

    Parameters
    ----------
    file : Path
        PNG to write.
    rows : sequence of Row
        Rows of a task stand together.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.
    """
    tasks = {task: list(group) for task, group in groupby(rows, lambda row: row.task)}
    apart = [task for task, of_task in tasks.items() if differs(of_task)] or list(tasks)[:1]
    methods = _ranked(rows, tasks[apart[0]])
    shown = apart if len(methods) <= _MANY else apart[:2]
    across = 2 if len(shown) == 4 else min(len(shown), _ACROSS)
    deep = -(-len(shown) // across)
    wide = max(1.7 + 2.9 * across, 7.5)
    figure = empty_figure(wide, deep * (0.7 + 0.27 * len(methods)) + 1.2)
    panels = figure.subplots(deep, across, sharey=True, squeeze=False)
    for panel, task in zip(panels.flat, shown, strict=False):
        _draw_task(panel, tasks[task], methods)
        panel.set_title(f"{task} ({max(row.n for row in tasks[task])} questions)", fontsize=10, loc="left", pad=14)
    for panel in panels.flat[len(shown) :]:
        panel.set_axis_off()
    figure.suptitle(_title([task for task in tasks if task not in apart], wide), fontsize=10, x=0.01, ha="left")
    used = {_whose(method) for method in methods}
    legend(figure, [(name, colour) for name, colour in _WHOSE.items() if name in used])
    figure.savefig(file, dpi=110)


def draw_bands(file: Path, bands: Sequence[Strip], spans: Sequence[range]) -> None:
    """Draw one question's bands under each other; lines across are the chunks' borders.

    Parameters
    ----------
    file : Path
        PNG to write.
    bands : sequence of Strip
        Top to bottom, with the same columns.
    spans : sequence of range
        Columns of each chunk.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.
    """
    heights = [max(len(band.names), 4) for band in bands]
    figure = empty_figure(14, 0.16 * sum(heights) + 0.5 * len(bands))
    panels = figure.subplots(len(bands), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for panel, band in zip(panels, bands, strict=True):
        colour = "Blues" if band.colour == COOL else "Oranges"
        panel.imshow(band.values.numpy(), aspect="auto", interpolation="nearest", cmap=colour, vmin=0, vmax=1)
        panel.set_title(band.title, loc="left", fontsize=9)
        panel.set_yticks(range(len(band.names)), band.names, fontsize=6)
        for edge in {edge - 0.5 for span in spans for edge in (span.start, span.stop)}:
            panel.axvline(edge, color="black", lw=0.5)
    panels[-1].set_xlabel("token of the prompt")
    figure.savefig(file, dpi=130)


def whose(method: str) -> str:
    """The colour of a method: who it is from, and whether it is a control or knows more than a method may."""
    return _WHOSE[_whose(method)]


def _whose(method: str) -> str:
    if method in REFERENCES:
        return "reference, told the answer"
    if method in CONTROLS or method in EXTRA:
        return "control"
    return "published" if method in METHODS and METHODS[method].paper else "ragcache's own"


def _ranked(rows: Sequence[Row], first: Sequence[Row]) -> list[str]:
    """Methods that have a line, best last, since axes grow upwards."""
    best: dict[str, float] = dict.fromkeys((row.method for row in rows if row.method not in LEVELS), 0.0)
    for row in first:
        if row.method in best:
            best[row.method] = max(best[row.method], row.score)
    return sorted(best, key=lambda method: best[method])


def _draw_task(panel: Any, rows: Sequence[Row], methods: Sequence[str]) -> None:
    plain(panel, grid="y")
    for row in rows:
        if row.method in LEVELS:
            panel.axvline(row.score, color=INK, linestyle=_DASHES[row.method], linewidth=1, zorder=1)
    _name_levels(panel, {row.method: row.score for row in rows if row.method in LEVELS}, len(methods))
    for height, method in enumerate(methods):
        of_method = sorted((row for row in rows if row.method == method), key=lambda row: row.charged or 0.0)
        _draw_method(panel, height, of_method, whose(method))
    panel.set_yticks(range(len(methods)), methods)
    panel.set(xlim=(-0.02, 1.05), ylim=(-0.6, len(methods) - 0.4))
    panel.set_xticks((0, 0.25, 0.5, 0.75, 1), ("0", "25", "50", "75", "100"))


def _name_levels(panel: Any, levels: Mapping[str, float], top: int) -> None:
    """Above their lines, those that stand close together in one word."""
    named = sorted(((score, _NAMES[method]) for method, score in levels.items()), key=lambda one: one[0])
    for group in _close(named, lambda one: one[0], 0.18):
        text = ", ".join(name for _, name in group)
        panel.text(group[0][0], top - 0.35, text, fontsize=7.5, ha="center", va="bottom", color=SOFT)


def _draw_method(panel: Any, height: int, rows: Sequence[Row], colour: str) -> None:
    scores = [row.score for row in rows]
    panel.plot(scores, [height] * len(rows), color=colour, lw=1.6, alpha=0.5)
    hollow = "white" if colour == REFERENCE else colour
    panel.plot(scores, [height] * len(rows), "o", ms=5, color=colour, mfc=hollow)
    charged = [(row.score, -1 if row.charged is None else round(100 * row.charged)) for row in rows]
    for group in _close(sorted(charged), lambda one: one[0], _CLOSE):
        shares = sorted({share for _, share in group})
        text = f"{shares[0]}–{shares[-1]}" if len(shares) > 2 else ", ".join(map(str, shares)).replace("-1", "exact")
        middle = sum(score for score, _ in group) / len(group)
        paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
        panel.text(middle, height + 0.2, text, fontsize=7, ha="center", va="bottom", color=colour, bbox=paper)


def _close(values: Sequence[Any], place: Any, least: float) -> Iterator[list[Any]]:
    """Values in order, those that stand nearer than `least` to the one before in one group with it."""
    group: list[Any] = []
    for value in values:
        if group and place(value) - place(group[-1]) >= least:
            yield group
            group = []
        group.append(value)
    if group:
        yield group


def _title(alike: Sequence[str], wide: float) -> str:
    """What the picture shows, and which tasks it leaves out because nothing differs on them."""
    text = "Right answers in %. The numbers at the dots are the % of context tokens that were recomputed."
    if alike:
        tasks = ", ".join(alike)
        left_out = f"Within {100 * MATTERS:.0f} points of full prefill, or within noise, on: {tasks}."
        text += f"\n{fill(left_out, int(11 * wide))}"
    return text
