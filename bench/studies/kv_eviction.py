"""What a limit for the KV on the disk costs: hits, and work saved, by what goes first, over a Zipf trace.

    python bench/studies/kv_eviction.py --out docs/benchmarks/kv-eviction.json

Chunks of many lengths are asked for by Zipf's law, what is popular changing once on the way. What goes is chosen by
the function that an index evicts with (`ragcache.store.choose_victims`), by each of its policies; a question's chunks
that are not there are made, and stored if that is worth it. `work` is the share of the FLOPs of making all chunks anew
that was saved.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import numpy as np
import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import numbers, write
from ragcache_bench.markdown import table
from ragcache_bench.metrics import bootstrap, bootstrap_ratio
from ragcache_bench.speed.simulation import POLICIES, SimulatedStore, Sized

from ragcache.model.cost import ModelDims

#: Qwen2.5-0.5B's, and KV bytes of a token in bf16.
DIMS, LAYERS, TOKEN_BYTES = ModelDims(linear=14_909_440, attention=896, lm_head=136_134_656, layers=24), 24, 12_288

_SAID: dict[bool | None, str | None] = {True: "yes", False: "NO", None: None}


def main(
    n: Annotated[int, typer.Option(help="Questions.")] = 2000,
    pool: Annotated[int, typer.Option(help="Chunks there are.")] = 1000,
    chunks: Annotated[int, typer.Option(help="Chunks of a question.")] = 5,
    skew: Annotated[float, typer.Option(help="Zipf's exponent.")] = 0.8,
    limits: Annotated[str, typer.Option(help="Of the bytes of all chunks.")] = "0.1,0.25,0.5",
    seed: Annotated[int, typer.Option(help="Of the trace.")] = 0,
    out: Annotated[Path, typer.Option(help="JSON to write; a page goes beside it.")] = Path("kv-eviction.json"),
) -> None:
    """Walk the trace for every limit and policy."""
    known = draw_chunks(pool, seed)
    trace = list(draw_trace(n, pool, chunks, skew, seed))
    rows = [row for limit in numbers(limits, float) for row in walk(known, trace, limit)]
    about = report.meta(device=torch.device("cpu"), questions=n, pool=pool, chunks=chunks, skew=skew, seed=seed)
    write(out, {"meta": about, "rows": rows})
    out.with_suffix(".md").write_text(markdown(rows, about), encoding="utf-8")
    typer.echo(markdown(rows, about))


def draw_chunks(pool: int, seed: int) -> dict[int, tuple[str, int, float]]:
    """Chunks of 32 to 512 tokens, some of them behind up to 4,000 tokens of their document."""
    rng, found = random.Random(seed), {}
    for number in range(pool):
        tokens, start = round(2 ** rng.uniform(5, 9)), rng.choice([40, 40, rng.randrange(40, 4000)])
        work = DIMS.forward(torch.arange(start, start + tokens), range(LAYERS), logits=False)
        found[number] = (str(number), tokens * TOKEN_BYTES, work)
    return found


def draw_trace(n: int, pool: int, chunks: int, skew: float, seed: int) -> Iterator[list[int]]:
    """Chunks of each question by popularity, which is dealt out anew after half of the questions."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, pool + 1) ** skew
    for half in (n // 2, n - n // 2):
        order = rng.permutation(pool)
        for _ in range(half):
            yield order[rng.choice(pool, chunks, replace=False, p=weights / weights.sum())].tolist()


def walk(
    known: Mapping[int, tuple[str, int, float]], trace: Sequence[Sequence[int]], limit: float
) -> Iterator[dict[str, Any]]:
    """A row per policy."""
    most = int(limit * sum(nbytes for _, nbytes, _ in known.values()))
    told = {}
    for policy in POLICIES:
        store = SimulatedStore(most, policy)
        told[policy] = [_asked(store, [known[one] for one in question], now) for now, question in enumerate(trace)]
        hits = [hit / len(question) for (hit, *_), question in zip(told[policy], trace, strict=True)]
        yield {
            "limit": limit, "policy": policy, "hits": fmean(hits),
            "work": asdict(bootstrap_ratio([a for _, a, _ in told[policy]], [c for *_, c in told[policy]])),
            "most_bytes": store.most, "limit_bytes": most, "held": store.most <= most,
        }  # fmt: skip
    for policy in POLICIES:
        gain = [(a - b) / c for (_, a, c), (_, b, _) in zip(told["saved per byte"], told[policy], strict=True)]
        if policy != "saved per byte":
            yield {"limit": limit, "policy": f"saved per byte minus {policy}", "work": asdict(bootstrap(gain))}


def _asked(store: SimulatedStore, chunks: Sequence[Sized], now: float) -> tuple[int, float, float]:
    """Hits of a question, the work they saved, and the work of all its chunks."""
    found = store.ask(chunks, now)
    return len(found), sum(work for key, _, work in chunks if key in found), sum(work for _, _, work in chunks)


def markdown(rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> str:
    """The same for people."""
    cells = [
        (row["limit"], row["policy"], f"{row['hits']:.3f}" if "hits" in row else None,
         "{mean:.3f} [{low:.3f}, {high:.3f}]".format(**row["work"]), _SAID[row.get("held")])
        for row in rows
    ]  # fmt: skip
    head = ("limit, of all KV", "what goes first", "hits", "work saved [95 %]", "limit held at every question")
    return "\n".join(
        ["# What a limit for KV costs\n", f"Made by `{about['command']}` on {about['hardware']}.\n", table(head, cells)]
    )


if __name__ == "__main__":
    typer.run(main)
