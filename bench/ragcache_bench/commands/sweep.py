"""`ragcache bench sweep`: every method at every budget, as one page."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from ragcache_cli.options import AsJson
from ragcache_cli.terminal import note

from ragcache_bench.commands import options as options
from ragcache_bench.commands.options import numbers, show, split
from ragcache_bench.commands.quality import Setup, chosen_tasks, on_tasks

if TYPE_CHECKING:
    from ragcache_bench.table import Result

_ROW = ("task", "method", "recompute", "charged", "charged_flops", "score", "delta", "ci_low", "ci_high", "recovered")


def sweep(
    result: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Draw this result of `bench quality`; run nothing.")
    ] = None,
    admission: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Pool tasks by the verdicts that `bench admit` wrote there.")
    ] = None,
    tasks: options.Tasks = None,
    data: options.Data = None,
    chunks: options.Passages = None,
    names: Annotated[
        str | None,
        typer.Option("--methods", "--method", metavar="A,B", help="Rows of `ragcache methods`; without it all."),
    ] = None,
    budgets: options.Budgets = options.BUDGETS,
    n: options.Count = 200,
    seed: options.Seed = 0,
    random_seeds: options.RandomSeeds = 5,
    model: options.Reader = None,
    adapter: options.Adapter = None,
    dtype: options.Dtype = "auto",
    max_new_tokens: options.Tokens = 40,
    workers: options.Workers = 1,
    threads: options.Threads = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="JSON to write; .md, .png, .html and the answers' .jsonl go beside it.")
    ] = Path("sweep.json"),
    as_json: AsJson = False,
) -> None:
    """Set quality against what it costs, for all methods and budgets, with the Pareto front; write one HTML page.

    Cost is charged recompute and charged FLOPs. Tasks that need other chunks and self-contained ones are pooled apart,
    by what the tasks say of themselves, or by --admission. The page loads nothing and names the command that made its
    figures. A run that was interrupted resumes; --from draws a result again without one.
    """
    from ragcache.methods import list_methods
    from ragcache_bench import report
    from ragcache_bench.pages import sweep as page

    report.check_plotting()
    verdicts = _verdicts(admission) if admission else None  # a mistyped name is to show before the run
    if result is None:
        rows = split(names) if names else list(list_methods())
        setup = Setup(
            rows,
            numbers(budgets, float),
            tuple(range(random_seeds)),
            n,
            model,
            dtype,
            max_new_tokens,
            threads,
            out,
            adapter=adapter,
        )
        on_tasks(setup, chosen_tasks(tasks, data or [], chunks), seed, workers)
    found = _pooled(report.read(result or out), verdicts)
    report.write(out, found, picture=found.pooled or found.rows)
    out.with_suffix(".html").write_text(page.html(found), encoding="utf-8")
    show(json.loads(out.read_text(encoding="utf-8")), _ROW, as_json=as_json)
    note(f"wrote {out.with_suffix('.html')}, and {out.name}, .md and .png beside it")


def _pooled(found: "Result", verdicts: dict[str, bool] | None) -> "Result":
    """The result with its tasks pooled: by verdict, else as it was, else by what the tasks say of themselves."""
    from dataclasses import replace

    from ragcache_bench.pareto import pooled, pools
    from ragcache_bench.tasks import TASKS

    run = dict.fromkeys(row.task for row in found.rows)
    groups = found.about.get("pools") if verdicts is None else None
    if groups is None:
        needs = {name: task.needs for name, task in TASKS.items()} if verdicts is None else verdicts
        groups = pools({name: needs[name] for name in run if name in needs})
    return replace(found, about={**found.about, "pools": groups}, pooled=pooled(found.rows, groups))


def _verdicts(admission: Path) -> dict[str, bool]:
    """Whether each admitted task needs other chunks; a task without a verdict is in no pool."""
    from ragcache.errors import InvalidArgument
    from ragcache_bench.pareto import ALONE, NEEDS

    try:
        verdicts = {row["task"]: row["verdict"] for row in json.loads(admission.read_text(encoding="utf-8"))["rows"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidArgument(
            f"{admission} holds no verdicts ({type(error).__name__}); name the JSON that `ragcache bench admit` wrote"
        ) from error
    return {task: verdict == NEEDS for task, verdict in verdicts.items() if verdict in (NEEDS, ALONE)}
