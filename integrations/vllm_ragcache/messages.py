"""What vLLM's scheduler and its workers tell each other about loads."""

from dataclasses import dataclass, field

from ragcache.retrieve.needs import needs
from vllm_ragcache.loading import LoadedKV
from vllm_ragcache.recompute import Recompute, Recomputed
from vllm_ragcache.served_index import Piece

with needs("vllm"):
    from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorMetadata, KVConnectorWorkerMetadata


@dataclass(frozen=True)
class Load:
    """What a worker is to write for one request.

    Attributes
    ----------
    request : str
        Its id.
    pieces : tuple of Piece
        What is loaded, from left to right; neighbours, unless something is computed.
    slots : range
        What is to be written.
    block_ids : tuple of int
        The request's blocks, from its first token on.
    recompute : Recompute or None
        What is computed beside it; None for nothing.
    """

    request: str
    pieces: tuple[Piece, ...]
    slots: range
    block_ids: tuple[int, ...]
    recompute: Recompute | None = None


@dataclass
class LoadList(KVConnectorMetadata):
    """What workers are to write in one step."""

    loads: list[Load] = field(default_factory=list)


@dataclass
class LoadResults(KVConnectorWorkerMetadata):
    """What became of the loads of one step.

    Attributes
    ----------
    loaded : dict of str to LoadedKV
        What each request's load took.
    recomputed : dict of str to Recomputed
        What was computed for it.
    failed : dict of str to (str, str)
        The KV that failed, and the reason, by request.
    """

    loaded: dict[str, LoadedKV] = field(default_factory=dict)
    recomputed: dict[str, Recomputed] = field(default_factory=dict)
    failed: dict[str, tuple[str, str]] = field(default_factory=dict)

    def aggregate(self, other: KVConnectorWorkerMetadata) -> "LoadResults":
        """Those of several workers: the slowest says how long a load took."""
        if not isinstance(other, LoadResults):
            return self
        both = [*self.loaded.items(), *other.loaded.items()]
        slowest = dict(sorted(both, key=lambda one: one[1].ms))
        return LoadResults(slowest, {**self.recomputed, **other.recomputed}, {**self.failed, **other.failed})
