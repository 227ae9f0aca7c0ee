"""`ragcache bench trace`: a trace of questions, replayed."""

from pathlib import Path
from typing import Annotated

import typer
from ragcache_cli.options import AsJson
from ragcache_cli.terminal import progress

from ragcache_bench.commands import speed as speed
from ragcache_bench.commands.options import Budgets, Methods, Seed, Threads, numbers, split

_ROW = ("method", "recompute", "mean_ms", "p50_ms", "p95_ms", "speedup", "speedup_low", "speedup_high")


def trace(
    shape: speed.ModelShape = "qwen2.5-0.5b",
    questions: Annotated[int, typer.Option("--n", min=2, metavar="N", help="Questions.")] = 60,
    chunks: Annotated[int, typer.Option(min=1, metavar="N", help="Chunks of each.")] = 8,
    tokens: Annotated[int, typer.Option(min=1, metavar="N", help="Tokens of each chunk.")] = 256,
    pool: Annotated[int, typer.Option(min=1, metavar="N", help="Chunks there are.")] = 200,
    exponent: Annotated[float, typer.Option(min=0.0, metavar="S", help="Zipf's, of how popular chunks are.")] = 1.0,
    seed: Seed = 0,
    names: Methods = "naive,fusionrag",
    recompute: Budgets = "0.15",
    store: speed.Store = "warm",
    peers: speed.Peers = "prefix-cache",
    threads: Threads = None,
    dtype: speed.Dtype = "bfloat16",
    device: speed.Device = "",
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="JSON to write; the table .md and the times' .jsonl go beside it.")
    ] = Path("trace.json"),
    as_json: AsJson = False,
) -> None:
    """Replay a trace: popular chunks come back often, combined and ordered differently each time.

    Everybody answers a question before the next one comes, so that what the machine does meanwhile meets all alike. A
    run that was interrupted resumes; what has to remember earlier prompts reads them again then, untimed.
    """
    from ragcache_bench.contenders import contenders
    from ragcache_bench.records import Journal
    from ragcache_bench.speed.trace import Trace, replay

    asked = Trace(questions, chunks, tokens, pool, exponent, seed)
    field = contenders(split(names), numbers(recompute, float), controls=("full",))
    store = speed.place(store)
    reader = speed.shaped(shape, dtype, device, threads)
    journal = Journal(out.with_suffix(".jsonl"))
    with progress() as shown, speed.peers(peers, reader, chunks * tokens + 512, orders=False) as others:
        rows = replay(reader, field, asked, journal, store=store, peers=others, progress=shown)
    speed.finish(reader, rows, _ROW, out, as_json=as_json, shape=shape, trace=vars(asked), store=store)
