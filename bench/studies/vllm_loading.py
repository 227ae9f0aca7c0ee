"""How fast does the connector write stored KV into vLLM's cache, beside a loader that takes new memory for each layer?

    .venv-vllm/bin/python bench/studies/vllm_loading.py --out docs/benchmarks/vllm-loading.json

Eight chunks of 512 tokens of a 0.5B model's KV, in an order of their own, from files in the page cache: read, checked,
gathered, rotated and written by vLLM's own kernel, on one thread. The plain loader concatenates every layer anew and
hands the kernel K and V made contiguous. Both take turns within requests to vLLM, which has nothing in memory.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import torch
from ragcache_bench.speed.shapes import SHAPES, question
from studied_vllm import generate, version
from torch import Tensor
from vllm_first_token import served_shape
from vllm_ragcache import loading
from vllm_ragcache.loading import KVLoader, LoadedKV
from vllm_ragcache.served_index import Piece

from ragcache.store import Blob

COUNT = 8


def concatenate(_: KVLoader, number: int, heads: slice, pieces: Sequence[Piece], blobs: Sequence[Blob]) -> Tensor:
    """K and V of a layer, (2, heads, tokens, head_dim), in new memory."""
    parts = zip(pieces, blobs, strict=True)
    return torch.cat(
        [blob.layers[number][:, heads, one.first : one.first + one.count] for one, blob in parts], dim=2
    )  # fmt: skip


def write_contiguous(layer: Any, keys: Tensor, values: Tensor, mapping: Tensor) -> None:
    """K and V of a layer, (heads, tokens, head_dim) each, copied before vLLM's kernel has them."""
    key, value = (part.transpose(0, 1).contiguous() for part in (keys, values))
    layer.impl.do_kv_cache_update(layer, key, value, layer.kv_cache, mapping)


@contextmanager
def plain_loader() -> Iterator[None]:
    """Loads as a loader that has no thought for memory."""
    with patch.object(KVLoader, "_gather", concatenate), patch.object(loading, "_write", write_contiguous):
        yield


#: What a load runs within.
LOADERS: Mapping[str, Callable[[], Any]] = {"plain": plain_loader, "connector": nullcontext}


def time_loads(ask: Callable[[], object], repeats: int) -> dict[str, list[tuple[LoadedKV, float]]]:
    """What each loader took, in turns: as it says itself, and seconds of the processor."""
    taken: dict[str, list[tuple[LoadedKV, float]]] = {name: [] for name in LOADERS}
    load = KVLoader.load
    for turn in range(repeats + 1):
        for name, loader in LOADERS.items():

            def timed(*args: Any, name: str = name, turn: int = turn) -> LoadedKV:
                began = time.process_time()
                loaded = load(*args)
                if turn:  # the first one only warms up
                    taken[name].append((loaded, time.process_time() - began))
                return loaded

            with loader(), patch.object(KVLoader, "load", timed):
                ask()
    return taken


def summarise(taken: Mapping[str, Sequence[tuple[LoadedKV, float]]]) -> list[dict[str, Any]]:
    """A row a loader: medians, and how many times faster it is than the plain one, turn by turn."""
    rows = list[dict[str, Any]]()
    for name, loads in taken.items():
        faster = sorted(plain[1] / one[1] for plain, one in zip(taken["plain"], loads, strict=True))
        seconds = median(one for _, one in loads)
        rows.append({
            "loader": name, "tokens": loads[0][0].tokens, "bytes": loads[0][0].nbytes,
            "milliseconds": round(seconds * 1e3, 1),
            "milliseconds_reading": round(median(loaded.read_ms for loaded, _ in loads), 1),
            "gigabytes_per_second": round(loads[0][0].nbytes / seconds / 1e9, 2),
            "times_plain": [round(one, 2) for one in (median(faster), faster[0], faster[-1])],
        })  # fmt: skip
    return rows


def main() -> None:
    """Time, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="qwen2.5-0.5b")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with served_shape(options.shape, COUNT) as (llm, engine, chunks):
        token_ids = engine.prefill(question(engine.index), chunks, method="naive").prompt.token_ids

        def ask() -> None:
            llm.reset_prefix_cache()
            generate(llm, token_ids, 1, ragcache={"method": "naive"})

        rows = summarise(time_loads(ask, options.repeats))
    about = {
        "command": f"python bench/studies/vllm_loading.py --shape {options.shape} --repeats {options.repeats}",
        "model": f"a Llama of {options.shape}'s sizes, random weights", "dtype": "float32",
        "vllm": version(), "threads": 1, "repeats": options.repeats, "rows": rows,
    }  # fmt: skip
    options.out.write_text(json.dumps(about, indent=1) + "\n")
    for row in rows:
        print(row, flush=True)


if __name__ == "__main__":
    main()
