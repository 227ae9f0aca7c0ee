"""The connector: what vLLM's scheduler and workers call.

vLLM asks how many of a request's first tokens it need not compute, allots blocks, and has the worker fill them. KV that
was made apart is not what a prefill of the same tokens would give, so every request that loads any is set apart from
vLLM's exact prefix cache by a salt of its own: the digest of what is loaded and where.
"""

import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragcache.errors import CorruptBlob, InvalidArgument, RagCacheError
from ragcache.methods import DEFAULT_METHOD
from ragcache.model.tuning import read_tuning
from ragcache.retrieve.needs import needs
from ragcache.store import LocalStore
from vllm_ragcache.loading import KVLoader, LoadedKV
from vllm_ragcache.served_index import Composition, Piece, ServedIndex
from vllm_ragcache.served_model import check_layers, check_served_model, read_layouts
from vllm_ragcache.wanted import FIELD, parse_wanted

with needs("vllm"):
    from vllm.distributed.kv_transfer.kv_connector.v1.base import (
        KVConnectorBase_V1,
        KVConnectorMetadata,
        KVConnectorRole,
        KVConnectorWorkerMetadata,
        SupportsHMA,
    )
    from vllm.logger import init_logger
    from vllm.model_executor.models.utils import extract_layer_index

if TYPE_CHECKING:
    from vllm.config import VllmConfig
    from vllm.forward_context import ForwardContext
    from vllm.v1.core.kv_cache_manager import KVCacheBlocks
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.kv_cache_interface import KVCacheConfig
    from vllm.v1.outputs import KVConnectorOutput
    from vllm.v1.request import Request

_MEMORY_BYTES = 1 << 30
_log = init_logger("vllm.ragcache")


@dataclass(frozen=True)
class Load:
    """What a worker is to write for one request."""

    request: str
    pieces: tuple[Piece, ...]
    block_ids: tuple[int, ...]


@dataclass
class LoadList(KVConnectorMetadata):
    """What workers are to write in one step."""

    loads: list[Load] = field(default_factory=list)


@dataclass
class LoadResults(KVConnectorWorkerMetadata):
    """What became of the loads of one step: what each request's took, and the KV that failed, with the reason."""

    loaded: dict[str, LoadedKV] = field(default_factory=dict)
    failed: dict[str, tuple[str, str]] = field(default_factory=dict)  # key and reason, by request

    def aggregate(self, other: KVConnectorWorkerMetadata) -> "LoadResults":
        """Those of several workers: the slowest says how long a load took."""
        if not isinstance(other, LoadResults):
            return self
        both = [*self.loaded.items(), *other.loaded.items()]
        slowest = dict(sorted(both, key=lambda one: one[1].ms))
        return LoadResults(slowest, {**self.failed, **other.failed})


@dataclass
class RequestReport:
    """What was reused for a request, as its response has it under `kv_transfer_params`.

    Attributes
    ----------
    method : str
        Row of the table.
    prompt_tokens, loaded_tokens : int
        Tokens of the prompt, and those of them that were loaded.
    chunks : int
        Chunks that were loaded.
    misses : list of dict
        The prompt's other chunks: `chunk`, `source`, `tokens` and the `reason`.
    lookup_ms, load_ms : float
        Milliseconds that looking up and loading took; of an answer of one token, that of loading is not known in time.
    refused : str
        Why the request was answered by full prefill instead: vLLM cannot run what it asked for, or the index could not
        be read.
    """

    method: str
    prompt_tokens: int
    loaded_tokens: int = 0
    chunks: int = 0
    misses: list[dict[str, Any]] = field(default_factory=list)
    lookup_ms: float = 0.0
    load_ms: float = 0.0
    refused: str = ""

    def __str__(self) -> str:
        if self.refused:
            return f"full prefill: {self.refused}"
        missed = "".join(f"; {one['source']} missed: {one['reason']}" for one in self.misses)
        return (
            f"{self.method}: {self.loaded_tokens} of {self.prompt_tokens} tokens loaded, {self.chunks} chunks, looked "
            f"up in {self.lookup_ms:.1f} ms, loaded in {self.load_ms:.1f} ms{missed}"
        )


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
            raise InvalidArgument("kv_connector_extra_config names no index; run `python -m vllm_ragcache --index DIR`")
        index = ServedIndex(Path(extra("index", "")))
        if kv_cache_config is not None:
            check_layers(kv_cache_config)
        if role == KVConnectorRole.SCHEDULER:
            check_served_model(index.catalog, index.path, vllm_config)
            self._scheduler = SchedulerSide(index, extra("method", DEFAULT_METHOD), vllm_config.model_config.model)
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


