"""What the scheduler does for the connector: it looks up what each request can load, and plans the loads."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ragcache.errors import InvalidArgument, RagCacheError
from ragcache.methods import find_method
from ragcache.model.tuning import read_tuning
from ragcache.retrieve.needs import needs
from vllm_ragcache.messages import Load, LoadList, LoadResults
from vllm_ragcache.metrics import ReuseStats
from vllm_ragcache.recompute import Recompute
from vllm_ragcache.served_index import Composition, ServedIndex
from vllm_ragcache.served_model import read_suffix, why_not_recompute
from vllm_ragcache.wanted import FIELD, Wanted, count_first_pass, parse_wanted

with needs("vllm"):
    from vllm.logger import init_logger

if TYPE_CHECKING:
    from vllm.config import VllmConfig
    from vllm.v1.request import Request

_log = init_logger("vllm.ragcache")


@dataclass
class RequestReport:
    """What was reused for a request, as its response has it under `kv_transfer_params`.

    Attributes
    ----------
    method : str
        Row of the table.
    recompute : float
        Share of the loaded tokens that were to be computed again.
    prompt_tokens, loaded_tokens : int
        Tokens of the prompt, and those of them whose KV was loaded.
    chunks : int
        Chunks that were loaded.
    misses : list of dict
        The prompt's other chunks: `chunk`, `source`, `tokens` and the `reason`.
    recomputed_tokens, fresh_tokens : int
        Loaded tokens that were computed again, and tokens between or in front of chunks that were computed with them.
    charged : float
        Token-layers computed of the loaded tokens, over all that they have.
    lookup_ms, load_ms : float
        Milliseconds that looking up took, and loading with all that was computed for it. Of an answer of one token,
        what a load took and computed is not known in time.
    refused : str
        Why the request was answered by full prefill instead: vLLM cannot run what it asked for, or the index could not
        be read.
    """

    method: str
    prompt_tokens: int
    recompute: float = 0.0
    loaded_tokens: int = 0
    chunks: int = 0
    misses: list[dict[str, Any]] = field(default_factory=list)
    recomputed_tokens: int = 0
    fresh_tokens: int = 0
    charged: float = 0.0
    lookup_ms: float = 0.0
    load_ms: float = 0.0
    refused: str = ""

    def __str__(self) -> str:
        if self.refused:
            return f"full prefill: {self.refused}"
        missed = "".join(f"; {one['source']} missed: {one['reason']}" for one in self.misses)
        computed = f", {self.recomputed_tokens} of them recomputed" if self.recomputed_tokens else ""
        return (
            f"{self.method}: {self.loaded_tokens} of {self.prompt_tokens} tokens loaded{computed}, {self.chunks} "
            f"chunks, looked up in {self.lookup_ms:.1f} ms, loaded in {self.load_ms:.1f} ms{missed}"
        )


@dataclass(frozen=True)
class _Found:
    """What a request loads, and what is computed with it."""

    composition: Composition
    recompute: Recompute | None = None

    @property
    def digest(self) -> str:
        """The same for requests that may share vLLM's own blocks: what is recomputed may depend on all of a prompt."""
        job = self.recompute
        if job is None or job.share == 0:
            return self.composition.digest
        return hashlib.sha256(f"{self.composition.digest} {job}".encode()).hexdigest()


