"""Copies: a text that stands in several documents, and whose KV is to be used for it.

KV that was made behind a document follows that document. Of a text that several have, that of the one is taken whose
other chunks stand in the prompt. If none does, nobody can tell which is meant, and the KV is made behind no document.
If several do, the text is computed with the prompt, where the model sees all of them.

Copies may have different readers. Whoever was shown the text may read one of them, so the copy that all of those may
read stands for it. Where there is none, the text is computed with the prompt, unless its KV was made behind no chunk.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from ragcache.encode import Encoder, Prefixed, follows_others
from ragcache.index.chunks import Chunk, Origin
from ragcache.store import Catalog, ChunkRow, join_access, may_precede


class KnownChunks(Protocol):
    """An index, or whatever else can look its chunks up."""

    @property
    def catalog(self) -> Catalog:
        """Where they are looked up."""

    def chunks(self, ids: Sequence[str]) -> list[Chunk]:
        """Chunks by id, in the order asked for; those that are gone are left out."""


def mark_copies(index: KnownChunks, chunks: Sequence[Chunk]) -> list[Chunk]:
    """Note of which chunks it is not known which document they are meant to be of: several have their text."""
    copies = index.catalog.copies([chunk.id for chunk in chunks])
    unclear = {name for name, rows in copies.items() if _differ(index, rows)}
    return [replace(chunk, origin="unknown") if chunk.id in unclear else chunk for chunk in chunks]


def resolve_copies(index: KnownChunks, chunks: Sequence[Chunk]) -> list[Chunk]:
    """Find the documents of those chunks of a prompt for which that is not known, as far as the others tell it."""
    unclear = [chunk.id for chunk in chunks if chunk.origin == "unknown"]
    if not unclear:
        return list(chunks)
    known = index.catalog.chunks([chunk.id for chunk in chunks if chunk.origin == "known"])
    documents, copies = {row.document for row in known}, index.catalog.copies(unclear)
    return [
        _resolved(index, chunk, documents, copies.get(chunk.id, ())) if chunk.origin == "unknown" else chunk
        for chunk in chunks
    ]


def note_copies(chunks: Sequence[Chunk]) -> tuple[str, ...]:
    """What is worth saying of the chunks of a prompt."""
    count = Counter(chunk.origin for chunk in chunks)
    unknown, several, unshared = (count[origin] for origin in ("unknown", "several", "unshared"))
    alone = f"{unknown} chunks stand in several documents, of which the prompt has nothing else; no document is reused"
    anew = f"{several} chunks stand in several documents of this prompt, and are prefilled with it"
    apart = f"{unshared} chunks stand in documents of different readers, and no KV made behind others is used for them"
    return tuple(note for count, note in ((unknown, alone), (several, anew), (unshared, apart)) if count)


def encoder_for(chunk: Chunk, encoder: Encoder, *, follows_document: bool) -> tuple[Encoder | None, str]:
    """The encoder whose KV may serve a chunk, as far as it is known which document is meant; or none, and the reason.

    Parameters
    ----------
    chunk : Chunk
        As `resolve_copies` gave it.
    encoder : Encoder
        The method's.
    follows_document : bool
        Whether that one makes KV behind what stands before a chunk in its document.
    """
    if chunk.origin == "unshared" and (follows_document or follows_others(encoder)):
        return None, "documents of different readers have its text"
    if chunk.origin == "known" or not follows_document:
        return encoder, ""
    if chunk.origin == "several":
        return None, "several documents of the prompt have its text"
    return Prefixed(), ""


def _resolved(index: KnownChunks, chunk: Chunk, documents: set[str], rows: Sequence[ChunkRow]) -> Chunk:
    """The same text in the one of these documents that has it, or in one that all may read who were shown it."""
    shown = join_access(row.access for row in rows)
    readable = [row for row in rows if may_precede(row.access, shown)]
    if rows and not readable:
        return replace(chunk, origin="unshared")
    meant = [row for row in readable if row.document in documents]
    names = [row.id for row in meant or readable]
    copy = chunk if chunk.id in names else next(iter(index.chunks(names[:1])), chunk)
    origin: Origin = "several" if _differ(index, meant) else "known" if meant else "unknown"
    return replace(copy, score=chunk.score, origin=origin)


def _differ(index: KnownChunks, rows: Sequence[ChunkRow]) -> bool:
    """Whether something else stands before one text than before another, or others may read it."""
    seen = ((row.access, _before(index, row)) for row in rows)
    first = next(seen, None)
    return any(one != first for one in seen)


def _before(index: KnownChunks, row: ChunkRow) -> list[tuple[str, object]]:
    """What stands before a chunk in its document."""
    return [(one.text, one.access) for one in index.catalog.chunks_of(row.document, row.ordinal)]
