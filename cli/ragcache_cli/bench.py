"""`ragcache bench`: how good and how fast each method answers, with the controls that keep the figures honest."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ragcache_cli.options import AsJson
from ragcache_cli.terminal import note, progress, say_json, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragcache.bundled import CorpusQuestion

app = typer.Typer(no_args_is_help=True, help="Measure the methods: quality on tasks, time to the first token.")

Number = TypeVar("Number", int, float)

_METHODS = "prefix,naive,link0,epic,cacheblend,fusionrag,prophetkv"
_ROW = ("task", "method", "recompute", "charged", "charged_flops", "score", "ci_low", "ci_high", "agreement")
_LATENCY = ("context", "method", "recompute", "charged_flops", "ttft_ms", "speedup", "speedup_low", "speedup_high")
_CORPUS = ("kind", "method", "recompute", "n", "recall", "score", "ci_low", "ci_high", "score_found", "score_unseen")
_STAGES = ("load_ms", "place_ms", "select_ms", "prefill_ms")

Methods = Annotated[str, typer.Option("--methods", "--method", metavar="A,B", help="Rows of `ragcache methods`.")]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, metavar="T", help="CPU threads; without it torch's own number.")
]


@app.command("quality")
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
    shares, seeds = _numbers(budgets, float), tuple(range(random_seeds))
    field = contenders(_split(names), shares, seeds)
    chosen = {name: _known(name, TASKS) for name in (_split(tasks) if tasks else TASKS)}
    _use(threads)
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
    _print({"meta": about, "rows": [vars(row) for row in rows]}, _ROW, as_json=as_json)
    note(f"wrote {', '.join(map(str, files))}")


@app.command("corpus")
def corpus(
    names: Methods = "full,naive,cacheblend,fusionrag",
    budgets: Annotated[str, typer.Option(metavar="R,R", help="Shares to recompute.")] = "0.15",
    top_k: Annotated[int | None, typer.Option(min=1, metavar="N", help="Chunks to retrieve.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only so many questions of each kind.")] = None,
    threads: Threads = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="JSON to write.")] = Path("corpus.json"),
    as_json: AsJson = False,
) -> None:
    """Ask the demo corpus end to end: what retrieval finds, and what is then read right, in separate columns."""
    import json
    from tempfile import TemporaryDirectory

    from ragcache import bundled
    from ragcache.evaluate import report
    from ragcache.evaluate.contenders import contenders
    from ragcache.evaluate.endtoend import run
    from ragcache.rag import BUNDLED, RagCache

    field = contenders(_split(names), _numbers(budgets, float), controls=())
    _use(threads)
    questions = _first(bundled.questions(), limit)
    with TemporaryDirectory() as place, RagCache.open(place, model=BUNDLED) as rag, progress() as shown:
        rag.ingest(bundled.corpus_path(), methods=_split(names), progress=shown)
        rows = run(rag, questions, field, top_k=top_k or rag.top_k, progress=shown)
        about = report.meta(**report.about_reader(rag.reader), chunk_tokens=rag.chunk_tokens)
    content = {"meta": about, "rows": [vars(row) for row in rows]}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(content, indent=1, default=str) + "\n", encoding="utf-8")
    _print(content, _CORPUS, as_json=as_json)
    note(f"wrote {out}")


def _first(questions: "Sequence[CorpusQuestion]", limit: int | None) -> "list[CorpusQuestion]":
    """The first so many of each kind."""
    kinds = dict.fromkeys(question.kind for question in questions)
    return [q for kind in kinds for q in [q for q in questions if q.kind == kind][:limit]]


@app.command("latency")
def latency(
    shape: Annotated[str, typer.Option(metavar="NAME", help="Sizes of a published model.")] = "qwen2.5-0.5b",
    context: Annotated[str, typer.Option(metavar="N,N", help="Context lengths in tokens.")] = "4096",
    names: Methods = "naive,cacheblend,fusionrag",
    recompute: Annotated[str, typer.Option(metavar="R,R", help="Shares to recompute.")] = "0.15",
    repeats: Annotated[int, typer.Option(min=1, metavar="N", help="Paired measurements of each.")] = 5,
    threads: Threads = None,
    dtype: Annotated[str, typer.Option(metavar="DTYPE", help="float32, bfloat16 or float16.")] = "bfloat16",
    device: Annotated[str, typer.Option(metavar="DEVICE", help="cuda or cpu; without it CUDA if there.")] = "",
    memory: Annotated[
        bool, typer.Option("--memory", help="Keep KV in memory; without it every answer reads its files.")
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the JSON to a file too.")] = None,
    as_json: AsJson = False,
) -> None:
    """Time methods against stock full prefill on a real shape with random weights.

    Chunks of 512 tokens, prefix 16, question 32. Everything after retrieval counts: loading, rotation, selection.
    """
    import json

    import torch

    from ragcache.evaluate import report
    from ragcache.evaluate.contenders import contenders
    from ragcache.evaluate.latency import SHAPES, measure, random_reader

    kind, sizes = _known(shape, SHAPES)
    contexts, shares = _numbers(context, int), _numbers(recompute, float)
    field = contenders(_split(names), shares, controls=("full",))
    precision = _known(dtype, {name: getattr(torch, name) for name in ("bfloat16", "float16", "float32")})
    _use(threads)
    reader = random_reader(kind, sizes, dtype=precision, device=device)
    with progress() as shown:
        rows = [
            row
            for length in contexts
            for row in measure(
                reader, field, length, repeats=repeats, memory=memory,
                progress=lambda stage, done, total, length=length: shown(f"{length:,}: {stage}", done, total),  # type: ignore[misc]
            )
        ]  # fmt: skip
    about = report.meta(
        **report.about_reader(reader), shape=shape, repeats=repeats, memory_tier=memory, page_cache="warm"
    )
    content = {"meta": about, "rows": [vars(row) for row in rows]}
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    _print(content, (*_LATENCY, *_STAGES), as_json=as_json)


def _print(content: dict[str, Any], columns: "Sequence[str]", *, as_json: bool) -> None:
    if as_json:
        say_json(content)
    else:
        table(columns, [[row[name] for name in columns] for row in content["rows"]])


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _numbers(text: str, kind: "type[Number]") -> "list[Number]":
    from ragcache.errors import InvalidArgument

    try:
        return [kind(part) for part in _split(text)]
    except ValueError as error:
        raise InvalidArgument(f"{text!r} is no list of numbers; separate them by commas, for example 1,2") from error


def _known(name: str, choices: Any) -> Any:
    from ragcache.errors import InvalidArgument

    if name not in choices:
        raise InvalidArgument(f"{name!r} is not one of {', '.join(choices)}; name one of these")
    return choices[name]


def _use(threads: int | None) -> None:
    import torch

    if threads is not None:
        torch.set_num_threads(threads)
