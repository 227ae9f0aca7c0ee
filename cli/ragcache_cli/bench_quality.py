"""`ragcache bench quality`: how good each method answers, with the controls that keep the figures honest."""

from pathlib import Path
from typing import Annotated

import typer

from ragcache_cli.bench_options import Methods, Threads, known, numbers, show, split, use_threads
from ragcache_cli.options import AsJson
from ragcache_cli.terminal import note, progress

_METHODS = "prefix,naive,link0,epic,cacheblend,fusionrag,prophetkv"
_ROW = ("task", "method", "recompute", "charged", "charged_flops", "score", "ci_low", "ci_high", "agreement")


def quality(
    tasks: Annotated[
        str | None, typer.Option(metavar="A,B", help="Tasks, separated by commas; without it all of them.")
    ] = None,
    names: Methods = _METHODS,
    budgets: Annotated[str, typer.Option(metavar="R,R", help="Shares to recompute.")] = "0.05,0.15,0.30",
    n: Annotated[int, typer.Option("--n", min=1, metavar="N", help="Questions per task.")] = 200,
    seed: Annotated[int, typer.Option(metavar="S", help="Of the questions.")] = 0,
    random_seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Seeds of the random control.")] = 3,
    model: Annotated[str, typer.Option(metavar="NAME", help="Hub id or folder of the model.")] = "bundled",
    dtype: Annotated[str, typer.Option(metavar="DTYPE", help="auto, float32, bfloat16 or float16.")] = "auto",
    max_new_tokens: Annotated[int, typer.Option(min=1, metavar="N", help="Most tokens of an answer.")] = 16,
    threads: Threads = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="JSON to write; .md, .png and the answers' .jsonl go beside it.")
    ] = Path("quality.json"),
    as_json: AsJson = False,
) -> None:
    """Answer generated questions with every method and budget; write table and picture.

    The controls full, naive, random, epic and first4 always take part. A run that was interrupted resumes. To use
    several cores, start one process for each part of the tasks with the same --out, then one over all of them.
    """
    from ragcache.evaluate import report
    from ragcache.evaluate.contenders import contenders
    from ragcache.evaluate.runs import run
    from ragcache.evaluate.table import tabulate
    from ragcache.evaluate.tasks import TASKS
    from ragcache.rag import load_reader

    report.check_plotting()
    shares, seeds = numbers(budgets, float), tuple(range(random_seeds))
    field = contenders(split(names), shares, seeds)
    chosen = {name: known(name, TASKS) for name in (split(tasks) if tasks else TASKS)}
    use_threads(threads)
    reader = load_reader(model, dtype=dtype)
    examples = {name: task.examples(n, seed) for name, task in chosen.items()}
    with progress() as shown:
        records = run(reader, examples, field, out.with_suffix(".jsonl"), max_new_tokens=max_new_tokens, progress=shown)
    chance = {name: value for name, task in chosen.items() if (value := getattr(task, "chance", None)) is not None}
    rows = tabulate(records, chance)
    about = report.meta(
        **report.about_reader(reader), tasks={name: repr(task) for name, task in chosen.items()}, n=n, seed=seed,
        random_seeds=seeds, budgets=shares, max_new_tokens=max_new_tokens, memory_tier=True,
    )  # fmt: skip
    files = report.write(out, rows, about)
    show({"meta": about, "rows": [vars(row) for row in rows]}, _ROW, as_json=as_json)
    note(f"wrote {', '.join(map(str, files))}")