class SchedulerSide:
    """What is looked up and decided for each request.

    Parameters
    ----------
    index : ServedIndex
        Where it is looked up.
    default : str
        Method of requests that name none.
    model : str
        Folder or hub id of the served model.
    """

    def __init__(self, index: ServedIndex, default: str, model: str) -> None:
        self._index = index
        self._default = default
        self._tuning = read_tuning(model)
        parse_wanted(None, default, self._tuning)
        self._found: dict[str, Composition] = {}
        self._reports: dict[str, RequestReport] = {}
        self._loads: list[Load] = []

    def look_up(self, request: "Request") -> None:
        """Find what a request can load; one that loads nothing stays as it is, and exact."""
        token_ids = request.prompt_token_ids
        if token_ids is None or request.mm_features or request.lora_request or request.skip_reading_prefix_cache:
            return
        began = time.perf_counter()
        report = RequestReport("full", len(token_ids))
        try:
            wanted = parse_wanted(request.kv_transfer_params, self._default, self._tuning)
            found = self._index.compose(token_ids, wanted.encoder) if wanted else Composition()
        except RagCacheError as error:  # an index that cannot be read now included: others' requests go on
            wanted, found, report.refused = None, Composition(), str(error)
        report.method = wanted.method if wanted else "full"
        report.misses = [asdict(miss) for miss in found.misses]
        report.lookup_ms = (time.perf_counter() - began) * 1e3
        if wanted or report.refused:
            self._reports[request.request_id] = report
        if found.pieces:
            report.chunks = found.chunks
            self._found[request.request_id] = found
            _set_apart(request, found.digest)

    def count_loadable(self, request: "Request", computed: int) -> int:
        """How many tokens behind the first `computed` ones can be loaded; the last one has to be computed."""
        found = self._found.get(request.request_id)
        return max(0, min(found.end, request.num_tokens - 1) - computed) if found else 0

    def plan_load(self, request: "Request", block_ids: tuple[int, ...], count: int) -> None:
        """Note a load of the `count` tokens behind those that vLLM has."""
        found = self._found[request.request_id]
        end = min(found.end, request.num_tokens - 1)
        pieces = (piece.within(end - count, end) for piece in found.pieces)
        self._reports[request.request_id].loaded_tokens += count
        self._loads.append(Load(request.request_id, tuple(piece for piece in pieces if piece.count), block_ids))

    def take_loads(self) -> LoadList:
        """The loads that were planned since the last call."""
        loads, self._loads = self._loads, []
        return LoadList(loads)

    def note_results(self, results: LoadResults) -> None:
        """Put what workers say into the reports; a KV that failed is not loaded again."""
        for name, took in results.loaded.items():
            if name in self._reports and name not in results.failed:
                self._reports[name].load_ms += took.ms
        for name, (key, reason) in results.failed.items():
            self._index.set_aside(key, reason)
            self._found.pop(name, None)
            if name in self._reports:
                report = self._reports[name]
                report.loaded_tokens = report.chunks = 0
                report.misses.append({"chunk": "", "source": "all chunks", "tokens": 0, "reason": reason})

    def finish(self, request: "Request") -> RequestReport | None:
        """The report of a request that is over."""
        self._found.pop(request.request_id, None)
        self._loads = [load for load in self._loads if load.request != request.request_id]
        report = self._reports.pop(request.request_id, None)
        if report is not None:
            _log.info("ragcache %s %s", request.request_id, report)
        return report


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
        parallel = config.parallel_config
        self._loader = KVLoader(
            LocalStore(index.path / "kv", read_only=True),
            index.fingerprint,
            read_layouts(index.catalog, index.path),
            block_size=config.cache_config.block_size,
            memory_bytes=memory_bytes,
            rank=_rank() if parallel.tensor_parallel_size > 1 else 0,
            ranks=parallel.tensor_parallel_size,
        )
        self._failed_blocks: set[int] = set()
        self._results = LoadResults()

    def load(self, load: Load, layers: dict[int, Any]) -> None:
        """Write one request's KV; if any of it fails a check, vLLM computes all of it."""
        try:
            self._results.loaded[load.request] = self._loader.load(load.pieces, load.block_ids, layers)
        except CorruptBlob as error:
            _log.warning("ragcache %s is computed instead: %s", load.request, error)
            self._loader.discard(error.key)
            self._results.failed[load.request] = error.key, str(error)
            self._failed_blocks.update(load.block_ids)

    def take_failed_blocks(self) -> set[int]:
        """Blocks of the loads that failed since the last call."""
        failed, self._failed_blocks = self._failed_blocks, set()
        return failed

    def take_results(self) -> LoadResults | None:
        """What became of the loads since the last call."""
        results, self._results = self._results, LoadResults()
        return results if results.loaded or results.failed else None


def _set_apart(request: "Request", digest: str) -> None:
    """Give a request's blocks names that only the same composition has: no exact prefix, and no other one."""
    request.cache_salt = f"{FIELD}:{digest}:{request.cache_salt or ''}"
    request.block_hashes.clear()
    request.update_block_hashes()


def _rank() -> int:
    from vllm.distributed import get_tensor_model_parallel_rank

    return int(get_tensor_model_parallel_rank())
