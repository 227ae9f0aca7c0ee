"""What it takes to publish a catalogue whole, and to look chunks up in a copy of it.

    python bench/studies/published_catalogue.py --out docs/benchmarks/published-catalogue.json

Synthetic documents in a real catalogue, a folder as the object store, so that no network is measured. The question is
whether a snapshot is small beside the KV that it names, and quick enough that readers need no database server.
"""

import random
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Annotated

import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import write

from ragcache.index.publication import attach, fetch, publish
from ragcache.store import Catalog, ChunkRow, DocumentRow, EncodingRow

_WORDS = "river stone amber otter wheel lantern copper meadow harbour violet barge gravel heron ferry".split()
_PER_DOCUMENT, _TOKENS, _TOP_K = 100, 256, 5


def main(
    n: Annotated[int, typer.Option(help="Chunks.")] = 20_000,
    out: Annotated[Path, typer.Option(help="JSON to write.")] = Path("published-catalogue.json"),
) -> None:
    """Fill a catalogue, publish it, fetch it, and look chunks up in the copy."""
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as place:
        path, url = Path(place) / "index", f"file://{place}/published"
        attach(path, url)
        catalog = Catalog(path / "catalog.sqlite", durable=False)
        for number in range(n // _PER_DOCUMENT):
            _fill(catalog, number, rng)
        times = {"publish": _timed(lambda: publish(path, catalog))}
        catalog.close()
        times["fetch"] = _timed(lambda: fetch(url, Path(place) / "copy"))
        times["fetch_unchanged"] = _timed(lambda: fetch(url, Path(place) / "copy"))
        copy = Path(place) / "copy" / "catalog.sqlite"
        opened = Catalog(copy)
        ids = [chunk for chunk, _ in opened.places()]
        lookups = [_timed(lambda: _look_up(opened, rng.sample(ids, _TOP_K))) for _ in range(200)]
        opened.close()
        size = copy.stat().st_size
    result = {
        "meta": report.meta(device=torch.device("cpu"), chunks=n, tokens=_TOKENS, top_k=_TOP_K),
        "bytes": size, "bytes_per_chunk": round(size / n), "look_up_ms": round(1000 * median(lookups), 3),
        "seconds": {name: round(seconds, 3) for name, seconds in times.items()},
    }  # fmt: skip
    write(out, result)
    typer.echo(result)


def _fill(catalog: Catalog, number: int, rng: random.Random) -> None:
    document, rows, encodings = f"{number:016x}", list[ChunkRow](), list[EncodingRow]()
    for ordinal in range(_PER_DOCUMENT):
        text = " ".join(rng.choices(_WORDS, k=_TOKENS * 3 // 4))
        key = sha256(f"{number} {ordinal}".encode()).hexdigest()
        ids = tuple(rng.randrange(32_000) for _ in range(_TOKENS))
        rows.append(ChunkRow(f"{document}-{key[:12]}", document, ordinal, text, ids, 0, len(text)))
        encodings.append(EncodingRow(rows[-1].id, "prefixed", key, ("0" * 64,), 1 << 25, "system prefix", 0.0, 0.0))
    catalog.put_document(DocumentRow(document, f"/documents/{number}.txt", "", {}), rows)
    catalog.put_encoding(*encodings)


def _look_up(catalog: Catalog, ids: list[str]) -> None:
    for chunk in catalog.chunks(ids):
        catalog.encodings(chunk.id, "prefixed")


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    typer.run(main)
