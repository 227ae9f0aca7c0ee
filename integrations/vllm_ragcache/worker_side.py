"""What a worker does for the connector: it loads what the scheduler planned, and computes what belongs to it."""

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from ragcache.errors import CorruptBlob, InvalidArgument, RagCacheError
from ragcache.model.buffer import KVBuffer
from ragcache.retrieve.needs import needs
from ragcache.store import LocalStore
from vllm_ragcache.loading import HeadShare, KVLoader, LoadedKV
from vllm_ragcache.messages import Load, LoadResults
from vllm_ragcache.recompute import Recompute, Recomputed, compute_within_load
from vllm_ragcache.served_index import ServedIndex
from vllm_ragcache.served_model import read_layouts
from vllm_ragcache.served_reader import ServedReader
from vllm_ragcache.wanted import WORKER

with needs("vllm"):
    from vllm.logger import init_logger

if TYPE_CHECKING:
    from vllm.config import VllmConfig

_log = init_logger("vllm.ragcache")


class WorkerSide:
    """Loads what the scheduler planned.

    Parameters
    ----------
    index : ServedIndex
        Whose KV it is.
    config : VllmConfig
        Of the server.
    memory_bytes : int
        Most bytes of KV that are kept in memory.
    """

    def __init__(self, index: ServedIndex, config: "VllmConfig", memory_bytes: int) -> None:
        ranks = config.parallel_config.tensor_parallel_size
        self._config = config
        self._share = HeadShare(_rank(), ranks) if ranks > 1 else HeadShare()
        self._loader = KVLoader(
            LocalStore(index.path / "kv", read_only=True),
            index.fingerprint,
            read_layouts(index.catalog, index.path),
            block_size=config.cache_config.block_size,
            memory_bytes=memory_bytes,
            share=self._share,
        )
        self._model: torch.nn.Module | None = None
        self._reader: ServedReader | None = None
        self._failed_blocks: set[int] = set()
        self._results = LoadResults()

    def use_model(self, model: torch.nn.Module) -> None:
        """The model that this worker has loaded."""
        self._model = model

    def load(self, load: Load, layers: dict[int, Any]) -> None:
        """Write one request's KV; if any of it fails a check, vLLM computes all of it."""
        try:
            if load.recompute is None:
                self._results.loaded[load.request] = self._loader.load(load.pieces, load.block_ids, layers)
            else:
                computed = self._load_and_compute(load, load.recompute, layers)
                self._results.loaded[load.request], self._results.recomputed[load.request] = computed
        except RagCacheError as error:
            _log.warning("ragcache %s is computed instead: %s", load.request, error)
            key = error.key if isinstance(error, CorruptBlob) else ""
            self._loader.discard(key)
            self._results.failed[load.request] = key, str(error)
            self._failed_blocks.update(load.block_ids)

    def take_failed_blocks(self) -> set[int]:
        """Blocks of the loads that failed since the last call."""
        failed, self._failed_blocks = self._failed_blocks, set()
        return failed

    def take_results(self) -> LoadResults | None:
        """What became of the loads since the last call."""
        results, self._results = self._results, LoadResults()
        return results if results.loaded or results.failed else None

    @torch.inference_mode()
    def _load_and_compute(
        self, load: Load, recompute: Recompute, layers: dict[int, Any]
    ) -> tuple[LoadedKV, Recomputed]:
        """Put a prompt together in a buffer of ours, compute what belongs to it, and hand all of it to vLLM."""
        began = time.perf_counter()
        reader = self._served_reader(layers)
        buffer = KVBuffer(reader.layers, recompute.question[1] if recompute.share else load.slots.stop)
        loaded = self._loader.place(load.pieces, buffer, reader.device)
        at_once = self._config.scheduler_config.max_num_batched_tokens
        computed = compute_within_load(reader, buffer, load.pieces, recompute, at_once=at_once)
        self._loader.write(buffer, load.slots, load.block_ids, layers)
        return replace(loaded, ms=(time.perf_counter() - began) * 1e3), computed

    def _served_reader(self, layers: dict[int, Any]) -> ServedReader:
        if self._model is None:
            raise InvalidArgument(f"the worker has not handed over its model; start vLLM with --worker-cls {WORKER}")
        if self._reader is None:
            heads = self._config.model_config.get_total_num_kv_heads()
            self._reader = ServedReader(self._model, layers, self._config, kv_heads=heads, share=self._share)
        return self._reader


def _rank() -> int:
    from vllm.distributed import get_tensor_model_parallel_rank

    return int(get_tensor_model_parallel_rank())
