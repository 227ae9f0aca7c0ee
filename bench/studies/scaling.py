"""Sizing on paper: bytes, GPU hours, hit rates and cost a question for a million chunks and for a thousand million.

    python bench/studies/scaling.py --out docs/benchmarks/scaling.json

Arithmetic over `ASSUMED`, and two small simulations on Zipf popularity that it leans on: what of a prompt an exact
prefix cache finds, and what an LRU cache of chunks finds, against Che's approximation. No model runs. `--page` prints
the tables of docs/guides/scaling.md.
"""

import json
import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from ragcache_bench import report
from ragcache_bench.commands.options import write

from ragcache.model.cost import ModelDims
from ragcache.store import CODECS

#: Layers, KV heads, width of a head, query width, weights outside embeddings, GPUs that serve one copy.
MODELS = {
    "8B": (32, 8, 128, 4096, 6.98e9, 1),
    "70B": (80, 8, 128, 8192, 68.5e9, 4),
}
#: What is taken as given; prices are list prices' order of magnitude, to be replaced by one's own.
ASSUMED = {
    "tokens_per_chunk": 256,
    "chunks_per_question": 8,
    "question_tokens": 64,
    "recomputed_share": 0.05,
    "gpu_tflops": 400.0,
    "gpu_hour_usd": 2.5,
    "object_store_usd_gb_month": 0.023,
    "object_store_usd_million_reads": 0.4,
    "disk_usd_gb_month": 0.08,
    "object_store_gb_s": 1.25,
    "disk_gb_s": 6.0,
    "memory_gb_s": 25.0,
}
SIZES, SKEWS, QUESTIONS = (10**6, 10**9), (0.6, 0.8, 1.0), (10**6, 10**7, 10**8)
SHARES = (0.01, 0.1)


def main(
    n: Annotated[int, typer.Option(help="Questions of a simulation.")] = 50_000,
    out: Annotated[Path, typer.Option(help="JSON to write.")] = Path("scaling.json"),
    page: Annotated[bool, typer.Option("--page", help="Only print the tables of a JSON that is there.")] = False,
) -> None:
    """Work everything out."""
    if page:
        typer.echo("\n\n".join(make_tables(json.loads(out.read_text())).values()))
        return
    simulated = list(_simulated(n))
    result = {
        "meta": report.meta(device=torch.device("cpu"), questions=n, seed=0),
        "assumed": ASSUMED,
        "bytes": {name: list(_bytes(name)) for name in MODELS},
        "prefill": {name: _prefill(name) for name in MODELS},
        "hits": list(_hits()),
        "simulated": simulated,
        "first_token": {name: _first_token(name) for name in MODELS},
        "worth_storing": {name: _worth_storing(name) for name in MODELS},
        "monthly": list(_monthly(simulated)),
    }
    write(out, result)
    typer.echo(result)


def chunk_bytes(model: str, codec: str = "raw") -> int:
    """Bytes of a chunk's KV, made by a model in bf16."""
    layers, heads, width, *_ = MODELS[model]
    return layers * CODECS[codec].nbytes(heads, ASSUMED["tokens_per_chunk"], width, 2)  # type: ignore[arg-type]


def flops(model: str, rows: int, before: int) -> float:
    """FLOPs of so many rows behind so many tokens."""
    layers, _, _, attention, weights, _ = MODELS[model]
    dims = ModelDims(layers, round(weights / layers), attention, 0)
    return dims.forward(torch.arange(before, before + rows), range(layers), logits=False)


def seconds(model: str, work: float) -> float:
    """GPU-seconds."""
    return work / (ASSUMED["gpu_tflops"] * 1e12)


def _bytes(model: str) -> Iterator[dict[str, Any]]:
    for codec in ("raw", "int8", "k8v4"):
        each = chunk_bytes(model, codec)
        tera = {f"tb_at_{n:.0e}": round(each * n / 1e12, 1) for n in SIZES}
        yield {"kv": codec, "mib_per_chunk": round(each / 2**20, 1), **tera}


def _prefill(model: str) -> dict[str, Any]:
    """A chunk alone, and behind up to 2,048 tokens of its document, which is the default's encoding."""
    tokens = int(ASSUMED["tokens_per_chunk"])
    found = {}
    for name, before in (("alone", 0), ("in_document", 2048)):
        each = seconds(model, flops(model, tokens, before))
        hours = {f"gpu_hours_at_{n:.0e}": _rounded(each * n / 3600) for n in SIZES}
        found[name] = {"ms_per_chunk": round(1000 * each, 1), **hours}
    return found


def harmonic(n: int, skew: float) -> float:
    """The sum of i ** -skew for i = 1 .. n, by Euler and Maclaurin beyond the first terms."""
    first = min(n, 10**5)
    exact = float((np.arange(1, first + 1, dtype=np.float64) ** -skew).sum())
    if n == first:
        return exact
    if skew == 1.0:
        return exact + math.log(n / first) + (1 / n - 1 / first) / 2
    rest = (n ** (1 - skew) - first ** (1 - skew)) / (1 - skew)
    return float(exact + rest + (n**-skew - first**-skew) / 2)


