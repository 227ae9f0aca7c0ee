"""Collection: the chunks of another program's vector store, whose KV lives and dies with them.

A framework hands over chunks under names of its own, in any order, some of them twice. They become documents of the
index: each distinct text of a document is one chunk, in reading order, as if the document had been ingested whole. A
name only refers to a chunk, so a chunk goes with its last name.

KV does not outlive the store's own entry: it is made after the entry was added, and deleted before the entry is, or is
replaced by another. Where a crash falls between the two, the entry is there and its KV is not, which costs time and
nothing else.
"""

import json
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from ragcache.chunks import chunk_id, document_id, loose_id
from ragcache.index import Index
from ragcache.store import CALLED, COLLECTION, Entries, EntryRow

#: Metadata that tells what a chunk is a piece of, and where it stands in it, as loaders and splitters leave it.
_DOCUMENTS, _PLACES = ("ref_doc_id", "source"), ("page", "start_index", "start_char_idx")
_ASKED = 500  # names that a store is asked about at once: some are databases with a limit
_NUMBER = re.compile(r"[0-9]{1,18}")
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
        said = {key: str(value) for key, value in (metadata or {}).items() if isinstance(value, str | int)}
        about = {key: value for key, value in said.items() if value not in ("", "None")}
        document = next((about[key] for key in _DOCUMENTS if key in about), loose_id(text.strip()))
        title = next((about[key] for key in _TITLES if key in about), document)
        place = tuple(int(about[key]) if _NUMBER.fullmatch(about.get(key, "")) else 0 for key in _PLACES)
        return cls(name, text, document, place, title)

    @property
    def words(self) -> str:
        """The text that is prefilled; nothing where it cannot be, being blank or no valid Unicode."""
        text = self.text.strip()
        return text if text.encode("utf-8", "ignore").decode() == text else ""


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
    forget : callable
        Told the ids of chunks that are about to go, for whatever else is kept of them.
    """

    def __init__(
        self,
        index: Index,
        name: str,
        encode: Callable[[], object],
        forget: Callable[[Sequence[str]], object] = lambda chunks: None,
    ) -> None:
        self.name = name
        self._index = index
        self._entries = Entries(index.catalog)
        self._encode = encode
        self._forget = forget

    def add(self, entries: Sequence[Entry]) -> None:
        """Add entries, or put them in the place of those of the same names, and make their KV.

        One that has no words has no KV, and is passed over.
        """
        latest = {entry.name: entry for entry in entries}
        said = [entry for entry in latest.values() if entry.words]
        rows = [self._row(entry) for entry in said]
        with self._index.writing:
            before = self._entries.find(self.name, list(latest))
            self._entries.put(rows)
            self._entries.remove(self.name, sorted(set(latest) - {row.name for row in rows}))
            texts = {row.chunk: entry.words for row, entry in zip(rows, said, strict=True)}
            self._arrange([*before, *rows], texts, {entry.document: entry.title for entry in said})
        with self._index.encoding:  # whoever deletes meanwhile need not wait
            self._encode()

    def changed(self, entries: Sequence[Entry]) -> list[str]:
        """Names among these that stand for another text so far."""
        rows = {entry.name: self._row(entry).chunk if entry.words else "" for entry in entries}
        return [row.name for row in self._entries.find(self.name, list(rows)) if row.chunk != rows[row.name]]

    def discard(self, names: Sequence[str]) -> None:
        """Remove entries, and the KV of what no other entry is; unknown names are passed over.

        A chunk that stood behind one of them is encoded anew when something is added, or when it is asked about.
        """
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

    def sync(self, held: Callable[[list[str]], Iterable[str | None]]) -> None:
        """Remove what the store no longer has, whoever deleted it; everything where it cannot say.

        Parameters
        ----------
        held : callable
            Says which of some names the store has; `NotImplementedError` is that it cannot.
        """
        names = self.names()
        try:
            batches = (names[first : first + _ASKED] for first in range(0, len(names), _ASKED))
            still = {name for batch in batches for name in held(batch)}
        except NotImplementedError:
            self.clear()
        else:
            self.discard([name for name in names if name not in still])

    def names(self) -> list[str]:
        """All entries' names, as they came."""
        return [row.name for row in self._entries.all(self.name)]

    def _remove(self, rows: Sequence[EntryRow]) -> None:
        names = {row.name for row in rows}
        self._arrange(rows, without=names)
        self._entries.remove(self.name, sorted(names))

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
            self._forget([row.id for row in before if row.id not in chunks])
            known = {row.id: row.text for row in before} | dict(texts or {})
            pieces = [known[chunk] for chunk in chunks if chunk in known]
            if pieces:
                title = (titles or {}).get(document) or self._title(source) or document
                about = {COLLECTION: self.name, CALLED: title}
                self._index.put(source, "", [(text, 0, len(text)) for text in pieces], about)
            else:
                self._index.remove(source)

    def _row(self, entry: Entry) -> EntryRow:
        chunk = chunk_id(document_id(self._source(entry.document)), entry.words)
        return EntryRow(self.name, entry.name, entry.document, entry.place, chunk)

    def _title(self, source: str) -> str:
        """What the document is called already."""
        row = self._index.catalog.document_by_source(source)
        return str(row.metadata.get(CALLED, "")) if row else ""

    def _source(self, document: str) -> str:
        return json.dumps([self.name, document])  # no path, and no other pair's
