"""How many of the answers that one row has right does each other row keep? Of a quality run, question by question.

    python bench/studies/kept.py runs/titles.jsonl --of full+title --beside naive+title --out docs/benchmarks/kept.json

The file is what `ragcache bench quality` keeps beside its JSON: an answer a line. `kept` is exact match over the
questions that the row `--of` has right, and `gain` its exact match less that of `--beside`, over all questions; both
with 95 % intervals by bootstrap over the questions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer
from ragcache_bench.commands.options import write
from ragcache_bench.markdown import table
from ragcache_bench.metrics import bootstrap, bootstrap_ratio
from ragcache_bench.records import Journal, Record

from ragcache.errors import InvalidArgument

ALL = "all tasks"

Row = tuple[str, float | None]
"""A method's name, with `+title` where its chunks have one, and its share to recompute."""

Scores = Mapping[str, Mapping[Row, Mapping[str, Record]]]  # by task, row and question


def main(
    file: Annotated[Path, typer.Argument(help="A quality run's answers, JSONL.")],
    of: Annotated[str, typer.Option(help="The row whose right answers are to be kept.")] = "full+title",
    beside: Annotated[str, typer.Option(help="The row that every other is held against.")] = "naive+title",
    tasks: Annotated[str, typer.Option(metavar="A,B", help="Tasks by name; without it all of the file's.")] = "",
    out: Annotated[Path, typer.Option(help="JSON to write; a table goes beside it.")] = Path("kept.json"),
) -> None:
    """Write the table."""
    records = [one for one in Journal(file).records if not tasks or one.task in tasks.split(",")]
    rows = list(kept(records, of, beside))
    command = f"kept.py --of {of} --beside {beside}" + (f" --tasks {tasks}" if tasks else "")
    write(out, {"meta": {"command": command, "answers": file.name}, "rows": rows})
    out.with_suffix(".md").write_text(markdown(rows, of, beside), encoding="utf-8")
    typer.echo(markdown(rows, of, beside))


def kept(records: Sequence[Record], of: str, beside: str) -> Iterator[dict[str, Any]]:
    """A row for each task and method, and for all tasks together.

    Raises
    ------
    InvalidArgument
        If nobody answered as `of` or `beside`.
    """
    for task, rows in _by_row(records).items():
        truth, other = (_find(rows, name) for name in (of, beside))
        right = {name: record.em for name, record in truth.items()}
        for (method, recompute), answers in rows.items():
            names = sorted(answers.keys() & right.keys() & other.keys())
            both = [answers[name].em * right[name] for name in names]
            share = bootstrap_ratio(both, [right[name] for name in names])
            gain = bootstrap([answers[name].em - other[name].em for name in names])
            charged = [record.charged for record in answers.values() if record.charged is not None]
            yield {
                "task": task, "method": method, "recompute": recompute, "n": len(names),
                "charged": fmean(charged) if charged else None, "score": fmean(answers[name].em for name in names),
                "kept": asdict(share), "gain": asdict(gain),
            }  # fmt: skip


def _by_row(records: Sequence[Record]) -> Scores:
    found: dict[str, dict[Row, dict[str, Record]]] = {}
    for record in records:
        for task in (record.task, ALL):
            of_task = found.setdefault(task, {})
            of_task.setdefault((record.method, record.recompute), {})[f"{record.task} {record.id}"] = record
    return found


def _find(rows: Mapping[Row, Mapping[str, Record]], name: str) -> Mapping[str, Record]:
    for (method, _), answers in rows.items():
        if method == name:
            return answers
    raise InvalidArgument(f"nobody answered as {name!r}; the file has {', '.join(sorted({row for row, _ in rows}))}")


def markdown(rows: Sequence[dict[str, Any]], of: str, beside: str) -> str:
    """The same for people."""
    head = ["task", "method", "recompute", "charged", "EM", f"of what {of} has right (95 %)", f"EM - {beside} (95 %)"]
    return table(head, [_cells(row) for row in rows])


def _cells(row: Mapping[str, Any]) -> list[str]:
    spans = [f"{one['mean']:.3f} [{one['low']:.3f}, {one['high']:.3f}]" for one in (row["kept"], row["gain"])]
    shares = ["-" if row[name] is None else f"{row[name]:.2f}" for name in ("recompute", "charged")]
    return [row["task"], row["method"], *shares, f"{row['score']:.3f}", *spans]


if __name__ == "__main__":
    typer.run(main)
