"""Which composition of the parts closes the gap? The log of what was tried, on validation questions.

A method is one choice on each axis, so a new one is a line below. All lines are asked the same questions, with full
prefill, naive reuse, random tokens and the evidence beside them, and the table says what each is worth at what cost:

    python bench/studies/compositions.py --n 40 --seed 101 --workers 2 --out docs/benchmarks/compositions-reader.json

Rows of the table can take their place, as for the default's examination on questions that no choice was made by:

    python bench/studies/compositions.py --methods auto,prophetkv --budgets 0,0.05,0.15 --n 380 --seed 11 --workers 2 \
        --out docs/benchmarks/default-reader.json

Every line is also held, question by question, against the row that `--than` names at the same budget.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from ragcache_bench import report
from ragcache_bench.commands.options import bench, known, numbers, split
from ragcache_bench.contenders import Contender, contenders
from ragcache_bench.metrics import Interval, bootstrap
from ragcache_bench.records import Record
from ragcache_bench.table import Result, tabulate
from ragcache_bench.tasks import KNOWN, TASKS

from ragcache.attend import Scaled
from ragcache.encode import Alone, Fused, InDocument, Prefixed, Sink
from ragcache.method import Method
from ragcache.methods import find_method
from ragcache.schedule import ProgressivePruning
from ragcache.select import (
    Auxiliary,
    FirstTokens,
    Grouped,
    Product,
    QuestionAttention,
    Union,
    ValueShift,
)

ASKED = QuestionAttention(layers="all", reduce="mean")
MIDDLE = QuestionAttention(layers=(0.5, 0.625, 0.75), reduce="mean")
TRIED = (
    # In which left context?
    Method("alone", Alone(), ASKED, 0.15),
    Method("prefixed", Prefixed(), ASKED, 0.15),
    Method("sink", Sink(tokens=4), ASKED, 0.15),
    Method("fused, similar", Fused(10), ASKED, 0.15),
    Method("fused, structure", Fused(10, by="structure"), ASKED, 0.15),
    Method("fused, both", Fused(10, by="both"), ASKED, 0.15),
    Method("in document", InDocument(), ASKED, 0.15),
    Method("in document, window 128", InDocument(window=128), ASKED, 0.15),
    Method("in document, window 512", InDocument(window=512), ASKED, 0.15),
    # Which tokens?
    Method("alone, loudest layer", Alone(), QuestionAttention(layers="all", reduce="max"), 0.15),
    Method("alone, last layer", Alone(), QuestionAttention(layers="last", reduce="sum"), 0.15),
    Method("alone, middle layers", Alone(), MIDDLE, 0.15),
    Method("alone, groups of 8", Alone(), Grouped(ASKED, 8, 4), 0.15),
    Method("alone, whole chunks", Alone(), Grouped(ASKED, None), 0.15),
    Method("alone, first tokens too", Alone(), Union(FirstTokens(4), ASKED, 0.3), 0.15),
    Method("prefixed, auxiliary", Prefixed(), Grouped(Auxiliary(), 8, 4), 0.15),
    Method("fused, times value shift", Fused(10), Product(ASKED, ValueShift()), 0.15),
    Method("in document, first tokens", InDocument(), FirstTokens(), 0.15),
    Method("in document, whole chunks", InDocument(), Grouped(ASKED, None), 0.15),
    # In which layers, and how attended to?
    Method("alone, narrowing", Alone(), ASKED, 0.15, schedule=ProgressivePruning(0.8)),
    Method("alone, narrowing to nothing", Alone(), ASKED, 0.15, schedule=ProgressivePruning(1.0)),
    Method("in document, narrowing", InDocument(), ASKED, 0.15, schedule=ProgressivePruning(0.8)),
    Method("sink, scaled", Sink(tokens=4), ASKED, 0.15, attend=Scaled(0.9, 0.9)),
    Method("fused, scaled", Fused(10), ASKED, 0.15, attend=Scaled(0.95, 1.0)),
    Method("in document, scaled", InDocument(), ASKED, 0.15, attend=Scaled(0.95, 1.0)),
)
STILL = (Alone(), Prefixed(), Fused(10), Fused(10, by="structure"), InDocument(), InDocument(window=128))


def field(names: Sequence[str], budgets: Sequence[float], controls: Sequence[str]) -> Iterator[Contender]:
    """Controls, and at every budget the rows named, or else every line above; every encoding as it is, too."""
    yield from contenders(names, budgets, (0, 1, 2, 3, 4), controls)
    rows = [find_method(name) for name in names]
    still = {row.encode.recipe: row.encode for row in rows if row.encode} if names else {e.recipe: e for e in STILL}
    if 0 not in budgets:
        yield from (Contender(Method(f"{recipe}, as it is", encoder)) for recipe, encoder in still.items())
    if not names:
        yield from (Contender(method, budget) for method in TRIED for budget in budgets)


def together(records: Sequence[Record]) -> list[Record]:
    """All tasks' answers as one task's, so that intervals are over all questions."""
    return [replace(record, task="all tasks", id=f"{record.task} {record.id}") for record in records]


def beyond(records: Sequence[Record], than: str) -> dict[str, dict[str, Interval]]:
    """By task, every line's exact match less that of one row at its budget, or at any if it has none of its own."""
    found: dict[str, dict[tuple[str, float | None], dict[str, float]]] = {}
    for record in (*records, *together(records)):
        line = found.setdefault(record.task, {}).setdefault((record.method, record.recompute), {})
        line[record.id] = record.em
    return {
        task: {
            f"{method} {other:g}" if budget is not None else f"{method}, against {other:g}": bootstrap(
                [em - lines[than, other][name] for name, em in scores.items()]
            )
            for (method, budget), scores in lines.items()
            for row, other in lines
            if row == than != method and other is not None and budget in (None, other)
        }
        for task, lines in found.items()
    }


def main(
    tasks: Annotated[
        str, typer.Option(help="Tasks by name, separated by commas, or all.")
    ] = "sections,pronouns,labels,units",
    methods: Annotated[str, typer.Option(help="Rows of the table, instead of the lines of this file.")] = "",
    budgets: Annotated[str, typer.Option(help="Shares to recompute.")] = "0.05,0.10,0.15",
    controls: Annotated[
        str, typer.Option(help="Rows that take part anyway.")
    ] = "full,naive,random,evidence,true-deviation",
    than: Annotated[str, typer.Option(help="The row that all others are held against.")] = "random",
    n: Annotated[int, typer.Option(help="Questions per task.")] = 40,
    seed: Annotated[int, typer.Option(help="Of the questions.")] = 101,
    model: Annotated[str | None, typer.Option(help="Hub id or folder; else the bundled reader.")] = None,
    workers: Annotated[int, typer.Option(help="Processes that answer.")] = 1,
    out: Annotated[Path, typer.Option(help="JSON to write; tables and picture go beside it.")] = Path("tried.json"),
) -> None:
    """Ask every composition, and write the table."""
    names = list(TASKS) if tasks == "all" else split(tasks)
    examples = {name: known(name, KNOWN).examples(n, seed) for name in names}
    with bench(out.with_suffix(".jsonl"), model, "auto", 40, None, workers) as asked:
        records = asked.answers(examples, list(field(split(methods), numbers(budgets, float), split(controls))))
        gains = {task: {line: vars(gain) for line, gain in of.items()} for task, of in beyond(records, than).items()}
        about = report.meta(
            **report.about_reader(asked.reader), n=n, seed=seed, tasks=list(examples), beyond={than: gains}
        )
    report.write(out, Result(tabulate(records), about, tabulate(together(records))))


if __name__ == "__main__":
    typer.run(main)
