"""The sweep as one page: every method at every budget, quality against what it costs, what was lost, how to rerun."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

from ragcache_bench.contenders import REFERENCES
from ragcache_bench.pages.columns import Column, by_distance, cell, shown
from ragcache_bench.pages.plot import Mark, legend, marks, panel
from ragcache_bench.pages.points import COSTS, LEVELS, best, points, words
from ragcache_bench.pages.shell import Cell, page, rerun, table, terms
from ragcache_bench.pareto import ALONE, NEEDS
from ragcache_bench.table import Result, Row

_POOLS = {
    NEEDS: """Tasks whose facts cannot be understood from their own chunk. Here reuse has something to lose: the chunks
        were computed without one another. Means over tasks, each counting the same.""",
    ALONE: """Tasks whose facts stand in full in one chunk each. No loss is expected here, and what gains is luckier
        than full prefill rather than better at reading. Means over tasks, each counting the same.""",
}
_NOTES = {
    "full": "stock full prefill of the same token ids: the baseline of every comparison",
    "naive": "chunks stitched and re-rotated, nothing recomputed: the floor",
    "chance": "the score of guessing among what the context offers",
    "random": "random tokens recomputed, several seeds in turn: the control at any budget",
    "epic": "the first tokens of every chunk: were mending chunk heads enough, this would show it",
    "heads": "the same with at most 3 % of the tokens",
    "evidence": """a reference, no method: it is told which chunks hold the answer and recomputes all of their tokens;
        the target of choosing whole chunks by the question""",
    "true-deviation": """a reference, no method: it is told how far every token's K and V are from full prefill's and
        takes the farthest. What it is told is not charged, though it takes time. No upper bound: the tokens that bind a
        fact together need not be those that move most""",
}
_LOSS = ("method", "recompute", "charged", "charged_flops", "score", "delta", "adjusted", "agreement")


def html(result: Result) -> str:
    """The page, with nothing to be fetched from anywhere."""
    rows, pooled, about = result.rows, result.pooled, result.about
    looks = marks(list(dict.fromkeys(row.method for row in rows if row.method not in ("full", "chance"))))
    groups = {task: list(group) for task, group in groupby([*pooled, *rows], lambda row: row.task)}
    pools = list(dict.fromkeys(row.task for row in pooled))
    body = [
        *_head(rows, about),
        legend(looks),
        *(part for pool in pools for part in _pool(pool, groups[pool], looks, about)),
        *_overview(rows),
        *_losses(rows),
        *_by_gap(result.gaps),
        *(part for task in groups if task not in pools for part in _task(task, groups[task], looks, about)),
        *_meanings(rows),
        *rerun({name: value for name, value in about.items() if name not in ("tasks", "pools")}),
        *([f"<h3>Tasks</h3>{terms(about['tasks'])}"] if isinstance(about.get("tasks"), Mapping) else ()),
    ]
    return page(f"ragcache: quality against cost, {about.get('reader', '')}", body)


def _head(rows: Sequence[Row], about: Mapping[str, Any]) -> Iterator[str]:
    tasks = list(dict.fromkeys(row.task for row in rows))
    asked = sum(max(row.n for row in rows if row.task == task) for task in tasks)
    size = f", {about['parameters'] / 1e6:.1f} M parameters" if "parameters" in about else ""
    yield "<h1>Quality against cost</h1>"
    yield (
        f"<p>{len({words(row) for row in rows} - {'chance'})} methods and budgets, {len(tasks)} tasks, {asked:,} "
        f"questions. Reader <b>{escape(str(about.get('reader', 'unnamed')))}</b>{size}, on "
        f"{escape(str(about.get('hardware', '-')))}. Exact match stands against what was computed anew: of the tokens "
        "that were reused, and in FLOPs of everything. Ringed points are the Pareto front: nothing is as cheap and "
        "better, or as good and cheaper. Whiskers are 95 % intervals of the difference to full prefill; within them "
        "the front is noise. Highlighted rows of a table stand on one of its fronts. A click on a heading sorts.</p>"
    )


def _pool(pool: str, rows: Sequence[Row], looks: Mapping[str, Mark], about: Mapping[str, Any]) -> Iterator[str]:
    tasks = about.get("pools", {}).get(pool, ())
    held = f" Tasks: {', '.join(tasks)}." if tasks else ""
    yield from _section(pool, f"{_POOLS.get(pool, '')}{held}", rows, looks)


def _overview(rows: Sequence[Row]) -> Iterator[str]:
    """Every method on every task, as a share of what full prefill gets."""
    tasks = list(dict.fromkeys(row.task for row in rows))
    full = {row.task: row.score for row in rows if row.method == "full"}
    at = {(words(row), row.task): row for row in rows}
    yield "<h2>All tasks at a glance</h2>"
    yield "<p>Exact match; the paler a cell, the less is left of what full prefill gets on that task.</p>"
    heads = [("method", "with its budget"), *((task, f"{task}: exact match") for task in tasks)]
    cells = [
        [Cell(name, name), *(_kept(at.get((name, task)), full.get(task, 1.0)) for task in tasks)]
        for name in dict.fromkeys(name for name, _ in at)
    ]
    yield table(heads, cells)
    links = " · ".join(f'<a href="#{escape(task)}">{escape(task)}</a>' for task in tasks)
    yield f'<p class="soft">To each task: {links}</p>'


def _kept(row: Row | None, full: float) -> Cell:
    if row is None:
        return Cell("-")
    share = min(1.0, row.score / full) if full else 1.0
    return Cell(f"{row.score:.2f}", row.score, _tint(45 * share))


def _section(title: str, about: str, rows: Sequence[Row], looks: Mapping[str, Mark]) -> Iterator[str]:
    yield f'<h2 id="{escape(title)}">{escape(title)}</h2>'
    if about:
        yield f"<p>{escape(about)}</p>"
    levels = {row.method: row.score for row in rows if row.method in LEVELS}
    panels = [panel(title, name, points(rows, axis), levels, looks) for axis, name in COSTS.items()]
    yield f'<div class="pair">{"".join(panels)}</div>'
    yield _table(rows)


def _task(task: str, rows: Sequence[Row], looks: Mapping[str, Mark], about: Mapping[str, Any]) -> Iterator[str]:
    sizes = about.get("tasks", {})
    made = sizes.get(task, "") if isinstance(sizes, Mapping) else ""
    yield from _section(task, f"{max(row.n for row in rows)} questions. {made}", rows, looks)


def _table(rows: Sequence[Row]) -> str:
    fronts = {point.words for axis in COSTS for point in best(points(rows, axis))}
    columns = shown(rows)
    cells = [[_cell(row, column) for column in columns] for row in rows]
    return table([(c.title, c.about) for c in columns], cells, [words(row) in fronts for row in rows])


def _cell(row: Row, column: Column) -> Cell:
    return Cell(cell(row, column), getattr(row, column.field))


def _losses(rows: Sequence[Row]) -> Iterator[str]:
    judged = [row for row in rows if row.method != "full" and row.ci_high is not None]
    worse = sorted((row for row in judged if (row.ci_high or 0) < 0), key=lambda row: row.delta or 0)
    better = sum((row.ci_low or 0) > 0 for row in judged)
    yield "<h2>What is lost</h2>"
    yield (
        f"<p>Of {len(judged)} rows (methods, controls and references at a budget on a task) {len(worse)} answer worse "
        f"than full prefill by more than noise, {better} better; of the rest it cannot be told.</p>"
    )
    columns = [column for column in shown(rows) if column.field in _LOSS]
    heads = [("task", "which task"), *((c.title, c.about) for c in columns)]
    cells = [[Cell(row.task, row.task), *(_cell(row, column) for column in columns)] for row in worse]
    yield f"<details open><summary>All that lose, worst first</summary>{table(heads, cells)}</details>"


def _by_gap(gaps: Sequence[Row]) -> Iterator[str]:
    if not gaps:
        return
    yield "<h2>By distance</h2>"
    yield "<p>Exact match by the number of chunks that stand between a fact and the header it belongs to.</p>"
    for task, rows in groupby(gaps, lambda row: row.task):
        questions, named = by_distance(list(rows))
        heads = [("method", "with its budget"), *((f"{gap} between", f"{n} questions") for gap, n in questions.items())]
        cells = [[Cell(name, name), *map(_heat, found)] for name, found in named.items()]
        yield f"<h3>{escape(task)}</h3>{table(heads, cells)}"


def _heat(row: Row | None) -> Cell:
    if row is None:
        return Cell("-")
    return Cell(f"{row.score:.2f} of {row.n}", row.score, _tint(45 * row.score))


def _tint(percent: float) -> str:
    return f"background: color-mix(in srgb, var(--s2) {percent:.0f}%, transparent)"


def _meanings(rows: Sequence[Row]) -> Iterable[str]:
    named = {row.method for row in rows}
    yield "<h2>What the columns and rows mean</h2>"
    yield terms({column.title: column.about for column in shown(rows)})
    yield "<h3>Controls and references</h3>"
    yield terms({name: note for name, note in _NOTES.items() if name in named})
    if named & set(REFERENCES):
        yield '<p class="soft">References take no part in the fronts.</p>'
