"""Ingestion on Ray with things dying under it: a worker, a document that kills whoever reads it, a node of a cluster.

    python bench/studies/ray_ingestion.py --out docs/benchmarks/ray-ingestion.json

Every run is held against one by a single process, with the same secret: the same keys, and every file whole.
`make ray-check` runs it in an environment of its own; exit code 1 if anything was lost, doubled or wrong.
"""

import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import write
from ray_ragcache import RayEncoding, RayPool
from ray_ragcache.messages import Job, Status
from ray_ragcache.worker import ChunkWorker

from ragcache.bundled import reader_path
from ragcache.errors import CorruptBlob
from ragcache.index.index import Index
from ragcache.methods import DEFAULT_METHOD, find_method
from ragcache.model.loading import load_reader
from ragcache.model.reader import Reader
from ragcache.store import unpack

POISON = "a page that kills whoever reads it"
_WORDS = "river stone amber otter wheel lantern copper meadow harbour violet barge gravel heron ferry".split()
_PER_DOCUMENT = 20


class MortalWorker(ChunkWorker):
    """Dies in the middle of a job where a file asks for it, and over a poisoned text whenever it meets one."""

    def encode(self, job: Job) -> list[Status]:
        """Make half of the job, and die."""
        asked = Path(self._spec.path) / "die"
        wanted = [piece for piece in job.pieces if piece.id in job.todo]
        poisoned = any(POISON in piece.text for piece in wanted)
        try:
            asked.unlink()
        except FileNotFoundError:
            if not poisoned:
                return super().encode(job)
        super().encode(replace(job, todo=job.todo[: len(job.todo) // 2]))
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


def main(
    n: Annotated[int, typer.Option(help="Chunks.")] = 2000,
    out: Annotated[Path, typer.Option(help="JSON to write.")] = Path("ray-ingestion.json"),
) -> None:
    """Ingest under each fault, and compare."""
    import ray

    with tempfile.TemporaryDirectory() as place:
        reader = _make_reader(Path(place) / "model")
        about = report.meta(device=reader.device, chunks=n, documents=n // _PER_DOCUMENT, ray=ray.__version__)
        began = time.perf_counter()
        with _index(Path(place) / "alone", reader, n) as index:
            list(index.encode(_encoder()))
            expected = _keys(index)
        alone = {"keys": len(expected), "seconds": round(time.perf_counter() - began, 1)}
        typer.echo(alone)
        machine = _on_one_machine(Path(place) / "machine", reader, n, expected)
        write(out, {"meta": about, "alone": alone, "worker_killed_and_poison": machine})
        cluster = _on_a_cluster(Path(place) / "cluster", reader, n, expected)
    write(out, {"meta": about, "alone": alone, "worker_killed_and_poison": machine, "node_lost": cluster})
    if not (machine["right"] and cluster["right"]):
        raise typer.Exit(1)


def _on_one_machine(path: Path, reader: Reader, n: int, expected: set[str]) -> dict[str, Any]:
    """Two workers, of which one is killed, and a page that kills every one that reads it."""
    _start_ray(include_dashboard=False, num_cpus=4)
    try:
        pool = RayPool("local", 2, worker=MortalWorker)
        return _ingest(path, reader, n, expected, pool, lambda: (path / "die").touch(), poison=True)
    finally:
        _stop_ray()


def _ingest(
    path: Path,
    reader: Reader,
    n: int,
    expected: set[str],
    pool: RayPool,
    disturb: Callable[[], object],
    *,
    poison: bool = False,
) -> dict[str, Any]:
    """Ingest on Ray, and disturb it once two chunks of five are there."""
    encoding, began, died = RayEncoding(pool), time.perf_counter(), pool.deaths
    with _index(path, reader, n, poison=poison) as index:
        for done, _ in enumerate(encoding.encode(index, _encoder()), 1):
            if done == n * 2 // 5:
                disturb()
        found = {**_compare(index, expected, encoding, poison), "deaths": pool.deaths - died}
    typer.echo(found)
    return {**found, "seconds": round(time.perf_counter() - began, 1)}


def _on_a_cluster(path: Path, reader: Reader, n: int, expected: set[str]) -> dict[str, Any]:
    """The same on three nodes of this machine, of which one is taken away."""
    from ray.cluster_utils import Cluster

    os.environ.update(RAY_raylet_start_wait_time_s="600", RAY_USAGE_STATS_ENABLED="0")
    room = {"num_cpus": 1, "object_store_memory": 100 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={"node_ip_address": "127.0.0.2", **room})
    nodes = [cluster.add_node(node_ip_address=f"127.0.0.{number}", **room) for number in (3, 4)]
    try:
        _start_ray(address=cluster.address, _node_ip_address="127.0.0.2")
        pool = RayPool("auto", 3, worker=MortalWorker)
        lose = partial(cluster.remove_node, nodes[-1], allow_graceful=False)
        return {"nodes": 3, **_ingest(path, reader, n, expected, pool, lose)}
    finally:
        _stop_ray()
        cluster.shutdown()


def _start_ray(**how: Any) -> None:
    """Start or join it; on a busy machine its processes need more than the half minute that it waits for them."""
    import ray

    os.environ.update(RAY_raylet_start_wait_time_s="600", RAY_USAGE_STATS_ENABLED="0")
    ray.init(log_to_driver=False, **how)


def _stop_ray() -> None:
    import ray

    ray.shutdown()


def _make_reader(folder: Path) -> Reader:
    """A tiny model with random weights, on the disk, as workers load one."""
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(reader_path())
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(vocab_size=len(tokenizer), num_key_value_heads=2, max_position_embeddings=2048, **sizes)
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return load_reader(str(folder))


def _compare(index: Index, expected: set[str], encoding: RayEncoding, poison: bool) -> dict[str, Any]:
    """What of an index is not as a single process made it."""
    keys, rows = _keys(index), index.catalog.by_recipe(_encoder().recipe)
    blobs = set(index.store.list()) - {index.prefix_key}
    bad = 0
    for key in blobs:
        try:
            unpack(index.store.get(key), key)
        except CorruptBlob:
            bad += 1
    lost, reported = len(expected - keys), len(encoding.failures)
    doubled = len(rows) - len({row.chunk for row in rows})
    right = not (lost or doubled or bad or keys - expected or blobs - keys) and reported == int(poison)
    return {
        "right": right, "keys": len(keys), "lost": lost, "doubled": doubled, "other": len(keys - expected), "bad": bad,
        "unnamed_files": len(blobs - keys), "reported": encoding.failures, "published": encoding.stored,
        "found_there": encoding.found,
    }  # fmt: skip


@contextmanager
def _index(path: Path, reader: Reader, n: int, *, poison: bool = False) -> Iterator[Index]:
    """Documents of some chunks each, every chunk unlike the others; last a poisoned one, if asked for."""
    path.mkdir()
    (path / "secret").write_bytes(bytes(32))  # or no two runs had a key in common
    rng = random.Random(0)
    with Index(path, reader, memory_bytes=0) as index:
        index.catalog.set_setting("rag", {"name": reader.name, "method": DEFAULT_METHOD})
        for number in range(n // _PER_DOCUMENT):
            texts = [f"{number} {part} " + " ".join(rng.choices(_WORDS, k=6)) for part in range(_PER_DOCUMENT)]
            index.put(f"document-{number:04d}", "", [(text, 0, len(text)) for text in texts], {})
        if poison:
            index.put("poisoned", "", [(POISON, 0, len(POISON))], {})
        yield index


def _encoder() -> Any:
    return find_method(DEFAULT_METHOD).encode


def _keys(index: Index) -> set[str]:
    return {row.key for row in index.catalog.by_recipe(_encoder().recipe)}


if __name__ == "__main__":
    typer.run(main)
