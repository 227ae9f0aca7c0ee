"""Collection: the chunks of another program's vector store, whose KV lives and dies with them.

A framework hands over chunks under names of its own, in any order, some of them twice. They become documents of the
index: each distinct text of a document is one chunk, in reading order, as if the document had been ingested whole. A
name only refers to a chunk, so a chunk goes with its last name.

KV does not outlive the store's own entry: it is made after the entry was added, and deleted before the entry is, or is
replaced by another. Where a crash falls between the two, the entry is there and its KV is not, which costs time and
nothing else.

Nothing is forgotten because evidence is missing. A store that cannot be asked, that answers nothing at all, or that
answers with ids of another form has not said that an entry is gone.
"""

import json
import logging
import re
import time
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self
from uuid import UUID

from ragcache.errors import RagCacheError
from ragcache.index.chunks import chunk_id, document_id, text_id
from ragcache.index.index import Index
from ragcache.index.publication import publish_owed
from ragcache.index.settings import outdated_counts
from ragcache.report import IngestReport
from ragcache.store import CALLED, COLLECTION, PART, Access, Entries, EntryRow, join_access, parse_access

_log = logging.getLogger(__name__)

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
    access : frozenset of str or None
        Who may read it; None for everybody. Its KV is made only behind what all of them may read.
    """

    name: str
    text: str
    document: str
    place: tuple[int, ...] = ()
    title: str = ""
    access: Access = None

    @classmethod
    def of(cls, name: str, text: str, metadata: Mapping[str, Any] | None) -> Self:
        """An entry whose document and place stand in its metadata, as frameworks leave them.

        Without a document it is one of its own, the same one whenever it comes again. `access` names those who may
        read it, see `parse_access`.
        """
        said = {key: str(value) for key, value in (metadata or {}).items() if isinstance(value, str | int)}
        about = {key: value for key, value in said.items() if value not in ("", "None")}
        document = next((about[key] for key in _DOCUMENTS if key in about), text_id(text.strip()))
        title = next((about[key] for key in _TITLES if key in about), document)
        document, title = valid_unicode(document), valid_unicode(title)
        place = tuple(int(about[key]) if _NUMBER.fullmatch(about.get(key, "")) else 0 for key in _PLACES)
        return cls(name, text, document, place, title, parse_access((metadata or {}).get("access")))

    @property
    def words(self) -> str:
        """The text that is prefilled; nothing where it cannot be, being blank or no valid Unicode."""
        text = self.text.strip()
        return text if text.encode("utf-8", "ignore").decode() == text else ""


@dataclass(frozen=True)
class Synced:
    """What asking a store about its entries came to.

    Attributes
    ----------
    asked, removed : int
        Entries that the store was asked about, and those that it no longer has.
    note : str
        Why nothing was forgotten although the store did not confirm every entry; empty where it answered.
    """

    asked: int
    removed: int
    note: str = ""

    @classmethod
    def unanswered(cls, asked: int, error: Exception) -> Self:
        """What asking came to where the store could not say: nothing was forgotten."""
        reason = f" ({error})" if str(error) else ""
        return cls(asked, 0, f"the store cannot say which ids it has{reason}, so nothing was forgotten")


class Collection:
    """A vector store's chunks in an index.

    Parameters
    ----------
    index : Index
        Where their KV is kept.
    name : str
        The store's name; its entries' names are unique under it.
    encode : callable
        Makes what KV is missing; says how many chunks' of each encoding.
    forget : callable
        Told the ids of chunks that are about to go, for whatever else is kept of them.
    """

    def __init__(
        self,
        index: Index,
        name: str,
        encode: Callable[[], Mapping[str, int]],
        forget: Callable[[Sequence[str]], object] = lambda chunks: None,
    ) -> None:
        self.name = name
        self._index = index
        self._entries = Entries(index.catalog)
        self._encode = encode
        self._forget = forget

    def add(self, entries: Sequence[Entry]) -> Mapping[str, int]:
        """Add entries, or put them in the place of those of the same names, and make their KV.

        One that has no words has no KV, and is passed over. Returns how many chunks were encoded, by encoding.
        """
        with self._index.writing:
            self._enter(entries)
        with self._index.encoding:  # whoever deletes meanwhile need not wait
            return self._encode()

    def note(self, entries: Sequence[Entry], most: int) -> None:
        """Make entries known that a search came upon; the first answer over one of them makes its KV, and keeps it.

        Those whose names are known are left as they are. Each stands alone, since what else its document has is not
        known, until it is added. Nothing happens in an index that may only be read, and a failure is logged: the
        search has found what it was asked for.

        Parameters
        ----------
        entries : sequence of Entry
            What was found.
        most : int
            How many are kept that were never added; the oldest go first.
        """
        if not self._index.writable:
            return
        found = {uniform_name(entry.name): entry for entry in entries if entry.words}

        def unknown() -> list[Entry]:
            known = {uniform_name(row.name) for row in self._find([entry.name for entry in found.values()])}
            return [_apart(entry) for name, entry in found.items() if name not in known][:most]

        try:
            if not unknown():  # as after most searches, which need not wait for whoever writes then
                return
            with self._index.writing:
                if new := unknown():  # not what was added meanwhile: that stands in its document
                    self._enter(new)
                    noted = self._entries.parts(self.name)
                    self._remove(noted[: max(0, len(noted) - most)])
        except RagCacheError as error:
            _log.warning("what a search of %r found is not kept: %s", self.name, error)

    def adopt(self, entries: Sequence[Entry], *, whole: bool = True) -> IngestReport:
        """Catch up with a store: add what it holds, and forget what it has lost.

        Parameters
        ----------
        entries : sequence of Entry
            What the store holds.
        whole : bool
            Whether that is all of it; nothing is forgotten otherwise.
        """
        began = time.perf_counter()
        before = self._entries.all(self.name)
        changed = self.changed(entries)
        encoded = self.add(entries)  # before anything is forgotten: a text that has another name now keeps its KV
        lost, note = self._lost(before, entries) if whole else ([], "")
        self.discard(lost)
        known, stats = {uniform_name(row.name) for row in before}, self._index.catalog.stats()
        old = sum(uniform_name(name) in known for name in {entry.name for entry in entries})
        return IngestReport(
            added=len({entry.name for entry in entries}) - old, changed=len(changed), removed=len(lost),
            unchanged=old - len(changed), chunks=stats["chunks"], encoded=encoded, bytes=stats["bytes"],
            seconds=time.perf_counter() - began, notes=(note,) if note else (),
            outdated=outdated_counts(self._index.catalog),
        )  # fmt: skip

    def changed(self, entries: Sequence[Entry]) -> list[str]:
        """Names among these that stand for another text so far, or for one that others may read."""
        said = {
            uniform_name(entry.name): (self._row(entry).chunk if entry.words else "", entry.access) for entry in entries
        }
        rows = self._find([entry.name for entry in entries])
        return [row.name for row in rows if (row.chunk, row.access) != said[uniform_name(row.name)]]

    def discard(self, names: Sequence[str]) -> None:
        """Remove entries, and the KV of what no other entry is; unknown names are passed over.

        A chunk that stood behind one of them is encoded anew when something is added, or when it is asked about.
        """
        with self._index.writing:
            self._remove(self._find(names))
        self._publish()

    def discard_document(self, document: str) -> None:
        """Remove a document's entries."""
        with self._index.writing:
            self._remove([*self._entries.of(self.name, document), *self._entries.parts(self.name, document)])
        self._publish()

    def clear(self) -> None:
        """Remove all entries."""
        with self._index.writing:
            self._remove(self._entries.all(self.name))
        self._publish()

    def sync(self, held: Callable[[list[str]], Iterable[str | None]]) -> Synced:
        """Forget what the store says that it no longer has, whoever deleted it.

        Parameters
        ----------
        held : callable
            Says which of some names the store has, as it writes them, None for an entry that comes back without its
            name; `NotImplementedError` is that it cannot say.
        """
        names = self.names()
        try:
            return self.reconcile(names, [name for batch in batches(names) for name in held(batch)])
        except NotImplementedError as error:
            return Synced.unanswered(len(names), error)

    def reconcile(self, asked: Sequence[str], answered: Sequence[str | None]) -> Synced:
        """Forget names that a store was asked about and lacks, if it is sure that its answer is about these names.

        It is where it has some of them, and names nothing else.
        """
        known, there = (
            {uniform_name(name) for name in asked},
            {uniform_name(name) for name in answered if name is not None},
        )
        note = ""
        if asked and not answered:
            note = (
                f"the store has none of the {len(asked):,} ids that are known of it, or writes them in another way, so "
                "nothing was forgotten; if it is empty indeed, kv.clear() forgets all"
            )
        elif None in answered or not there <= known:
            note = "the store answers with other ids than it was asked about, so nothing was forgotten"
        lost = [] if note else [name for name in asked if uniform_name(name) not in there]
        self.discard(lost)
        return Synced(len(asked), len(lost), note)

    def follow(self, before: set[str], after: set[str]) -> None:
        """Forget what a store had before a deletion and has not after it, each as `present` told it; and warn if none.

        A store that named nothing before cannot say what it lost.
        """
        if not before and self.names():
            warnings.warn(
                f"the vector store of {self.name!r} cannot say which ids it has, so KV of what was deleted just now "
                "may be left; delete by ids, or forget everything with kv.clear()",
                stacklevel=5,
            )
        self.discard(sorted(before - after))

    def present(self, answered: Iterable[str | None]) -> set[str]:
        """Names of entries that stand among a store's own, whichever way it writes them."""
        there = {uniform_name(name) for name in answered if name is not None}
        return {name for name in self.names() if uniform_name(name) in there}

    def unknown(self, names: Sequence[str]) -> list[str]:
        """Those of some names that no entry has."""
        known = {uniform_name(row.name) for row in self._find(names)}
        return [name for name in names if uniform_name(name) not in known]

    def names(self) -> list[str]:
        """All entries' names, as they came."""
        return [row.name for row in self._entries.all(self.name)]

    def _publish(self) -> None:
        """What was removed goes from an object store at once; what is added may wait for more."""
        publish_owed(self._index.path, self._index.catalog)

    def _enter(self, entries: Sequence[Entry]) -> None:
        """Put entries in the place of those of the same names, and their documents in line with them."""
        latest = {entry.name: entry for entry in entries}
        said = [entry for entry in latest.values() if entry.words]
        rows = [self._row(entry) for entry in said]
        before = self._find(list(latest))
        self._entries.put(rows)
        self._entries.remove(self.name, sorted({row.name for row in before} - {row.name for row in rows}))
        texts = {row.chunk: entry.words for row, entry in zip(rows, said, strict=True)}
        titles = {entry.document: entry.title for entry in said}
        self._arrange([*before, *rows], texts, titles)

    def _find(self, names: Sequence[str]) -> list[EntryRow]:
        """Entries of these names, whichever way they are written."""
        return self._entries.find(self.name, list({way: None for name in names for way in _ways(name)}))

    def _lost(self, rows: Sequence[EntryRow], entries: Sequence[Entry]) -> tuple[list[str], str]:
        """Names of rows that are not in a listing of all entries, or why nobody can tell."""
        said = [entry for entry in entries if entry.words]
        there, chunks = {uniform_name(entry.name) for entry in entries}, {self._row(entry).chunk for entry in said}
        uncached = {text_id(entry.words) for entry in said}
        missing = [row for row in rows if uniform_name(row.name) not in there]
        # Those whose text has another name.
        renamed = [row.name for row in missing if row.chunk in chunks or row.name in uncached]
        if len(missing) < len(rows) or len(renamed) == len(missing):
            return [row.name for row in missing], ""
        gone = len(missing) - len(renamed)
        return renamed, (
            f"the store lists none of the {gone:,} ids that are known of it, so nothing was forgotten; if they are "
            "gone indeed, kv.clear() forgets all"
        )

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
        emptied = list[str]()
        for document in dict.fromkeys(row.document for row in touched):
            rows = [row for row in self._entries.of(self.name, document) if row.name not in without]
            labels: dict[str, list[Access]] = {}
            for row in rows:
                labels.setdefault(row.chunk, []).append(row.access)
            chunks = {chunk: join_access(of) for chunk, of in labels.items()}
            source = self._source(document)
            before = catalog.chunks_of(document_id(source))
            if [*chunks.items()] == [(row.id, row.access) for row in before]:
                continue
            self._forget([row.id for row in before if row.id not in chunks])
            known = {row.id: row.text for row in before} | dict(texts or {})
            pieces = {chunk: known[chunk] for chunk in chunks if chunk in known}
            if pieces:
                title = (titles or {}).get(document) or self._title(source) or document
                about = {COLLECTION: self.name, CALLED: title}
                access = [chunks[chunk] for chunk in pieces]
                self._index.put(source, "", [(text, 0, len(text)) for text in pieces.values()], about, access)
            else:
                emptied.append(source)
        self._index.remove(*emptied)  # in one go: the index of words is purged each time
        catalog.forget_words()

    def _row(self, entry: Entry) -> EntryRow:
        chunk = chunk_id(document_id(self._source(entry.document)), entry.words)
        return EntryRow(self.name, entry.name, entry.document, entry.place, chunk, entry.access)

    def _title(self, source: str) -> str:
        """What the document is called already."""
        row = self._index.catalog.document_by_source(source)
        return str(row.metadata.get(CALLED, "")) if row else ""

    def _source(self, document: str) -> str:
        return json.dumps([self.name, document])  # no path, and no other pair's


def batches(names: Sequence[str]) -> Iterator[list[str]]:
    """As many names at a time as a store is asked about."""
    return (list(names[first : first + _ASKED]) for first in range(0, len(names), _ASKED))


def valid_unicode(name: str) -> str:
    """A name as it can be stored: what of it is no valid Unicode is written out, so that two names stay two."""
    return name.encode("utf-8", "backslashreplace").decode()


def _apart(entry: Entry) -> Entry:
    """The same as a part of its document that is on its own."""
    return replace(entry, document=f"{entry.document}{PART}{entry.name}", place=())


def uniform_name(name: str) -> str:
    """A name in the one form in which names are compared: some stores write every UUID with dashes, some as given."""
    return _ways(name)[-1]


def _ways(name: str) -> tuple[str, ...]:
    """All forms of a name, as it came and the uniform one among them."""
    try:
        one = UUID(name)
    except ValueError:
        return (name,)
    return (name, one.hex, str(one))
