"""Each chunk behind all that stood before it, in every order that was asked for: RAGCache's knowledge tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ragcache.encode.protocol import PromptEncoder
from ragcache.errors import InvalidArgument
from ragcache.model.lazy import torch

if TYPE_CHECKING:
    from ragcache.model.buffer import ChunkKV
    from ragcache.model.prefill_context import PrefillContext


@dataclass(frozen=True)
class PrefixTree(PromptEncoder):
    """The knowledge tree of RAGCache (2404.12457): exact prefixes of whole prompts, chunk by chunk.

    A node is a chunk's KV behind the system prefix and the chunks on the way to it, in that order; a prompt reuses the
    longest path that it begins with, and is a full prefill in every number. Nothing is made at ingestion: behind an
    answer, what was prefilled of its chunks becomes nodes, up to the first that is none of the index's, or that may not
    be read by all who may read one behind it.

    Nodes are evicted by PGDSF, leaves only: the one of least priority = clock + frequency x cost / size goes, and the
    clock rises to its priority. cost / size is the work of the prefill that made the node over the tokens that it
    computed, T(cached, new) / new. The paper profiles T in seconds; here it is FLOPs, which need no profile. Every node
    is written to the disk once, so that leaving memory costs nothing (the paper's swapping out only once); one that
    leaves the disk is forgotten with its statistics.

    What differs from the paper: one clock for memory and disk, which eviction from memory leaves as it is; the cost is
    that of the prefill that made a node, not a mean over requests; requests are not put in another order. An index's
    own limit (`--max-size`) knows no tree, and may take a node on the way to others, which then serve no prompt.

    Attributes
    ----------
    memory_bytes : int
        Most bytes of nodes that are kept in memory too, within the index's own limit (tuned here: not at all).
    disk_bytes : int
        Most bytes of nodes on the disk (tuned here: not at all).

    Raises
    ------
    InvalidArgument
        If a limit is negative.
    """

    memory_bytes: int = 512 << 20
    disk_bytes: int = 8 << 30
    recipe: ClassVar[str] = "prefix-tree"
    exact_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("memory_bytes", "disk_bytes"):
            if getattr(self, name) < 0:
                raise InvalidArgument(f"{name} is {getattr(self, name)}; give 0 or more bytes")

    def harvest(self, p: PrefillContext, chunks: Sequence[int]) -> list[tuple[ChunkKV, dict[str, Any]]]:
        """What stands in the buffer: all in front of it was exact or computed, and so is it."""
        from ragcache.model.buffer import ChunkKV

        slots = torch.arange(len(p.prompt))
        new = slots[p.fresh]  # (new,)
        about = {"cost": p.reader.dims.forward(new, range(p.reader.layers), logits=True) / max(len(new), 1)}
        found = []
        for segment in chunks:
            span, ids = p.span(segment), p.prompt.segments[segment].token_ids
            found.append((ChunkKV(p.buffer.read(span.start, span.stop), p.prompt.starts[segment], ids, {}), about))
        return found
