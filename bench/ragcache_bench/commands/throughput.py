"""`ragcache bench throughput`: questions per second."""

from typing import Annotated

import typer
from ragcache_cli.options import AsJson
from ragcache_cli.terminal import progress

from ragcache_bench.commands import speed as speed
from ragcache_bench.commands.options import Budgets, Methods, Threads, numbers, split

_ROW = (
    "method", "recompute", "way", "tokens", "per_second", "low", "high", "speedup", "speedup_low", "speedup_high",
    "difference",
)  # fmt: skip


def throughput(
    shape: speed.ModelShape = "qwen2.5-0.5b",
    questions: Annotated[int, typer.Option("--n", min=1, metavar="N", help="Questions at once.")] = 8,
    context: Annotated[int, typer.Option(metavar="N", help="Tokens of each question's chunks.")] = 2048,
    tokens: Annotated[str, typer.Option(metavar="N,N", help="Tokens of each answer; 1 is the first token alone.")] = (
        "1,32"
    ),
    names: Methods = "prophetkv",
    recompute: Budgets = "0.15",
    store: speed.Store = "warm",
    repeats: speed.Repeats = 5,
    threads: Threads = None,
    dtype: speed.Dtype = "bfloat16",
    device: speed.Device = "",
    out: speed.Out = None,
    as_json: AsJson = False,
) -> None:
    """Time several questions one by one and at once, each over its own chunks and all over the same ones."""
    from ragcache_bench.contenders import contenders
    from ragcache_bench.speed.shapes import CHUNK, whole
    from ragcache_bench.speed.throughput import measure

    whole(context, CHUNK)
    store = speed.place(store)
    reader = speed.shaped(shape, dtype, device, threads)
    with progress() as shown:
        rows = [
            row
            for one in contenders(split(names), numbers(recompute, float), controls=())
            for length in numbers(tokens, int)
            for row in measure(
                reader, one, questions=questions, context=context, tokens=length, repeats=repeats, store=store,
                progress=lambda stage, done, total, name=f"{one.method.name}, {length} tokens": shown(  # type: ignore[misc]
                    f"{name}: {stage}", done, total
                ),
            )
        ]  # fmt: skip
    speed.finish(reader, rows, _ROW, out, as_json=as_json, shape=shape, repeats=repeats, store=store)
