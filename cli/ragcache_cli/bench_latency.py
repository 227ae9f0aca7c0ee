"""`ragcache bench latency`: time to the first token."""

from pathlib import Path
from typing import Annotated

import typer

from ragcache_cli.bench_options import Budgets, Methods, Threads, known, numbers, show, split, use_threads, write
from ragcache_cli.options import AsJson
from ragcache_cli.terminal import progress

_LATENCY = ("context", "method", "recompute", "charged_flops", "ttft_ms", "speedup", "speedup_low", "speedup_high")
_STAGES = ("load_ms", "place_ms", "select_ms", "prefill_ms")


def latency(
    shape: Annotated[str, typer.Option(metavar="NAME", help="Sizes of a published model.")] = "qwen2.5-0.5b",
    context: Annotated[str, typer.Option(metavar="N,N", help="Context lengths in tokens.")] = "4096",
    names: Methods = "naive,cacheblend,fusionrag",
    recompute: Budgets = "0.15",
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
    import torch

    from ragcache.evaluate import report
    from ragcache.evaluate.contenders import contenders
    from ragcache.evaluate.latency import SHAPES, measure, random_reader

    kind, sizes = known(shape, SHAPES)
    contexts, shares = numbers(context, int), numbers(recompute, float)
    field = contenders(split(names), shares, controls=("full",))
    precision = known(dtype, {name: getattr(torch, name) for name in ("bfloat16", "float16", "float32")})
    use_threads(threads)
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
        write(out, content)
    show(content, (*_LATENCY, *_STAGES), as_json=as_json)
