"""How soon the first token comes by how KV is written down and where it is, at naive reuse.

    python bench/studies/codec_latency.py --threads 1 --out docs/benchmarks/codec-latency.json

Random weights in a published shape. All codecs and places answer the same prompts in turns, the chunks in another order
each time, and full prefill with them; each ratio is of one turn.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Annotated, Any

import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import Dtype, split, use_threads, write
from ragcache_bench.contenders import Contender
from ragcache_bench.markdown import table
from ragcache_bench.speed.latency import at_hand
from ragcache_bench.speed.runners import STORES, Runner, Turn, own, shuffled
from ragcache_bench.speed.shapes import CHUNK, SHAPES, filled, question, random_reader, random_texts, whole

from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.methods import find_method
from ragcache.model.reader import Reader
from ragcache.report import ignore_progress
from ragcache.store.codec import find_codec

FULL = find_method("full")


@dataclass(frozen=True)
class Place:
    """An index whose KV is written in one way and lies in one place."""

    codec: str
    store: str
    index: Index
    chunks: Sequence[Chunk]
    runner: Runner

    def run(self, turn: int) -> float:
        """Milliseconds to the first token."""
        prompt = Turn.of(self.index, question(self.index, turn), shuffled(self.chunks, turn))
        return self.runner.run(prompt).ms


def main(
    shape: Annotated[str, typer.Option(help=f"Of {', '.join(SHAPES)}.")] = "qwen2.5-0.5b",
    context: Annotated[int, typer.Option(help="Tokens of all chunks.")] = 2048,
    codecs: Annotated[str, typer.Option(help="Names, between commas.")] = "raw,int8,k8v4",
    dtype: Dtype = "bfloat16",
    repeats: Annotated[int, typer.Option(help="Turns, after one that warms up.")] = 5,
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    out: Annotated[Path, typer.Option(help="JSON to write; a page goes beside it.")] = Path("codec-latency.json"),
) -> None:
    """Make an index a codec and place, then have all of them answer in turns."""
    use_threads(threads)
    whole(context, CHUNK)
    reader = random_reader(*SHAPES[shape], dtype=getattr(torch, dtype))
    rows = measure(reader, context, split(codecs), repeats)
    meta = report.meta(**report.about_reader(reader), shape=shape, context=context, chunk=CHUNK, repeats=repeats)
    found = {"meta": meta, "rows": rows}
    write(out, found)
    out.with_suffix(".md").write_text(markdown(found), encoding="utf-8")


def measure(reader: Reader, context: int, codecs: Sequence[str], repeats: int) -> list[dict[str, Any]]:
    """A row per codec and place, beside full prefill."""
    naive, texts = Contender(find_method("naive")), random_texts(context // CHUNK)
    with ExitStack() as stack:
        places = []
        for codec, store in ((codec, store) for codec in codecs for store in STORES):
            index = stack.enter_context(at_hand(reader, store, find_codec(codec)))
            chunks = filled(index, [naive], texts, ignore_progress)
            places.append(Place(codec, store, index, chunks, own(Engine(reader, index), naive, store)))
        first = places[0]
        full = Place("", "", first.index, first.chunks, own(Engine(reader, first.index), Contender(FULL), "memory"))
        taken = take_turns([full, *places], repeats)
    baseline = taken.pop(0)
    return [row(place, mine, baseline) for place, mine in zip(places, taken, strict=True)]


def take_turns(places: Sequence[Place], repeats: int) -> list[list[float]]:
    """Everybody's milliseconds, in another order each turn; the first turn warms up."""
    taken: list[list[float]] = [[] for _ in places]
    for turn in range(repeats + 1):
        for number in Random(turn).sample(range(len(places)), len(places)):
            took = places[number].run(turn)
            if turn:
                taken[number].append(took)
    return taken


def row(place: Place, mine: Sequence[float], full: Sequence[float]) -> dict[str, Any]:
    """What a codec takes in a place: medians, least and most."""
    times_sooner = [theirs / ours for theirs, ours in zip(full, mine, strict=True)]
    return {
        "codec": place.codec, "store": place.store, "full_ms": median(full),
        "ttft_ms": median(mine), "ttft_low_ms": min(mine), "ttft_high_ms": max(mine),
        "times_sooner": median(times_sooner), "times_sooner_low": min(times_sooner),
        "times_sooner_high": max(times_sooner),
    }  # fmt: skip


def markdown(found: Mapping[str, Any]) -> str:
    """The same for people."""
    meta = found["meta"]
    body = [
        (one["codec"], one["store"], "{ttft_ms:,.0f} [{ttft_low_ms:,.0f}, {ttft_high_ms:,.0f}]".format(**one),
         "{times_sooner:.1f} [{times_sooner_low:.1f}, {times_sooner_high:.1f}]".format(**one))
        for one in found["rows"]
    ]  # fmt: skip
    about = f"""# Codecs of stored KV: the first token

`{meta["command"]}` on {meta["hardware"]}, {meta["threads"]} threads: random weights in the shape of {meta["shape"]},
{meta["dtype"]}, {meta["context"]:,} tokens of context, naive reuse, medians of {meta["repeats"]} turns with least and
most. `memory` has the KV at hand as its file has it, `warm` reads files that the system holds, `cold` files
that it does not."""
    return f"{about}\n\n{table(('codec', 'KV', 'TTFT ms', 'times sooner than full prefill'), body)}\n"


if __name__ == "__main__":
    typer.run(main)
