"""vLLM in this process, with the connector, over the demo corpus; skipped where vLLM is not installed."""

import importlib.util
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # scheduler and worker stand in this process, to be looked into
os.environ["VLLM_NO_USAGE_STATS"] = "1"
os.environ["VLLM_CPU_KVCACHE_SPACE"] = "1"
os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
os.environ["VLLM_LOGGING_LEVEL"] = "WARNING"

spec = importlib.util.find_spec("vllm")
if spec is None or spec.origin is None:  # this very folder goes by that name too
    collect_ignore_glob = ["test_*.py"]

from ragcache import bundled
from ragcache.engine.engine import Engine
from ragcache.index.index import Index
from ragcache.methods import METHODS
from ragcache.model.loading import load_reader

BLOCK = 32
NEIGHBOURS = 3


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Sixteen documents, a paragraph a chunk, with the KV of both methods."""
    with Index(tmp_path_factory.mktemp("served") / "index", load_reader("bundled", dtype="float32")) as index:
        for file in sorted(path for path in bundled.corpus_path().rglob("*") if path.is_file())[:16]:
            put_document(index, file.name, file.read_text())
        ids = [id for id, _ in index.catalog.places()]

        def neighbours(chunk: str, count: int) -> list[str]:
            here = ids.index(chunk)
            return [*ids[here + 1 :], *ids[:here]][: min(count, NEIGHBOURS)]

        for method in ("naive", "auto", "fusionrag"):
            list(index.encode(METHODS[method].encode, neighbours=neighbours))
        yield index


def put_document(index: Index, source: str, text: str) -> None:
    """A document, a paragraph a chunk."""
    pieces, end = list[tuple[str, int, int]](), 0
    for paragraph in filter(str.strip, text.split("\n\n")):
        start = text.index(paragraph, end)
        end = start + len(paragraph)
        pieces.append((paragraph, start, end))
    index.put(source, "", pieces, {})


@pytest.fixture(scope="session")
def engine(index: Index) -> Engine:
    """Our own engine."""
    return Engine(index.reader, index)


@pytest.fixture(scope="session")
def llm(index: Index) -> Any:
    """vLLM over the same index, with so little room that requests are prefilled in parts and preempted."""
    from vllm import LLM
    from vllm_ragcache.launch import connector_config
    from vllm_ragcache.wanted import WORKER

    return LLM(
        str(bundled.reader_path()), dtype="float32", max_model_len=1024, block_size=BLOCK, enforce_eager=True,
        max_logprobs=-1, logprobs_mode="raw_logprobs", enable_prefix_caching=True, max_num_batched_tokens=256,
        num_gpu_blocks_override=40,
        worker_cls=WORKER, kv_transfer_config=connector_config(index.path, memory_bytes=0),
    )  # fmt: skip


@pytest.fixture
def chunks(index: Index) -> Callable[[int], list[Any]]:
    """Some chunks in random order, by seed."""
    ids = [id for id, _ in index.catalog.places()]

    def chosen(seed: int, count: int = 5) -> list[Any]:
        return index.chunks(random.Random(seed).sample(ids, count))

    return chosen


@pytest.fixture
def file_of(index: Index) -> Callable[[Any, str], Any]:
    def find(chunk: Any, method: str) -> Any:
        [row] = index.catalog.encodings(chunk.id, METHODS[method].encode.recipe)
        return index.store.path_of(row.key)

    return find