def covered(n: int, skew: float, stored: int) -> float:
    """The share of uses that go to the `stored` most popular of `n` chunks: what no policy can exceed for long."""
    return harmonic(stored, skew) / harmonic(n, skew)


def che(n: int, skew: float, stored: int) -> float:
    """The hit rate of an LRU cache by Che's approximation (2002), over chunks binned where there are many."""
    ranks, counts = _bins(n)
    chances = ranks**-skew
    chances /= (chances * counts).sum()
    low, high = 0.0, 1.0
    while (counts * -np.expm1(-chances * high)).sum() < stored:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (counts * -np.expm1(-chances * middle)).sum() < stored else (low, middle)
    return float((counts * chances * -np.expm1(-chances * high)).sum())


def _bins(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ranks that stand for others, and how many each stands for."""
    edges = np.unique(
        np.concatenate([np.arange(1, min(n, 10**4) + 1), np.geomspace(1, n + 1, 20_000).astype(np.int64)])
    )
    edges = np.append(edges[edges <= n], n + 1).astype(np.float64)
    return np.sqrt(edges[:-1] * (edges[1:] - 1)), np.diff(edges)


def _hits() -> Iterator[dict[str, Any]]:
    for n in SIZES:
        for skew in SKEWS:
            for share in SHARES:
                stored = int(n * share)
                yield {
                    "chunks": n, "zipf": skew, "stored_share": share,
                    "most_popular": round(covered(n, skew, stored), 2), "lru": round(che(n, skew, stored), 2),
                }  # fmt: skip


def _simulated(n: int) -> Iterator[dict[str, Any]]:
    """Questions whose chunks are drawn by popularity, each question's in an order of its own."""
    rng, size, k = np.random.default_rng(0), 10**6, int(ASSUMED["chunks_per_question"])
    for skew in SKEWS:
        sums = np.cumsum(np.arange(1, size + 1, dtype=np.float64) ** -skew)
        drawn = np.searchsorted(sums, rng.random((n, k)) * sums[-1])
        stored = size // 100
        yield {
            "zipf": skew, "chunks": size, "prefix_cache": round(_prefix_share(drawn), 3),
            "lru_1_percent": round(_lru_share(drawn, stored), 2), "che_1_percent": round(che(size, skew, stored), 2),
        }  # fmt: skip


def _prefix_share(drawn: NDArray[np.int64]) -> float:
    """What of the second half's chunks a prefix cache finds that never lets anything go."""
    seen, found, asked = set[tuple[int, ...]](), 0, 0
    for number, chunks in enumerate(drawn.tolist()):
        depth, going = 0, True
        for end in range(1, len(chunks) + 1):
            path = tuple(chunks[:end])
            going = going and path in seen
            depth += going
            seen.add(path)
        if number >= len(drawn) // 2:
            found, asked = found + depth, asked + len(chunks)
    return found / asked


def _lru_share(drawn: NDArray[np.int64], room: int) -> float:
    """What of the second half's chunks a cache finds that lets the least recently used go."""
    held, found, asked = OrderedDict[int, None](), 0, 0
    for number, chunk in enumerate(drawn.ravel().tolist()):
        hit = chunk in held
        held[chunk] = None
        held.move_to_end(chunk)
        if len(held) > room:
            held.popitem(last=False)
        if number >= drawn.size // 2:
            found, asked = found + hit, asked + 1
    return found / asked


def _first_token(model: str) -> dict[str, Any]:
    """Milliseconds to the first token: full prefill, and with all chunks stored, by where they are and how written."""
    k, tokens = int(ASSUMED["chunks_per_question"]), int(ASSUMED["tokens_per_chunk"])
    question, gpus = int(ASSUMED["question_tokens"]), MODELS[model][-1]
    whole = seconds(model, flops(model, k * tokens + question, 0)) / gpus
    own = seconds(model, flops(model, question + round(ASSUMED["recomputed_share"] * k * tokens), k * tokens)) / gpus
    places = {"memory": "memory_gb_s", "disk": "disk_gb_s", "object_store": "object_store_gb_s"}
    return {
        "full_prefill": round(1000 * whole),
        "computed_anyway": round(1000 * own),
        **{
            f"{place}_{codec}": round(1000 * (own + k * chunk_bytes(model, codec) / (ASSUMED[speed] * 1e9)))
            for place, speed in places.items()
            for codec in ("raw", "int8")
        },
    }


def chunk_cost(model: str) -> float:
    """Dollars of GPU time that prefilling a chunk takes."""
    return seconds(model, flops(model, int(ASSUMED["tokens_per_chunk"]), 0)) * ASSUMED["gpu_hour_usd"] / 3600


def saved_by_use(model: str, place: str = "object_store") -> float:
    """Dollars that reading a chunk's KV saves over prefilling it."""
    read = ASSUMED["object_store_usd_million_reads"] / 1e6 if place == "object_store" else 0.0
    return chunk_cost(model) - read


def storage_cost(model: str, codec: str, place: str = "object_store") -> float:
    """Dollars a month that a chunk's KV costs where it is stored."""
    return chunk_bytes(model, codec) / 1e9 * ASSUMED[f"{place}_usd_gb_month"]


def _worth_storing(model: str) -> dict[str, Any]:
    """Uses a month from which storing a chunk costs less than computing it each time."""
    return {
        f"uses_a_month_{place}_{codec}": round(storage_cost(model, codec, place) / saved_by_use(model, place))
        for place in ("object_store", "disk")
        for codec in ("raw", "int8", "k8v4")
    }


def _monthly(prefixes: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Dollars a question for an 8B model: full prefill, a prefix cache, all stored, and the most popular stored."""
    model, codec, k = "8B", "int8", int(ASSUMED["chunks_per_question"])
    compute, storage, saved = chunk_cost(model), storage_cost(model, codec), saved_by_use(model)
    simulated = {one["zipf"]: one["prefix_cache"] for one in prefixes}
    for n in SIZES:
        for skew in (0.8, 1.0):
            for asked in QUESTIONS:
                uses = asked * k
                first = uses * saved / storage / harmonic(n, skew)  # uses of the most popular chunk by those that pay
                stored = min(n, int(first ** (1 / skew))) if first >= 1 else 0
                hit = covered(n, skew, stored) if stored else 0.0
                everything = storage * n + compute * n / 12 + uses * (compute - saved)  # made once, paid off in a year
                some = storage * stored + compute * stored / 12 + uses * (compute - hit * saved)
                yield {
                    "chunks": n, "zipf": skew, "questions_a_month": asked, "stored": stored,
                    "stored_tb": _rounded(stored * chunk_bytes(model, codec) / 1e12), "hit_rate": round(hit, 2),
                    "full_prefill": _cents(k * compute),
                    "prefix_cache": _cents(k * compute * (1 - simulated[skew])),
                    "all_stored": _cents(everything / asked), "popular_stored": _cents(some / asked),
                }  # fmt: skip


def make_tables(found: Mapping[str, Any]) -> dict[str, str]:
    """The tables of the guide, by name."""
    both = (found["bytes"]["8B"], found["bytes"]["70B"])
    sizes = [
        (f"`{one['kv']}`", *(_plain(row[name]) for row in (one, other) for name in row if name != "kv"))
        for one, other in zip(*both, strict=True)
    ]
    prefill = [
        (f"{model}, {way.replace('_', '-')}", *(_plain(value) for value in one.values()))
        for model, ways in found["prefill"].items()
        for way, one in ways.items()
    ]
    hits = [
        (
            _power(row["chunks"]),
            row["zipf"],
            f"{row['stored_share']:.0%}",
            row["most_popular"],
            row["lru"],
        )
        for row in found["hits"]
    ]
    soon = [
        (name.replace("_", " "), *(f"{model[name]:,}" for model in found["first_token"].values()))
        for name in found["first_token"]["8B"]
    ]
    pays = [
        (
            place.replace("_", " "),
            codec,
            *(f"{model[f'uses_a_month_{place}_{codec}']:,}" for model in found["worth_storing"].values()),
        )
        for place in ("object_store", "disk")
        for codec in ("raw", "int8", "k8v4")
    ]
    cost = [
        (_power(row["chunks"]), row["zipf"], f"{row['questions_a_month']:,}", row["full_prefill"],
         row["prefix_cache"], row["all_stored"], row["popular_stored"], f"{row['stored']:,}", row["hit_rate"])
        for row in found["monthly"]
    ]  # fmt: skip
    heads = {
        "bytes": ("`--kv`", "MiB, 8B", "TB at 10^6", "TB at 10^9", "MiB, 70B", "TB at 10^6", "TB at 10^9"),
        "prefill": ("model, left context", "ms a chunk", "GPU-hours at 10^6", "GPU-hours at 10^9"),
        "hits": ("chunks", "Zipf", "stored", "most popular stored", "LRU"),
        "first_token": ("ms", "8B, one GPU", "70B, four"),
        "worth_storing": ("where", "`--kv`", "8B", "70B"),
        "monthly": ("chunks", "Zipf", "questions a month", "full prefill", "prefix cache", "all stored",
                    "popular stored", "so many chunks", "hits"),
    }  # fmt: skip
    rows: dict[str, Sequence[Sequence[object]]] = {
        "bytes": sizes,
        "prefill": prefill,
        "hits": hits,
        "first_token": soon,
        "worth_storing": pays,
        "monthly": cost,
    }
    return {name: _table(heads[name], rows[name]) for name in heads}


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return (
        "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
        .replace("10^9", "10⁹")
        .replace("10^6", "10⁶")
    )


def _power(n: int) -> str:
    return f"{n:.0e}".replace("1e+0", "10^")


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:g}"


def _cents(dollars: float) -> float:
    return float(f"{100 * dollars:.2g}")


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")


if __name__ == "__main__":
    typer.run(main)
