"""Collection: the chunks of another program's vector store, whose KV lives and dies with them.

A framework hands over chunks under names of its own, in any order, some of them twice. They become documents of the
index: each distinct text of a document is one chunk, in reading order, as if the document had been ingested whole. A
name only refers to a chunk, so a chunk goes with its last name.

KV never outlives the store's own entry: it is made after the entry was added, and deleted before the entry is. Where a
crash falls between the two, the entry is there and its KV is not, which costs time and nothing else.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from ragcache.chunks import chunk_id, document_id, loose_id
from ragcache.index import CALLED, Index
from ragcache.store import Entries, EntryRow

COLLECTION = "collection"  # in a document's metadata: the vector store that it comes from
#: Metadata that tells what a chunk is a piece of, and where it stands in it, as loaders and splitters leave it.
_DOCUMENTS, _PLACES = ("ref_doc_id", "source"), ("page", "start_index", "start_char_idx")
_TITLES = ("source", "file_path", "file_name", "url", "title")


@dataclass(frozen=True)
class Entry:
    """A chunk as a vector store has it.

    Attributes
    ----------
    name : str
        The store's id of it.
    text : str
        What it says; white space around it plays no part.
    document : str
        What it is a piece of; chunks of one document may be encoded behind each other.
    place : tuple of int
        Where it stands in there, compared with the others; the order of arrival decides between equals.
    title : str
        What to call the document in front of people.
    """

    name: str
    text: str
    document: str
    place: tuple[int, ...] = ()
    title: str = ""

    @classmethod
    def of(cls, name: str, text: str, metadata: Mapping[str, Any] | None) -> Self:
        """An entry whose document and place stand in its metadata, as frameworks leave them.

        Without a document it is one of its own, the same one whenever it comes again.
        """
        about = {key: value for key, value in (metadata or {}).items() if value not in (None, "", "None")}
        document = next((str(about[key]) for key in _DOCUMENTS if key in about), loose_id(text.strip()))
        title = next((str(about[key]) for key in _TITLES if key in about), document)
        place = tuple(int(about[key]) if str(about.get(key)).isdecimal() else 0 for key in _PLACES)
        return cls(name, text, document, place, title)


class Collection:
    """A vector store's chunks in an index.

    Parameters
    ----------
    index : Index
        Where their KV is kept.
    name : str
        The store's name; its entries' names are unique under it.
    encode : callable
        Makes what KV is missing.
    """

    def __init__(self, index: Index, name: str, encode: Callable[[], object]) -> None:
        self.name = name
        self._index = index
        self._entries = Entries(index.catalog)
        self._encode = encode

    def add(self, entries: Sequence[Entry]) -> None:
        """Add entries, or put them in the place of those of the same names, and make their KV.

        One of nothing but white space has no KV, and is passed over.
        """
        latest = {entry.name: entry for entry in entries}
        said = [entry for entry in latest.values() if entry.text.strip()]
        texts = {self._chunk(entry): entry.text.strip() for entry in said}
        rows = [EntryRow(self.name, entry.name, entry.document, entry.place, self._chunk(entry)) for entry in said]
        with self._index.writing:
            before = self._entries.find(self.name, list(latest))
            self._entries.put(rows)
            self._entries.remove(self.name, sorted(set(latest) - {row.name for row in rows}))
            self._arrange([*before, *rows], texts, {entry.document: entry.title for entry in said})
            self._encode()

    def discard(self, names: Sequence[str]) -> None:
        """Remove entries, and the KV of what no other entry is; unknown names are passed over."""
        with self._index.writing:
            self._remove(self._entries.find(self.name, names))

    def discard_document(self, document: str) -> None:
        """Remove a document's entries."""
        with self._index.writing:
            self._remove(self._entries.of(self.name, document))

    def clear(self) -> None:
        """Remove all entries."""
        with self._index.writing:
            self._remove(self._entries.all(self.name))

    def names(self) -> list[str]:
        """All entries' names, as they came."""
        return [row.name for row in self._entries.all(self.name)]

    def _remove(self, rows: Sequence[EntryRow]) -> None:
        names = {row.name for row in rows}
        self._arrange(rows, without=names)
        self._entries.remove(self.name, sorted(names))
        self._encode()  # what stood behind them stands behind something else now

    def _arrange(
        self,
        touched: Iterable[EntryRow],
        texts: Mapping[str, str] | None = None,
        titles: Mapping[str, str] | None = None,
        *,
        without: Container[str] = (),
    ) -> None:
        """Bring the documents of some entries in line with all of their entries, but for some."""
        catalog = self._index.catalog
        for document in dict.fromkeys(row.document for row in touched):
            rows = [row for row in self._entries.of(self.name, document) if row.name not in without]
            chunks = list(dict.fromkeys(row.chunk for row in rows))
            source = self._source(document)
            before = catalog.chunks_of(document_id(source))
            if chunks == [row.id for row in before]:
                continue
            known = {row.id: row.text for row in before} | dict(texts or {})
            pieces = [known[chunk] for chunk in chunks if chunk in known]
            if pieces:
                about = {COLLECTION: self.name, CALLED: (titles or {}).get(document) or self._title(source)}
                self._index.put(source, "", [(text, 0, len(text)) for text in pieces], about)
            else:
                self._index.remove(source)

    def _chunk(self, entry: Entry) -> str:
        return chunk_id(document_id(self._source(entry.document)), entry.text.strip())

    def _title(self, source: str) -> str:
        """What the document is called already."""
        row = self._index.catalog.document_by_source(source)
        return str(row.metadata.get(CALLED, "")) if row else ""

    def _source(self, document: str) -> str:
        return f"{self.name}: {document}"
