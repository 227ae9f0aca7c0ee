"""`ragcache bench ingestion`: chunks per second."""

from typing import Annotated

import typer
from ragcache_cli.options import AsJson
from ragcache_cli.terminal import progress

from ragcache_bench.commands import speed as speed
from ragcache_bench.commands.options import Threads

_ROW = (
    "way", "chunks", "tokens", "tokens_per_second", "low", "high", "ms_per_chunk", "ratio", "ratio_low", "ratio_high",
)  # fmt: skip


def ingestion(
    shape: speed.ModelShape = "qwen2.5-0.5b",
    chunks: Annotated[int, typer.Option("--n", min=2, metavar="N", help="Chunks.")] = 32,
    words: Annotated[int, typer.Option("--tokens", min=1, metavar="N", help="Tokens of each.")] = 256,
    repeats: speed.Repeats = 5,
    threads: Threads = None,
    dtype: speed.Dtype = "bfloat16",
    device: speed.Device = "",
    out: speed.Out = None,
    as_json: AsJson = False,
) -> None:
    """Time how fast chunks are prefilled and stored, next to the stock forward of the same chunks."""
    from ragcache_bench.speed.ingestion import measure

    reader = speed.shaped(shape, dtype, device, threads)
    with progress() as shown:
        rows = measure(reader, chunks=chunks, words=words, repeats=repeats, progress=shown)
    speed.finish(reader, rows, _ROW, out, as_json=as_json, shape=shape, repeats=repeats)
