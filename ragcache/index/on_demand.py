"""KV that a question lacks, made for it, and stored if nothing refuses: the question is answered all the same."""

from dataclasses import dataclass
from typing import Protocol

from ragcache.encode import Encoder, EncodingContext, LeftContext, Prefixed
from ragcache.errors import IndexFormat
from ragcache.index.chunks import Chunk
from ragcache.index.stored_kv import REFUSED
from ragcache.model.buffer import ChunkKV
from ragcache.model.reader import Reader

#: What reports say of such KV.
WITHOUT_DOCUMENT = "without what stands before it in its document, whose KV is not stored"


@dataclass(frozen=True, eq=False)
class OnDemand:
    """A KV that was made for a question, and what is worth saying of it."""

    kv: ChunkKV
    notes: tuple[str, ...] = ()


class Keeper(Protocol):
    """An index, as far as it keeps what was made for a question."""

    reader: Reader

    def keep(self, chunk: Chunk, encoder: Encoder, kv: ChunkKV, left: LeftContext | None) -> None:
        """Store a KV where the chunk is one of the index's, or note it for its second sight."""

    def does_without_document(self, encoder: Encoder) -> bool:
        """Whether prefixed KV serves where an encoder's is not stored."""


def make_on_demand(index: Keeper, chunk: Chunk, encoder: Encoder, context: EncodingContext) -> OnDemand:
    """Make a chunk's KV, and keep it unless the disk or the catalogue refuses.

    While its left context isn't stored it is computed behind the system prefix: for this once, or as prefixed KV, which
    serves until the other is made, where that may never be.

    Parameters
    ----------
    index : Keeper
        Keeps it.
    chunk : Chunk
        Of the index, or of no document.
    encoder : Encoder
        Makes it.
    context : EncodingContext
        The encoder's.
    """
    left, notes = _find_left(chunk, encoder, context)
    if left is None:
        notes.append(WITHOUT_DOCUMENT)
        if index.does_without_document(encoder):
            encoder, left = Prefixed(), context.prefix()
    [kv] = encoder.encode(index.reader, [(chunk.segment, left or context.prefix())])
    try:
        index.keep(chunk, encoder, kv, left)
    except REFUSED as error:
        notes.append(f"its KV was not kept: {error}")
    return OnDemand(kv, tuple(notes))


def _find_left(chunk: Chunk, encoder: Encoder, context: EncodingContext) -> tuple[LeftContext | None, list[str]]:
    """A chunk's left context, and why it could not be had if the catalogue could not note that it was looked for."""
    try:
        return encoder.left(chunk.id, context), []
    except IndexFormat:
        raise  # what is damaged is told
    except REFUSED as error:
        return None, [f"its KV was not kept: {error}"]
