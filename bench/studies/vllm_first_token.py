"""How much sooner does the first token come with the connector? In vLLM and in our own engine, at a 0.5B model's shape.

    .venv-vllm/bin/python bench/studies/vllm_first_token.py --out docs/benchmarks/vllm-first-token.json

Four and eight chunks of 512 random tokens in an order of their own, since behind each other as in their document they
would be an exact prefix; by full prefill, by the default method and by `naive`; weights are random
too, since speed knows no meaning. Systems take turns in one process and one thread. Nothing stays in memory between
two questions: neither vLLM's prefix cache nor KV of the index. Kept are wall time and the processor's own, which other
work on the machine hardly changes.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import torch
from ragcache_bench.speed.shapes import CHUNK, SHAPES, question, random_reader, random_texts
from studied_vllm import generate, start_vllm, version

from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.methods import DEFAULT_METHOD, find_method
from ragcache.model.loading import load_reader

CHUNKS = (4, 8)
METHODS = (DEFAULT_METHOD, "naive")


def write_checkpoint(shape: str, folder: Path) -> str:
    """A Llama of a shape's sizes with random weights, and its tokenizer, as files; gives the folder."""
    _, sizes = SHAPES[shape]  # of the type that it names, a folder's tokenizer may be taken for that type's own
    reader = random_reader("llama", sizes, dtype=torch.float32, device="cpu")
    reader.model.save_pretrained(folder)
    reader.tokenizer.save_pretrained(folder)
    return str(folder)


def fill_index(index: Index, count: int) -> list[Chunk]:
    """One document of so many chunks, with the KV of each method."""
    text, pieces = "", list[tuple[str, int, int]]()
    for words in random_texts(count):
        pieces.append((words, len(text), len(text) + len(words)))
        text += words + "\n\n"
    index.put("random words", "", pieces, {})
    for method in METHODS:
        encoder = find_method(method).encode
        for _ in index.encode(encoder) if encoder else ():
            pass
    ids = [id for id, _ in index.catalog.places()]
    random.Random(0).shuffle(ids)
    return list(index.chunks(ids))


@contextmanager
def served_shape(shape: str, count: int) -> Iterator[tuple[Any, Engine, list[Chunk]]]:
    """VLLM and our engine, in one thread, over one index of so many chunks, none of whose KV is kept in memory."""
    torch.set_num_threads(1)
    room = (count + 1) * CHUNK
    with tempfile.TemporaryDirectory() as folder:
        model = write_checkpoint(shape, Path(folder) / "model")
        with Index(Path(folder) / "index", load_reader(model, dtype="float32")) as index:
            chunks = fill_index(index, count)
            llm = start_vllm(
                model, index.path, memory_bytes=0, max_model_len=room, max_num_batched_tokens=room, block_size=32
            )
            yield llm, Engine(index.reader, index), chunks


def time_first_token(llm: Any, engine: Engine, chunks: Sequence[Chunk], repeats: int) -> dict[str, Any]:
    """Seconds to the first token over some chunks, and how many times sooner than by full prefill."""
    asked = question(engine.index)
    token_ids = engine.prefill(asked, chunks).prompt.token_ids

    def ours(method: str) -> Callable[[], object]:
        return lambda: engine.prefill(asked, chunks, method=method)

    def theirs(ragcache: Any) -> Callable[[], object]:
        return lambda: generate(llm, token_ids, 1, ragcache=ragcache)

    ways = {("vllm", "full"): theirs(False), ("engine", "full"): ours("full")}
    ways |= {("vllm", method): theirs({"method": method}) for method in METHODS}
    ways |= {("engine", method): ours(method) for method in METHODS}
    taken: dict[tuple[str, str], list[tuple[float, float]]] = {way: [] for way in ways}
    for turn in range(repeats + 1):
        for way, run in ways.items():
            llm.reset_prefix_cache()
            engine.index.release()
            wall, processor = time.perf_counter(), time.process_time()
            run()
            seconds = time.perf_counter() - wall, time.process_time() - processor
            print(len(token_ids), turn, *way, *seconds, flush=True)
            if turn:  # the first one only warms up
                taken[way].append(seconds)
    return {"tokens": len(token_ids), "rows": summarise(taken)}


def summarise(taken: dict[tuple[str, str], list[tuple[float, float]]]) -> list[dict[str, Any]]:
    """A row a system and method: medians, and the median, least and most of full prefill over it, turn by turn."""
    rows = list[dict[str, Any]]()
    for (system, method), seconds in taken.items():
        full = taken[system, "full"]
        sooner = sorted(whole[1] / one[1] for whole, one in zip(full, seconds, strict=True))
        rows.append({
            "system": system,
            "method": method,
            "wall_seconds": round(median(wall for wall, _ in seconds), 4),
            "processor_seconds": round(median(processor for _, processor in seconds), 4),
            "times_sooner": {
                "median": round(median(sooner), 2), "least": round(sooner[0], 2), "most": round(sooner[-1], 2)
            },
        })  # fmt: skip
    return rows


def main() -> None:
    """Time, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="qwen2.5-0.5b")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with served_shape(options.shape, max(CHUNKS)) as (llm, engine, chunks):
        found = [time_first_token(llm, engine, chunks[:count], options.repeats) for count in CHUNKS]
    about = {
        "command": f"python bench/studies/vllm_first_token.py --shape {options.shape} --repeats {options.repeats}",
        "model": f"a Llama of {options.shape}'s sizes, random weights", "dtype": "float32",
        "vllm": version(), "threads": 1, "repeats": options.repeats,
        "recompute": {method: find_method(method).recompute for method in METHODS},
        "prompts": found,
    }  # fmt: skip
    options.out.write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
