"""What the tables show, and the tables in Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ragcache_bench.contenders import REFERENCES
from ragcache_bench.markdown import made_by, table
from ragcache_bench.pages.points import MATTERS, differs, words
from ragcache_bench.table import Row


@dataclass(frozen=True)
class Column:
    """A column of every table.

    Attributes
    ----------
    title, field, about : str
        What it is called, the row's field, and what it means.
    form : str
        How its numbers are written.
    interval : str
        Its bounds are the row's fields of this name with "_low" and "_high"; "" where it has none.
    """

    title: str
    field: str
    about: str
    form: str = ".3f"
    interval: str = ""


COLUMNS = (
    Column("method", "method", "a row of `ragcache methods`, a control, or a reference"),
    Column("recompute", "recompute", "the nominal share asked for; none where the cost is fixed", ".2f"),
    Column("charged", "charged", "share of the reused, inexact tokens computed again, every pass included"),
    Column("FLOPs", "charged_flops", "FLOPs of everything before the first token, over full prefill's"),
    Column("EM", "score", "exact match with an accepted answer"),
    Column(
        "SubEM",
        "sub_em",
        "share of answers that an accepted answer stands within, or all its parts",
    ),
    Column("SubEM - full (95 %)", "sub_em_delta", "SubEM minus full prefill's; paired bootstrap", "+.3f", "sub_em"),
    Column(
        "SubEM - naive (95 %)",
        "gain",
        "SubEM minus naive reuse's of the same chunks; paired bootstrap",
        "+.3f",
        "gain",
    ),
    Column("F1", "f1", "token F1, the best over the accepted answers"),
    Column("words", "words", "of an answer, mean", ".1f"),
    Column("EM where full is right", "adjusted", "exact match on the questions that full prefill gets right"),
    Column("EM - full (95 %)", "delta", "exact match minus full prefill's; paired bootstrap", "+.3f", "ci"),
    Column("recovered", "recovered", "of what naive reuse loses, if that is more than noise", ".2f", "recovered"),
    Column(
        "agrees with full",
        "agreement",
        "share of full prefill's own answers, right or wrong, over the same chunks",
        ".3f",
        "agreement",
    ),
    Column("KL", "kl", "KL(full || this) of the first token's distribution in nats, mean; full over the same chunks"),
    Column("TTFT full ÷ this", "ttft_ratio", "medians of the time to the first token in the same run", ".2f"),
)


def markdown(rows: Sequence[Row], about: Mapping[str, Any], gaps: Sequence[Row] = ()) -> str:
    """One table per task, what the columns mean, and what made it."""
    parts, columns = [made_by(about), *(f"\n{line}\n" for line in remarks(about)), alike(rows)], shown(rows)
    for task, of_task in groupby(rows, lambda row: row.task):
        group = list(of_task)
        lines = [[cell(row, column) for column in columns] for row in group]
        parts.append(f"\n## {task} ({max(row.n for row in group)} questions)\n\n")
        parts.append(table([column.title for column in columns], lines))
    for task, of_task in groupby(gaps, lambda row: row.task):
        heads, named = by_distance(list(of_task))
        found = [[name, *(row and row.score for row in at)] for name, at in named.items()]
        parts.append(f"\n## {task}: EM by the chunks between header and fact\n\n")
        parts.append(table(["method", *(f"{gap} ({n} questions)" for gap, n in heads.items())], found))
    return "".join([*parts, "\n", *(f"- {column.title}: {column.about}\n" for column in columns)])


def remarks(about: Mapping[str, Any]) -> list[str]:
    """What a run has to say of its table, from its meta: warnings, rows that took no part, times that are not shown."""
    found = [f"{task}: {warning}." for task, warnings in about.get("warnings", {}).items() for warning in warnings]
    if absent := about.get("absent"):
        found.append(f"Not in this table: {', '.join(absent)}; `--methods` adds them.")
    found += [f"Left out: {reason}." for reason in about.get("untuned", {}).values()]
    for task, share in about.get("times_differ", {}).items():
        found.append(f"No times for {task}: rows that do the same work differed by {share:.0%}.")
    return found


def alike(rows: Sequence[Row]) -> str:
    """The tasks on which no row differs from full prefill, a line each; nothing where there are none."""
    tasks = {task: list(group) for task, group in groupby(rows, lambda row: row.task)}
    lines = [_line(task, of_task) for task, of_task in tasks.items() if not differs(of_task)]
    if not lines:
        return ""
    heads = ["task", "questions", "full prefill", "least of all rows", "most of all rows"]
    said = f"On these no row differs from full prefill by more than noise and {MATTERS:g} (exact match):"
    return f"\n## Where no difference can be told\n\n{said}\n\n{table(heads, lines)}"


def _line(task: str, rows: Sequence[Row]) -> list[object]:
    full = next((row.score for row in rows if row.method == "full"), None)
    others = [row.score for row in rows if row.method not in ("full", "chance", *REFERENCES)]
    ends = [min(others), max(others)] if others else [None, None]
    return [task, max(row.n for row in rows), full, *ends]


def by_distance(rows: Sequence[Row]) -> tuple[dict[int, int], dict[str, list[Row | None]]]:
    """One task's rows by gap: how many questions each distance has, and each contender's row at each of them."""
    questions = {gap: max(row.n for row in rows if row.gap == gap) for gap in sorted({row.gap or 0 for row in rows})}
    at = {(words(row), row.gap): row for row in rows}
    return questions, {name: [at.get((name, gap)) for gap in questions] for name in dict.fromkeys(map(words, rows))}


def shown(rows: Sequence[Row]) -> list[Column]:
    """The columns that some row has a figure for."""
    return [column for column in COLUMNS if any(getattr(row, column.field) is not None for row in rows)]


def cell(row: Row, column: Column) -> str:
    """What a table shows, with its interval; a dash where there is no figure."""
    value = getattr(row, column.field)
    if value is None or isinstance(value, str):
        return value or "-"
    low, high = (getattr(row, f"{column.interval}_{side}", None) for side in ("low", "high"))
    spread = "" if low is None or high is None else f" [{low:{column.form}}, {high:{column.form}}]"
    return f"{value:{column.form}}{spread}"
