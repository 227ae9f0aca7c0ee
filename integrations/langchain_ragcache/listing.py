"""What LangChain's vector stores hold: there is no common way to ask, so each kind is asked in its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from ragcache.index.chunks import text_id
from ragcache.index.collection import Entry

_PAGE = 500


def listed(store: VectorStore) -> list[Entry]:
    """Everything that a store holds.

    Raises
    ------
    NotImplementedError
        If nobody knows how it is asked.
    """
    for reads, kind in _KINDS:
        if all(hasattr(store, name) for name in kind):
            return [Entry.of(name, text, metadata) for name, text, metadata in reads(store) if text]
    raise NotImplementedError(f"{type(store).__name__} has no way to list what it holds")


def name_of(document: Document) -> str | None:
    """A document's id, wherever its store writes it; None where it does not."""
    name = document.metadata.get("_id") if document.id is None else document.id  # Qdrant's stands in the metadata
    return None if name is None else str(name)


def entry_of(document: Document) -> Entry:
    """A document that a search gave; one without an id is named by its text."""
    return Entry.of(name_of(document) or text_id(document.page_content.strip()), document.page_content, _own(document))


def ids_for(store: VectorStore, names: Sequence[str]) -> list[Any]:
    """Names as a store takes them: a Qdrant point's is a number, unless it is a UUID."""
    numbered = hasattr(store, "content_payload_key")
    return [int(name) if numbered and name.isdecimal() and len(name) <= 20 else name for name in names]


def ids_in(store: VectorStore, names: Sequence[str]) -> list[str] | None:
    """Which of some names a store has, where it is asked for ids alone; None for other kinds.

    Chroma's `get_by_ids` makes documents, and fails at an entry without metadata.
    """
    if not hasattr(store, "_chroma_collection"):
        return None
    found: list[str] = store.get(ids=list(names), include=[])["ids"]  # type: ignore[attr-defined]
    return found


def _own(document: Document) -> dict[str, Any]:
    """Metadata but for what a store adds to it."""
    return {key: value for key, value in document.metadata.items() if key not in ("_id", "_collection_name")}


def _faiss(store: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name in store.index_to_docstore_id.values():
        document = store.docstore.search(name)
        if isinstance(document, Document):  # else it is a sentence that says that there is none
            yield str(name), document.page_content, document.metadata


def _chroma(store: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    first, found = 0, {"ids": [""]}
    while found["ids"]:
        found = store.get(limit=_PAGE, offset=first, include=["documents", "metadatas"])
        yield from zip(found["ids"], found["documents"], found["metadatas"], strict=True)
        first += _PAGE


def _qdrant(store: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    offset = None
    while True:
        points, offset = store.client.scroll(store.collection_name, limit=_PAGE, offset=offset, with_payload=True)
        for point in points:
            about = point.payload.get(store.metadata_payload_key) or {}
            yield str(point.id), point.payload.get(store.content_payload_key, ""), about
        if offset is None:
            return


def _in_memory(store: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name, row in store.store.items():
        yield name, row["text"], row["metadata"]


#: How a kind of store is read, and by which attributes it is known: their packages are not imported.
_KINDS = (
    (_faiss, ("index_to_docstore_id", "docstore")),
    (_chroma, ("_chroma_collection", "get")),
    (_qdrant, ("content_payload_key", "metadata_payload_key", "collection_name")),
    (_in_memory, ("store", "embedding", "dump")),
)
