"""`ragcache bench trace`: a trace of questions, replayed."""

from pathlib import Path
from typing import Annotated

import typer
from ragcache_cli.options import AsJson
from ragcache_cli.terminal import progress

from ragcache_bench.commands import speed as speed
from ragcache_bench.commands.options import Budgets, Methods, Seed, Threads, numbers, split

_ROW = (
    "method", "recompute", "cache", "held_mib", "mean_ms", "p50_ms", "p95_ms", "speedup", "speedup_low", "speedup_high",
)  # fmt: skip


def trace(
    shape: speed.ModelShape = "qwen2.5-0.5b",
    data: Annotated[
        str | None, typer.Option(metavar="FORMAT:PATH", help="A recorded trace, ragpulse:FOLDER; else one is drawn.")
    ] = None,
    questions: Annotated[int, typer.Option("--n", min=2, metavar="N", help="Questions, from the first on.")] = 60,
    chunks: Annotated[int, typer.Option(min=1, metavar="N", help="Chunks of each, where they are drawn.")] = 8,
    tokens: Annotated[
        int, typer.Option(min=1, metavar="N", help="Tokens of each chunk; recorded ones are cut to so many.")
    ] = 256,
    pool: Annotated[int, typer.Option(min=1, metavar="N", help="Chunks there are, where they are drawn.")] = 200,
    exponent: Annotated[
        float, typer.Option(min=0.0, metavar="S", help="Zipf's, of how popular drawn chunks are.")
    ] = 1.0,
    seed: Seed = 0,
    names: Methods = "naive,fusionrag",
    recompute: Budgets = "0.15",
    caches: Annotated[
        str,
        typer.Option(
            "--cache-sizes", metavar="S,S", help="What each may hold, in shares of the KV of what is asked for."
        ),
    ] = "",
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
    from ragcache_bench.speed.replay import replay
    from ragcache_bench.speed.trace import Trace, prompt_tokens, read_trace

    drawn = Trace(questions, chunks, tokens, pool, exponent, seed)
    asked = read_trace(data, questions, tokens).only_asked() if data else drawn
    field = contenders(split(names), numbers(recompute, float), controls=("full",))
    store = speed.place(store)
    reader = speed.shaped(shape, dtype, device, threads)
    journal = Journal(out.with_suffix(".jsonl"))
    longest = max(prompt_tokens(asked))
    with progress() as shown, speed.peers(peers, reader, longest + 512, orders=False) as others:
        sizes: list[float | None] = [*numbers(caches, float)] or [None]
        rows = replay(reader, field, asked, journal, store=store, caches=sizes, peers=others, progress=shown)
    speed.finish(reader, rows, _ROW, out, as_json=as_json, shape=shape, trace=asked.about, store=store)