class SchedulerSide:
    """What is looked up and decided for each request.

    Parameters
    ----------
    index : ServedIndex
        Where it is looked up.
    config : VllmConfig
        Of the server.
    default : str
        Method of requests that name none.

    Raises
    ------
    InvalidArgument
        If the default cannot run on vLLM.
    """

    def __init__(self, index: ServedIndex, config: "VllmConfig", default: str) -> None:
        self._index = index
        self._default = default
        self._tuning = read_tuning(config.model_config.model)
        self._unable = why_not_recompute(config)
        self._at_once: int = config.scheduler_config.max_num_batched_tokens
        self._suffix = read_suffix(index.catalog, config.model_config)
        parse_wanted(None, default, self._tuning, self._unable)
        self._found: dict[str, _Found] = {}
        self._reports: dict[str, RequestReport] = {}
        self._loads: list[Load] = []
        self._stats = ReuseStats()

    def look_up(self, request: "Request") -> None:
        """Find what a request can load; one that loads nothing stays as it is, and exact."""
        token_ids = request.prompt_token_ids
        if token_ids is None or request.mm_features or request.lora_request or request.skip_reading_prefix_cache:
            return
        began = time.perf_counter()
        report = RequestReport("full", len(token_ids))
        try:
            wanted = parse_wanted(request.kv_transfer_params, self._default, self._tuning, self._unable)
            found = self._find(token_ids, wanted) if wanted else None
        except RagCacheError as error:  # an index that cannot be read now included: others' requests go on
            wanted, found, report.refused = None, None, str(error)
        if wanted and found:
            report.method, report.recompute = wanted.method, wanted.recompute
            report.misses = [asdict(miss) for miss in found.composition.misses]
        report.lookup_ms = (time.perf_counter() - began) * 1e3
        if wanted or report.refused:
            self._reports[request.request_id] = report
        self._count_look_up(report, found)
        if found and found.composition.pieces:
            report.chunks = found.composition.chunks
            self._found[request.request_id] = found
            _set_apart(request, found.digest)

    def count_loadable(self, request: "Request", computed: int) -> int:
        """How many tokens behind the first `computed` ones come with the load."""
        found = self._found.get(request.request_id)
        return max(0, found.composition.end - computed) if found else 0

    def plan_load(self, request: "Request", block_ids: tuple[int, ...], count: int) -> None:
        """Note a load that gives vLLM the `count` tokens behind those that it has."""
        found, report = self._found[request.request_id], self._reports[request.request_id]
        end = found.composition.end
        slots = range(end - count, end)
        lacking = [piece.within(slots.start, end) for piece in found.composition.pieces]
        report.loaded_tokens = sum(piece.count for piece in lacking)
        self._stats.count("ragcache:tokens", "loaded", report.loaded_tokens)
        # What is computed sees all of the prompt in front of it, whatever vLLM has of that.
        pieces = found.composition.pieces if found.recompute else tuple(piece for piece in lacking if piece.count)
        self._loads.append(Load(request.request_id, pieces, slots, block_ids, found.recompute))

    def take_loads(self) -> LoadList:
        """The loads that were planned since the last call."""
        loads, self._loads = self._loads, []
        return LoadList(loads)

    def note_results(self, results: LoadResults) -> None:
        """Put what workers say into the reports; a KV that failed is not loaded again."""
        for name, took in results.loaded.items():
            self._stats.count("ragcache:seconds", "load", took.ms / 1e3)
            if name in self._reports and name not in results.failed:
                self._reports[name].load_ms += took.ms
        for name, computed in results.recomputed.items():
            self._stats.count("ragcache:tokens", "recomputed", computed.recomputed)
            self._stats.count("ragcache:tokens", "fresh", computed.fresh)
            if name in self._reports and name not in results.failed:
                report = self._reports[name]
                report.recomputed_tokens, report.fresh_tokens = computed.recomputed, computed.fresh
                report.charged = computed.charged
        for name, (key, reason) in results.failed.items():
            self._stats.count("ragcache:requests", "failed", 1)
            if key:
                self._index.set_aside(key, reason)
            self._found.pop(name, None)
            if name in self._reports:
                report = self._reports[name]
                report.loaded_tokens = report.chunks = 0
                report.misses.append({"chunk": "", "source": "all chunks", "tokens": 0, "reason": reason})

    def take_stats(self) -> ReuseStats | None:
        """What was counted since the last call."""
        stats, self._stats = self._stats, ReuseStats()
        return None if stats.is_empty() else stats

    def finish(self, request: "Request") -> RequestReport | None:
        """The report of a request that is over."""
        self._found.pop(request.request_id, None)
        self._loads = [load for load in self._loads if load.request != request.request_id]
        report = self._reports.pop(request.request_id, None)
        if report is not None:
            _log.info("ragcache %s %s", request.request_id, report)
        return report

    def _count_look_up(self, report: RequestReport, found: _Found | None) -> None:
        """Count a request by what was found for it."""
        loaded = found.composition.chunks if found else 0
        outcome = "refused" if report.refused else "reused" if loaded else "nothing found" if found else "full"
        for counter, label, value in (
            ("requests", outcome, 1),
            ("chunks", "loaded", loaded),
            ("chunks", "missed", len(report.misses)),
            ("tokens", "all", report.prompt_tokens),
            ("seconds", "look-up", report.lookup_ms / 1e3),
        ):
            self._stats.count(f"ragcache:{counter}", label, value)

    def _find(self, token_ids: Sequence[int], wanted: Wanted) -> _Found:
        """What can be loaded, and what is to be computed with it.

        Raises
        ------
        InvalidArgument
            If tokens would be chosen by more of them at once than a step of vLLM takes.
        """
        found = self._index.compose(token_ids, wanted.encoder, 0 if self._unable else self._at_once)
        if not found.pieces or (wanted.recompute == 0 and found.fresh == 0):
            return _Found(found)
        question = self._question(token_ids, found.end)
        if wanted.recompute > 0:
            first = count_first_pass(find_method(wanted.method), found, question[1] - question[0])
            if first > self._at_once:
                raise InvalidArgument(
                    f"method {wanted.method!r} chooses tokens by {first:,} of them at once, and a step of vLLM takes "
                    f"{self._at_once:,}; start it with a larger --max-num-batched-tokens, or ask with recompute 0"
                )
        return _Found(found, Recompute(tuple(token_ids), question, wanted.method, wanted.recompute))

    def _question(self, token_ids: Sequence[int], start: int) -> tuple[int, int]:
        """First slot of the question's words and the one behind them: all that follows but the template's end."""
        end = len(token_ids) - len(self._suffix)
        asked = start < end and tuple(token_ids[end:]) == self._suffix
        return start, end if asked else len(token_ids)


def _set_apart(request: "Request", digest: str) -> None:
    """Give a request's blocks names that only the same composition has: no exact prefix, and no other one."""
    request.cache_salt = f"{FIELD}:{digest}:{request.cache_salt or ''}"
    request.block_hashes.clear()
    request.update_block_hashes()
