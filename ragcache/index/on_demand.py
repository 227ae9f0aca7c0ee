"""KV that a question lacks, made for it, and stored if nothing refuses: the question is answered all the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragcache.encode import Encoder, EncodingContext, LeftContext, Prefixed
from ragcache.errors import IndexFormat
from ragcache.index.chunks import Chunk, is_text_id
from ragcache.index.stored_kv import REFUSED
from ragcache.model.buffer import ChunkKV

if TYPE_CHECKING:
    from ragcache.index.index import Index

#: What reports say of such KV.
WITHOUT_DOCUMENT = "without what stands before it in its document, whose KV is not stored"


@dataclass(frozen=True, eq=False)
class OnDemand:
    """A KV that was made for a question, and what is worth saying of it."""

    kv: ChunkKV
    notes: tuple[str, ...] = ()


def make_on_demand(index: Index, chunk: Chunk, encoder: Encoder, context: EncodingContext) -> OnDemand:
    """Make a chunk's KV; store it where the chunk is one of the index's, or note it for its second sight.

    While its left context isn't stored it is computed behind the system prefix: for this once, or as prefixed KV, which
    serves until the other is made, where that may never be.

    Parameters
    ----------
    index : Index
        Stores it, unless its disk or its catalogue refuses.
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
    used = left or context.prefix()
    [kv] = encoder.encode(index.reader, [(chunk.segment, used)])
    if is_text_id(chunk.id):
        words = chunk.text if chunk.text == chunk.text.strip() else ""  # as a prompt is searched for it
        index.second_sight.note(chunk.id, encoder.recipe, kv, used.keys, words)
    elif index.writable and left is not None and index.catalog.chunk(chunk.id) is not None:
        try:
            index.save(chunk.id, encoder, kv, left)
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
