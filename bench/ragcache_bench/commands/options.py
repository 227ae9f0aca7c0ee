"""Options, and what is done with them, that the `bench` commands share."""

import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer
from ragcache_cli.terminal import progress, say_json, table

if TYPE_CHECKING:
    from ragcache.method import Method
    from ragcache_bench.runs import Bench

Number = TypeVar("Number", int, float)
Settings = TypeVar("Settings")

BUDGETS = "0.02,0.05,0.10,0.15,0.30"
Tasks = Annotated[
    str | None, typer.Option(metavar="A,B", help="Tasks by name; without it all of them, or none beside --data.")
]
Data = Annotated[
    list[str] | None, typer.Option(metavar="SET:PATH", help="A public set as a task, xquad:FILE; repeatable.")
]
Passages = Annotated[
    int | None, typer.Option("--chunks", min=1, metavar="N", help="Chunks per question of --data; else the set's own.")
]
Budgets = Annotated[str, typer.Option(metavar="R,R", help="Shares to recompute.")]
Count = Annotated[int, typer.Option("--n", min=1, metavar="N", help="Questions per task.")]
Seed = Annotated[int, typer.Option(metavar="S", help="Of the questions.")]
RandomSeeds = Annotated[int, typer.Option(min=1, metavar="N", help="Seeds of the random control, in turn.")]
TopK = Annotated[int | None, typer.Option(min=1, metavar="N", help="Chunks to retrieve; else the index's own number.")]
Reader = Annotated[
    str | None,
    typer.Option(
        "--model", metavar="NAME", help="Hub id or folder; else the model of --index, or the built-in test model."
    ),
]
Adapter = Annotated[
    str | None,
    typer.Option("--adapter", metavar="DIR", help="Folder of a LoRA adapter, as PEFT writes it, to merge into it."),
]
Dtype = Annotated[str, typer.Option("--dtype", metavar="DTYPE", help="auto, float32, bfloat16 or float16.")]
Tokens = Annotated[int, typer.Option("--max-new-tokens", min=1, metavar="N", help="Most tokens of an answer.")]
Workers = Annotated[int, typer.Option(min=1, metavar="N", help="Processes that answer; each loads the model.")]
Methods = Annotated[str, typer.Option("--methods", "--method", metavar="A,B", help="Rows of `ragcache methods`.")]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, metavar="T", help="CPU threads; without it torch's own number.")
]


def taken_from(settings: type[Settings]) -> Callable[[Callable[[Settings], None]], Callable[..., None]]:
    """Have a command take its options from the fields of a dataclass, and hand them over as one."""

    def decorate(command: Callable[[Settings], None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: object) -> None:
            command(settings(**given))

        hints = get_type_hints(settings, include_extras=True)
        run.__annotations__ = {**hints, "return": None}
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[name])
                for name, one in inspect.signature(settings).parameters.items()
            ]
        )
        return run

    return decorate


def with_auxiliary(names: Sequence[str], auxiliary: str | None) -> "list[str | Method]":
    """Rows by name; where an auxiliary model is named, those that have one with that."""
    if auxiliary is None:
        return [*names]
    from ragcache.errors import InvalidArgument
    from ragcache.methods import list_methods
    from ragcache.select.auxiliary import with_auxiliary
    from ragcache.select.companion import check_auxiliary

    known = list_methods()
    having = {name for name in names if name in known and with_auxiliary(known[name].select, auxiliary) is not None}
    if not having:
        raise InvalidArgument(
            f"--auxiliary {auxiliary} is for methods that have an auxiliary model, and none of {', '.join(names)} has "
            "one; add cacheclip to --methods"
        )
    check_auxiliary(auxiliary)
    return [known[name].with_auxiliary(auxiliary) if name in having else name for name in names]


def show(content: dict[str, Any], columns: Sequence[str], *, as_json: bool) -> None:
    """Print a result: JSON, or a table of some of its rows' columns."""
    if as_json:
        say_json(content)
    else:
        table(columns, [[row[name] for name in columns] for row in content["rows"]])


def write(out: Path, content: dict[str, Any]) -> None:
    """Write a result as JSON."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


@contextmanager
def bench(
    raw: Path,
    model: str | None,
    dtype: str,
    max_new_tokens: int,
    threads: int | None,
    workers: int = 1,
    *,
    together: bool = False,
    adapter: str | None = None,
) -> "Iterator[Bench]":
    """A reader to be asked, with its answers kept in `raw` and progress on stderr."""
    from functools import partial

    from ragcache.model.decode import Sampling
    from ragcache.model.loading import BUNDLED, load_reader
    from ragcache_bench import runs
    from ragcache_bench.records import Journal
    from ragcache_bench.workers import Workers

    use_threads(threads)
    load = partial(load_reader, model or BUNDLED, dtype=dtype, adapter=adapter)
    several = Workers(load, workers, threads or 1) if workers > 1 else None
    reader = load()
    with progress(fold=True) as shown:
        sampling = Sampling(max_new_tokens=max_new_tokens)
        yield runs.Bench(reader, Journal(raw), sampling, workers=several, progress=shown, together=together)


def split(text: str) -> list[str]:
    """What stands between the commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def numbers(text: str, kind: type[Number]) -> list[Number]:
    """The numbers between the commas."""
    from ragcache.errors import InvalidArgument

    try:
        return [kind(part) for part in split(text)]
    except ValueError as error:
        raise InvalidArgument(f"{text!r} is no list of numbers; separate them by commas, for example 1,2") from error


def known(name: str, choices: Any) -> Any:
    """The choice of that name."""
    from ragcache.errors import InvalidArgument

    if name not in choices:
        raise InvalidArgument(f"{name!r} is not one of {', '.join(choices)}; name one of these")
    return choices[name]


def use_threads(threads: int | None) -> None:
    """Have torch use so many threads."""
    import torch

    if threads is not None:
        torch.set_num_threads(threads)
