"""What an index hands out: a chunk, and what it had for one; and how it names them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from ragcache.model.buffer import ChunkKV
from ragcache.prompt import Segment
from ragcache.retrieve.places import Mark, mark_at, marks_within
from ragcache.store import CALLED, Catalog, ChunkRow, DocumentRow

_NAMELESS = "loose-"  # stands in catalogues: never to be changed
MARKS = "marks"  # in a document's metadata: where its pages and headings begin, as lists of `Mark`'s fields


#: Whether it is known which document a chunk is meant to be of: its text may stand in several. None of those is in the
#: prompt where it is unknown; where it is unshared, none may be read by all who may read another.
Origin = Literal["known", "unknown", "several", "unshared"]


@dataclass(frozen=True)
class Chunk:
    """A chunk as an answer uses it: where it comes from, its tokens, and how similar it is to the question.

    The first `title` characters of its text are a title line, and stand elsewhere in the document. Whether another
    document may be meant, which has its text too, is its `origin`: see `ragcache.index.copies`. Of a text that the
    index does not have, `source` is empty, and `called` is what the caller calls its document, if it says.
    `document` is the document's id, empty where there is none, and `ordinal` the chunk's place in it, from 0.
    """

    id: str
    source: str
    text: str
    segment: Segment
    score: float | None = None
    marks: tuple[Mark, ...] = ()
    title: int = 0
    origin: Origin = "known"
    called: str = ""
    document: str = ""
    ordinal: int = 0

    @property
    def reported(self) -> str:
        """What reports call its document."""
        return self.source or self.called

    @property
    def body(self) -> str:
        """Its text without the title line."""
        return self.text[self.title :]

    @property
    def place(self) -> dict[str, int | str]:
        """Where it begins: `page`, from 1, and `heading`, each only where the document has one."""
        mark = mark_at(self.marks, 0)
        page = {} if mark.page is None else {"page": mark.page}
        return {**page, "heading": mark.heading} if mark.heading else {**page}


@dataclass(frozen=True, eq=False)
class Loaded:
    """What the index had for a chunk: its KV, or the reason for having none, and what the catalogue notes of it."""

    kv: ChunkKV | None
    key: str
    reason: str
    left: str = ""
    exact: bool = False
    about: dict[str, Any] | None = None
    made: bool = False  # for this prompt, since there was none


def chunk_of(row: ChunkRow, document: DocumentRow) -> Chunk:
    """The chunk of a row."""
    source = document.metadata.get(CALLED) or document.source
    marks = marks_within(document.metadata.get(MARKS, ()), row.start, row.end)
    title = len(row.text) - len(row.body)
    segment = Segment(row.token_ids, row.text, row.id)
    return Chunk(
        row.id, source, row.text, segment, marks=marks, title=title, document=row.document, ordinal=row.ordinal
    )


def read_chunks(catalog: Catalog, ids: Sequence[str]) -> list[Chunk]:
    """Chunks by id, in the order asked for; those that are gone are left out."""
    rows = catalog.chunks(ids)
    documents = {one.id: one for one in catalog.documents({row.document for row in rows})}
    return [chunk_of(row, documents[row.document]) for row in rows if row.document in documents]


_Read = TypeVar("_Read", bound="Chunk | str")


def order_by_document(chunks: Sequence[_Read]) -> list[_Read]:
    """Retrieved chunks in the order to read them in: a document's together, as they stand in it, the best one's first.

    What a chunk leaves out ("it costs …") stands in front of it in its document, not in a more similar chunk. OP-RAG
    (Yu et al., arXiv 2409.01666) reads the chunks of one long document so.

    Parameters
    ----------
    chunks : sequence of Chunk or str
        Best first. A text, or a chunk of no document, keeps its rank.
    """
    groups: dict[str | int, list[_Read]] = {}
    for rank, chunk in enumerate(chunks):
        groups.setdefault((isinstance(chunk, Chunk) and chunk.document) or rank, []).append(chunk)
    return [one for group in groups.values() for one in sorted(group, key=_place_in_document)]


def _place_in_document(chunk: Chunk | str) -> int:
    return chunk.ordinal if isinstance(chunk, Chunk) else 0


def document_id(source: str) -> str:
    """The id of the document from a source."""
    return _digest(source)[:16]


def chunk_id(document: str, text: str, nth: int = 0) -> str:
    """The id of a document's `nth` chunk with this text."""
    return f"{document}-{_digest(text)[:12]}-{nth}"


def text_id(text: str) -> str:
    """The name of a text that has none of its own."""
    return f"{_NAMELESS}{_digest(text)[:12]}"


def is_text_id(name: str) -> bool:
    """Whether a name was made from a text."""
    return name.startswith(_NAMELESS)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
