"""The connector: what vLLM's scheduler and workers call.

vLLM asks how many of a request's first tokens it need not compute, allots blocks, and has the worker fill them. KV that
was made apart is not what a prefill of the same tokens would give, so every request that loads any is set apart from
vLLM's exact prefix cache by a salt of its own: the digest of what is loaded and where.
"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragcache.errors import InvalidArgument
from ragcache.methods import DEFAULT_METHOD
from ragcache.retrieve.needs import needs
from vllm_ragcache.messages import LoadList, LoadResults
from vllm_ragcache.metrics import ReuseMetrics, ReuseStats
from vllm_ragcache.scheduler_side import SchedulerSide
from vllm_ragcache.served_index import ServedIndex
from vllm_ragcache.served_model import check_layers, check_served_model
from vllm_ragcache.wanted import FIELD
from vllm_ragcache.worker_side import WorkerSide

with needs("vllm"):
    from vllm.distributed.kv_transfer.kv_connector.v1.base import (
        KVConnectorBase_V1,
        KVConnectorRole,
        KVConnectorWorkerMetadata,
        SupportsHMA,
    )
    from vllm.model_executor.models.utils import extract_layer_index

if TYPE_CHECKING:
    from torch.nn import Module
    from vllm.config import VllmConfig
    from vllm.forward_context import ForwardContext
    from vllm.v1.core.kv_cache_manager import KVCacheBlocks
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.kv_cache_interface import KVCacheConfig
    from vllm.v1.outputs import KVConnectorOutput
    from vllm.v1.request import Request

_MEMORY_BYTES = 1 << 30


class RagCacheConnector(KVConnectorBase_V1, SupportsHMA):
    """Loads the KV of chunks that stand in a prompt, in any order, from an index of ragcache.

    Its `kv_connector_extra_config` has `index`, the folder; `method`, for requests that name none; and `memory_bytes`,
    most bytes of KV that each worker keeps in memory.

    Raises
    ------
    IndexMismatch
        If another model made the index than vLLM serves.
    UnsupportedModel
        If vLLM keeps other KV of the model than full attention's.
    EmptyIndex, IndexFormat
        If there is no index, or one of another version.
    InvalidArgument
        If the default method cannot run on vLLM.
    """

    def __init__(
        self, vllm_config: "VllmConfig", role: KVConnectorRole, kv_cache_config: "KVCacheConfig | None" = None
    ) -> None:
        super().__init__(vllm_config=vllm_config, role=role, kv_cache_config=kv_cache_config)
        extra = self._kv_transfer_config.get_from_extra_config
        if not extra("index", ""):
            raise InvalidArgument(
                "kv_connector_extra_config names no index; run `ragcache serve --engine vllm --index DIR`"
            )
        index = ServedIndex(Path(extra("index", "")))
        if kv_cache_config is not None:
            check_layers(kv_cache_config)
        if role == KVConnectorRole.SCHEDULER:
            check_served_model(index.catalog, index.path, vllm_config)
            self._scheduler = SchedulerSide(index, vllm_config, extra("method", DEFAULT_METHOD))
        else:
            self._worker = WorkerSide(index, vllm_config, int(extra("memory_bytes", _MEMORY_BYTES)))

    # -- what the scheduler calls

    def on_new_request(self, request: "Request") -> None:
        """Look up what the request can load, and set it apart from requests that load something else."""
        self._scheduler.look_up(request)

    def get_num_new_matched_tokens(self, request: "Request", num_computed_tokens: int) -> tuple[int | None, bool]:
        """How many tokens behind those that are computed can be loaded, within the step."""
        return self._scheduler.count_loadable(request, num_computed_tokens), False

    def update_state_after_alloc(self, request: "Request", blocks: "KVCacheBlocks", num_external_tokens: int) -> None:
        """Note the load for the worker."""
        if num_external_tokens:
            self._scheduler.plan_load(request, tuple(blocks.get_block_ids()[0]), num_external_tokens)

    def build_connector_meta(self, scheduler_output: "SchedulerOutput") -> LoadList:
        """The loads of this step."""
        return self._scheduler.take_loads()

    def update_connector_output(self, connector_output: "KVConnectorOutput") -> None:
        """Note what became of them."""
        results = connector_output.kv_connector_worker_meta
        if isinstance(results, LoadResults):
            self._scheduler.note_results(results)

    def request_finished(self, request: "Request", block_ids: list[int]) -> tuple[bool, dict[str, Any] | None]:
        """Report, and leave the blocks to vLLM."""
        report = self._scheduler.finish(request)
        return False, None if report is None else {FIELD: asdict(report)}

    def request_finished_all_groups(
        self, request: "Request", block_ids: tuple[list[int], ...]
    ) -> tuple[bool, dict[str, Any] | None]:
        """The same."""
        return self.request_finished(request, [])

    def get_kv_connector_stats(self) -> ReuseStats | None:
        """What the scheduler counted; workers have told it what they did."""
        return self._scheduler.take_stats() if self.role == KVConnectorRole.SCHEDULER else None

    @classmethod
    def build_kv_connector_stats(cls, data: dict[str, Any] | None = None) -> ReuseStats:
        """The same from what was sent to the process that logs."""
        return ReuseStats(data=data or {})

    @classmethod
    def build_prom_metrics(cls, *given: Any, **named: Any) -> ReuseMetrics:
        """Counters beside vLLM's own."""
        return ReuseMetrics(*given, **named)

    # -- what the worker calls

    def start_load_kv(self, forward_context: "ForwardContext", **kwargs: Any) -> None:
        """Load all of this step, before its forward."""
        meta = self._get_connector_metadata()
        layers = {
            extract_layer_index(name): layer
            for name, layer in forward_context.no_compile_layers.items()
            if getattr(layer, "kv_cache", None) is not None
        }
        for load in meta.loads if isinstance(meta, LoadList) else ():
            self._worker.load(load, layers)

    def use_model(self, model: "Module") -> None:
        """The model, by which tokens can be recomputed."""
        self._worker.use_model(model)

    def get_block_ids_with_load_errors(self) -> set[int]:
        """Blocks whose KV is to be computed instead."""
        return self._worker.take_failed_blocks()

    def build_connector_worker_meta(self) -> KVConnectorWorkerMetadata | None:
        """What became of this step's loads."""
        return self._worker.take_results()

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Nothing: loads are done when the forward begins."""

    def save_kv_layer(self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any) -> None:
        """Nothing: what vLLM computes stays in its own cache."""

    def wait_for_save(self) -> None:
        """Nothing."""
