"""`ragcache bench latency`: time to the first token."""

from pathlib import Path
from typing import Annotated

import typer
from ragcache_cli.options import AsJson
from ragcache_cli.terminal import progress

from ragcache_bench.commands import speed as speed
from ragcache_bench.commands.options import Budgets, Methods, Threads, numbers, split

_ROW = (
    "context", "chunk", "store", "method", "recompute", "charged_flops", "ttft_ms", "ideal_ms", "speedup",
    "speedup_low", "speedup_high", "load_ms", "place_ms", "select_ms", "prefill_ms",
)  # fmt: skip


def latency(
    shape: speed.ModelShape = "qwen2.5-0.5b",
    context: Annotated[str, typer.Option(metavar="N,N", help="Context lengths in tokens.")] = "4096",
    chunk: Annotated[str, typer.Option(metavar="N,N", help="Tokens of each chunk.")] = "512",
    chunks: Annotated[
        str, typer.Option(metavar="N,N", help="Contexts of so many chunks of each size, in place of --context.")
    ] = "",
    names: Methods = "naive,cacheblend,fusionrag",
    recompute: Budgets = "0.15",
    store: Annotated[str, typer.Option(metavar="A,B", help="Where our KV is: memory, warm or cold files.")] = "warm",
    peers: speed.Peers = "",
    repeats: speed.Repeats = 5,
    threads: Threads = None,
    dtype: speed.Dtype = "bfloat16",
    device: speed.Device = "",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="JSON to write; a table and a picture go beside it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Time methods, and what people run instead, against stock full prefill on a real shape.

    Prefix 16 tokens, question 32; every turn has another order and another question. Everything after
    retrieval counts: loading, rotation, selection. The ideal is the method's FLOPs at full prefill's own speed, and one
    pass over the weights for every forward.
    """
    from itertools import product

    from ragcache_bench.contenders import contenders
    from ragcache_bench.report import check_plotting
    from ragcache_bench.speed.latency import measure
    from ragcache_bench.speed.scaling import scaling
    from ragcache_bench.speed.shapes import whole

    sizes, stores = numbers(chunk, int), [speed.place(one) for one in split(store)]
    grid = [(count * size, size) for size, count in product(sizes, numbers(chunks, int))] if chunks else None
    shapes = grid or [*product(numbers(context, int), sizes)]
    for length, tokens in shapes:  # what is wrong is to show before the model is made
        whole(length, tokens)
    if out is not None:
        check_plotting()
    field = contenders(split(names), numbers(recompute, float), controls=("full",))
    reader = speed.shaped(shape, dtype, device, threads)
    with progress() as shown, speed.peers(peers, reader, max(shapes)[0] + 512, orders=True) as make:
        others = make(None)
        rows = [
            row
            for length, tokens in shapes
            for number, where in enumerate(stores)
            for row in measure(
                reader, field, length, chunk=tokens, repeats=repeats, store=where, peers=() if number else others,
                progress=lambda stage, done, total, length=length: shown(f"{length:,}: {stage}", done, total),  # type: ignore[misc]
            )
        ]  # fmt: skip
    growth = {"scaling": [vars(row) for row in scaling(rows)]}
    speed.finish(reader, rows, _ROW, out, as_json=as_json, more=growth, shape=shape, repeats=repeats, stores=stores)
    if out is not None:
        from ragcache_bench.pages.times import draw_times

        draw_times(out.with_suffix(".png"), rows)
