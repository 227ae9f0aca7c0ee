"""PNGs: quality against cost, one panel per task and cost; one question's tokens, one band per layer."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from ragcache_bench.pages.figure import empty_figure
from ragcache_bench.pages.pixels import COOL, Strip
from ragcache_bench.pages.points import COSTS, LEVELS, Point, best, points
from ragcache_bench.table import Row

_DASHES = {"full": "-", "naive": "--", "chance": ":"}
_SHAPES = "osD^v"
_PANELS = 4  # in a row
_TICKS = (0, 0.05, 0.15, 0.3, 0.5, 1)


def draw(file: Path, rows: Sequence[Row], costs: Sequence[str] = ("charged",)) -> None:
    """Draw every task's rows against each cost; full prefill, naive and chance as lines across, the front in black.

    Parameters
    ----------
    file : Path
        PNG to write.
    rows : sequence of Row
        Rows of a task stand together.
    costs : sequence of str
        Of `COSTS`; a task's panels stand side by side.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.
    """
    tasks = {task: list(group) for task, group in groupby(rows, lambda row: row.task)}
    wanted = [(task, axis) for task in tasks for axis in costs]
    columns = min(len(wanted), _PANELS)
    lines = -(-len(wanted) // columns)
    figure = empty_figure(3.4 * columns + 1.6, 3.1 * lines)
    panels = figure.subplots(lines, columns, sharey=True, squeeze=False)
    looks = _looks(rows)
    for panel, (task, axis) in zip(panels.flat, wanted, strict=False):
        _draw_levels(panel, tasks[task])
        _draw_points(panel, points(tasks[task], axis), looks)
        panel.set(title=task, xlabel=COSTS[axis], ylim=(-0.02, 1.02), xlim=(0, 1.04))
    for panel in panels.flat[len(wanted) :]:
        panel.set_axis_off()
    figure.supylabel("exact match")
    seen = {label: handle for panel in panels.flat for handle, label in zip(*panel.get_legend_handles_labels())}  # noqa: B905
    figure.legend(seen.values(), seen.keys(), loc="outside right upper", frameon=False)
    figure.savefig(file, dpi=130)


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


def _looks(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    from matplotlib import colormaps

    names = dict.fromkeys(row.method for row in rows if row.method not in LEVELS)
    return {
        name: {"color": colormaps["tab10"](number % 10), "marker": _SHAPES[(number + number // 10) % len(_SHAPES)]}
        for number, name in enumerate(names)
    }


def _draw_levels(panel: Any, rows: Sequence[Row]) -> None:
    for row in rows:
        if row.method in LEVELS:
            panel.axhline(row.score, color="black", linestyle=_DASHES[row.method], linewidth=1, label=row.method)


def _draw_points(panel: Any, found: Sequence[Point], looks: Mapping[str, Mapping[str, Any]]) -> None:
    for name, look in looks.items():
        at = sorted((p.cost, p.quality) for p in found if p.method == name)
        if at:
            panel.plot(*zip(*at, strict=True), ms=4, lw=1, label=name, alpha=0.8, **look)
    unbeaten = [(p.cost, p.quality) for p in best(found)]
    if unbeaten:
        x, y = zip(*unbeaten, strict=True)
        panel.step(x, y, where="post", color="black", lw=1, alpha=0.5)
        panel.plot(x, y, "o", ms=8, mfc="none", mec="black", mew=1, label="Pareto front")
    # Small budgets would lie on top of each other on a linear scale.
    panel.set_xscale("function", functions=(lambda v: abs(v) ** 0.5, lambda v: v**2))
    panel.set_xticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
