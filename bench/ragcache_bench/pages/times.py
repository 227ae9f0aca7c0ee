"""A PNG of times to the first token: how many times sooner than full prefill, and how many milliseconds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ragcache.methods import METHODS
from ragcache_bench.pages.figure import (
    CONTROL,
    INK,
    OTHERS,
    OURS,
    PUBLISHED,
    SOFT,
    empty_figure,
    legend,
    plain,
    sooner_text,
    spread_out,
)  # fmt: skip
from ragcache_bench.pages.picture import whose
from ragcache_bench.speed.latency import Latency

_FEW = 2  # contexts that are drawn as bars


def draw_times(file: Path, rows: Sequence[Latency]) -> None:
    """Draw bars for a few context lengths, lines for more; whiskers go from the least to the most of the repeats.

    Parameters
    ----------
    file : Path
        PNG to write.
    rows : sequence of Latency
        Of one shape.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.
    """
    contexts = sorted({row.context for row in rows})
    ours = [row for row in rows if row.method != "full"]
    few = len(contexts) <= _FEW or not ours
    figure = _bars(contexts, ours or list(rows)) if few else _lines(contexts, ours)
    figure.savefig(file, dpi=110)


def _bars(contexts: Sequence[int], rows: Sequence[Latency]) -> Any:
    tall = max(sum(row.context == context for row in rows) for context in contexts)
    figure = empty_figure(max(5.0 * len(contexts) + 0.4, 8), 0.27 * tall + 1.3)
    for panel, context in zip(figure.subplots(1, len(contexts), squeeze=False)[0], contexts, strict=True):
        group = sorted((row for row in rows if row.context == context), key=lambda row: row.speedup)
        plain(panel)
        _draw_bars(panel, group)
        panel.set_title(f"{context:,} tokens of context", loc="left", fontsize=10)
        panel.set_xlabel("times sooner to the first token than full prefill", fontsize=9)
    named = (("ragcache's own", OURS), ("published", PUBLISHED), ("control", CONTROL), ("other programs", OTHERS))
    used = {_colour(row.method) for row in rows}
    legend(figure, [(name, colour) for name, colour in named if colour in used])
    return figure


def _draw_bars(panel: Any, group: Sequence[Latency]) -> None:
    heights = range(len(group))
    colours = [_colour(row.method) for row in group]
    sooner = [row.speedup for row in group]
    spread = [[row.speedup - row.speedup_low for row in group], [row.speedup_high - row.speedup for row in group]]
    panel.barh(heights, [value - 1 for value in sooner], left=1, color=colours, alpha=0.75, height=0.65)
    panel.errorbar(sooner, heights, xerr=spread, fmt="none", ecolor=INK, elinewidth=0.9, capsize=2)
    for height, row in zip(heights, group, strict=True):
        text = f"{sooner_text(row.speedup)}   {row.ttft_ms / 1000:.2g} s"
        panel.text(max(row.speedup_high, 1) * 1.06, height, text, va="center", fontsize=8.5, color=INK)
    panel.set_yticks(heights, [_name(row, group) for row in group])
    panel.axvline(1, color=INK, lw=1)
    most = max(max(row.speedup_high for row in group), 2)
    panel.set_xscale("log")
    panel.set_xlim(min(0.5, *(row.speedup_low for row in group)), most * 3)
    _plain_ticks(panel.xaxis, [tick for tick in (0.5, 1, 2, 5, 10, 20, 50, 100) if tick <= most * 1.3])


def _lines(contexts: Sequence[int], rows: Sequence[Latency]) -> Any:
    figure = empty_figure(8.6, 4.6)
    panel = figure.subplots()
    plain(panel, grid="y")
    named: dict[str, list[Latency]] = {}
    for row in rows:
        named.setdefault(_name(row, rows), []).append(row)
    panel.set(xscale="log", yscale="log")
    for number, group in enumerate(named.values()):
        _draw_line(panel, group, 0.35 + 0.65 * (number + 1) / len(named) if _by_chunk(rows) else 1.0)
    _name_lines(panel, named)
    panel.axhline(1, color=INK, lw=1)
    panel.text(contexts[0], 1.04, "full prefill", fontsize=9, color=INK, va="bottom")
    panel.set_xlim(contexts[0] * 0.9, contexts[-1] * (contexts[-1] / contexts[0]) ** 0.28)
    _plain_ticks(panel.xaxis, contexts)
    most = max(row.speedup for row in rows)
    _plain_ticks(panel.yaxis, [tick for tick in (1, 2, 5, 10, 20, 50, 100) if tick <= most * 1.5])
    panel.set_xlabel("tokens of context", fontsize=9)
    panel.set_ylabel("times sooner to the first token", fontsize=9)
    return figure


def _draw_line(panel: Any, group: Sequence[Latency], strength: float) -> None:
    spread = [[row.speedup - row.speedup_low for row in group], [row.speedup_high - row.speedup for row in group]]
    panel.errorbar(
        [row.context for row in group], [row.speedup for row in group], spread, color=_colour(group[0].method),
        alpha=strength, lw=1.8, ms=5, marker="o", capsize=2, elinewidth=0.9,
    )  # fmt: skip


def _name_lines(panel: Any, named: dict[str, list[Latency]]) -> None:
    """Each line's name behind its last point, in steps that keep them apart on a logarithmic scale."""
    from math import exp, log

    lasts = [group[-1] for group in named.values()]
    ends = {last.context for last in lasts}
    places = spread_out([log(last.speedup) for last in lasts], 0.22) if len(ends) == 1 else None
    for number, (name, last) in enumerate(zip(named, lasts, strict=True)):
        height = exp(places[number]) if places else last.speedup
        panel.annotate(
            f"{name}: {sooner_text(last.speedup)}", (last.context, height), (9, 0 if places else -8),
            textcoords="offset points", va="center", fontsize=9, color=_colour(last.method),
        )  # fmt: skip


def _plain_ticks(axis: Any, ticks: Sequence[float]) -> None:
    from matplotlib.ticker import NullLocator

    axis.set_minor_locator(NullLocator())
    axis.set_ticks(ticks, [f"{tick:,g}" for tick in ticks])


def _by_chunk(rows: Sequence[Latency]) -> bool:
    return len({row.chunk for row in rows}) > 1


def _name(row: Latency, others: Sequence[Latency]) -> str:
    if _by_chunk(others) and len({other.method for other in others}) == 1:
        return f"chunks of {row.chunk}"
    share = f" {row.recompute:.0%}" if row.recompute else ""
    where = f", {row.store}" if len({other.store for other in others if other.store}) > 1 and row.store else ""
    size = f", chunks of {row.chunk}" if _by_chunk(others) else ""
    return f"{row.method}{share}{where}{size}"


def _colour(method: str) -> str:
    if method == "full":
        return SOFT
    return whose(method) if method in METHODS else OTHERS
