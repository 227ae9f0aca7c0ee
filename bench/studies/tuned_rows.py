"""What a model that was trained to read chunks apart is worth: each tuned row beside its untuned model, same questions.

Every adapter's row answers at each share to recompute, beside full prefill *of the same tuned model*; the control that
was tuned under ordinary attention answers by naive reuse and by the default. What anybody can do without tuning stands
beside them, a title line in each chunk among it. All are held against the untuned model's full prefill, question by
question; tasks that need other chunks and self-contained twins are pooled apart:

    python bench/studies/tuned_rows.py --model bundled --adapter runs/siblings/turborag --adapter runs/siblings/kvlink \
        --tasks sections,pronouns --out docs/benchmarks/tuned-rows-reader.json
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from ragcache_bench import report
from ragcache_bench.commands import options
from ragcache_bench.commands.options import bench, numbers, split
from ragcache_bench.commands.quality import chosen_tasks
from ragcache_bench.contenders import TITLE, Contender, contenders
from ragcache_bench.records import Record
from ragcache_bench.table import Result, tabulate
from ragcache_bench.tasks import Example

from ragcache.errors import InvalidArgument
from ragcache.methods import METHODS
from ragcache.model.tuning import Tuning, read_tuning

FIXED = ("full", "naive", f"full{TITLE}", f"naive{TITLE}")
SHARES = ("auto", f"auto{TITLE}")


def field(tuning: Tuning | None, budgets: Sequence[float]) -> list[Contender]:
    """Who answers for a model: what any model can, or full prefill and the row it was trained for."""
    shares = (0.0, *budgets)
    if tuning is None:
        others = [*contenders(("random",), budgets, (0, 1), ()), *contenders(SHARES, shares, (0,), ())]
        return [*contenders(FIXED, (), (0,), ()), *others]
    rows = [row for row in METHODS.values() if row.finetuned == tuning.recipe]
    if not rows:
        return [*contenders(("full", "naive", f"naive{TITLE}"), (), (0,), ()), *contenders(SHARES, budgets, (0,), ())]
    titled = [f"{row.name}{TITLE}" for row in rows]
    return contenders(("full", *(row.name for row in rows), *titled), shares, (0,), ())


def named(records: Sequence[Record], tuning: Tuning | None) -> Iterator[Record]:
    """The same answers; a tuned model's rows say whose they are."""
    for record in records:
        own = tuning is None or METHODS[record.method.removesuffix(TITLE)].finetuned
        yield record if own else replace(record, method=f"{record.method} of {tuning.recipe if tuning else ''}")


def pooled(records: Sequence[Record]) -> list[Record]:
    """The answers of all tasks as one task's, for their intervals; twins, which need no other chunk, by themselves.

    A row that some questions were not asked by, since nobody knows titles there, is left out.
    """
    found = [
        replace(
            record, task="all twins" if record.task.endswith("-twin") else "all tasks", id=f"{record.task} {record.id}"
        )
        for record in records
    ]
    answered = defaultdict[tuple[str, str, float | None], set[str]](set)
    for record in found:
        answered[record.task, record.method, record.recompute].add(record.id)
    return [
        record
        for record in found
        if answered[record.task, record.method, record.recompute] == answered[record.task, "full", None]
    ]


def known_tuning(adapter: Path) -> Tuning:
    """The record in an adapter's folder.

    Raises
    ------
    InvalidArgument
        If it has none.
    """
    tuning = read_tuning(adapter)
    if tuning is None:
        raise InvalidArgument(f"{adapter} has no record of `ragcache finetune`; name a folder that it wrote")
    return tuning


def check_distinct(readers: Sequence[tuple[Path | None, Tuning | None]]) -> None:
    """Refuse two adapters of one recipe, whose answers would stand in one row.

    Raises
    ------
    InvalidArgument
        If there are two.
    """
    known: dict[str, Path] = {}
    for folder, tuning in readers:
        if folder and tuning and (other := known.setdefault(tuning.recipe, folder)) != folder:
            raise InvalidArgument(
                f"{other} and {folder} are both of the recipe {tuning.recipe}, and a table has one row for it; run the "
                "study once for each, with another --out"
            )


def lost(folder: Path) -> dict[str, Any]:
    """What tuning cost on ordinary prompts, as `ragcache finetune` measured it: nats a token before and after."""
    report_file = folder / "report.json"
    return {"ordinary": json.loads(report_file.read_text(encoding="utf-8"))["ordinary"]} if report_file.exists() else {}


def main(
    adapter: Annotated[list[Path], typer.Option(metavar="DIR", help="Folder of `ragcache finetune`; repeatable.")],
    model: Annotated[str, typer.Option(metavar="NAME", help="What all of them were trained from.")],
    tasks: options.Tasks = None,
    data: options.Data = None,
    chunks: options.Passages = None,
    budgets: options.Budgets = "0.05",
    n: options.Count = 200,
    seed: options.Seed = 31,
    dtype: options.Dtype = "auto",
    methods: Annotated[str, typer.Option(metavar="A,B", help="Only these rows, of every model; else all.")] = "",
    max_new_tokens: options.Tokens = 40,
    workers: options.Workers = 1,
    out: Annotated[Path, typer.Option(help="JSON to write; table and picture go beside it.")] = Path("tuned.json"),
) -> None:
    """Ask every model the same questions, and write one table."""
    chosen = chosen_tasks(tasks, data or [], chunks)
    examples: dict[str, list[Example]] = {name: list(task.examples(n, seed)) for name, task in chosen.items()}
    readers = [(None, None), *((folder, known_tuning(folder)) for folder in adapter)]
    check_distinct(readers)
    only = set(split(methods))
    records, about, how = list[Record](), dict[str, Any](), list[dict[str, Any]]()
    for folder, tuning in readers:
        journal = out.with_name(f"{out.stem}-{tuning.recipe if tuning else 'untuned'}.jsonl")
        named_folder = str(folder) if folder else None
        with bench(journal, model, dtype, max_new_tokens, 1, workers, together=True, adapter=named_folder) as asked:
            rows = [one for one in field(tuning, numbers(budgets, float)) if not only or one.method.name in only]
            found = asked.answers(examples, rows)
            records += named(found, tuning)
            about = about or report.about_reader(asked.reader)
        how += [asdict(tuning) | lost(folder)] if folder and tuning else []
    about = report.meta(**about, n=n, seed=seed, tasks=list(examples), tuned=how, max_new_tokens=max_new_tokens)
    report.write(out, Result(tabulate(records), about, tabulate(pooled(records)) if len(examples) > 1 else []))


if __name__ == "__main__":
    typer.run(main)
