"""Which documents an index knows, and how they are forgotten; no model is needed for either."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from shlex import quote

from ragcache.checks import check_not_blank
from ragcache.errors import NoDocuments
from ragcache.index.publication import publish_owed
from ragcache.index.reconcile import prefix_key
from ragcache.index.settings import find_catalog
from ragcache.retrieve.discover import place_of
from ragcache.store import (
    CALLED,
    COLLECTION,
    Catalog,
    DocumentRow,
    Entries,
    Forgotten,
    locks_of,
    open_store,
)
from ragcache.store.forgotten import LISTED

_MAGIC = re.compile(r"[*?]")
_LISTING = """
    SELECT documents.id,
        COALESCE(added, (SELECT MIN(created) FROM encodings JOIN chunks ON id = chunk WHERE document = documents.id)),
        (SELECT COUNT(*) FROM chunks WHERE document = documents.id),
        (SELECT COALESCE(SUM(length(token_ids)) / 4, 0) FROM chunks WHERE document = documents.id),
        (SELECT COALESCE(SUM(nbytes), 0) FROM (
            SELECT DISTINCT key, nbytes FROM encodings JOIN chunks ON id = chunk WHERE document = documents.id))
    FROM documents"""


@dataclass(frozen=True)
class KnownDocument:
    """A document that an index knows.

    Attributes
    ----------
    id : str
        Its name in the index.
    source : str
        Where it came from: a file's absolute path, or what another program's vector store calls it.
    chunks, tokens : int
        What it was split into, and how long that is for the reader.
    bytes : int
        Stored KV of its chunks; what another document's chunks have in common with them counts for both.
    added : datetime or None
        When it was put into the index as it is; None where no version noted it.
    collection : str
        The vector store that it is a part of; empty for a file.
    """

    id: str
    source: str
    chunks: int
    tokens: int
    bytes: int
    added: datetime | None
    collection: str = ""


class Documents:
    """The documents of one index.

    Parameters
    ----------
    path : Path
        The index's folder.
    catalog : Catalog
        Its catalogue.
    forgotten : Forgotten
        Deletes its KV.
    drop_vectors : callable
        Deletes the vectors of chunks, by id.
    """

    def __init__(
        self, path: Path, catalog: Catalog, forgotten: Forgotten, drop_vectors: Callable[[Sequence[str]], object]
    ) -> None:
        self._path = path
        self._catalog = catalog
        self._forgotten = forgotten
        self._drop_vectors = drop_vectors

    @classmethod
    @contextmanager
    def opened(cls, path: str | Path) -> Iterator[Documents]:
        """The documents of an index that need not be open.

        Raises
        ------
        EmptyIndex
            If there is no index.
        UnusableIndex
            If this account may not look.
        """
        path = Path(path)
        with closing(Catalog(find_catalog(path))) as catalog:
            forgotten = Forgotten(catalog, open_store(path))
            try:
                if catalog.writable:
                    with locks_of(path)[0]:
                        forgotten.delete()  # what a killed process left
                yield cls(path, catalog, forgotten, lambda chunks: _drop_vectors(path / "vectors", chunks))
            finally:
                publish_owed(path, catalog)

    @property
    def edition(self) -> int:
        """Another number whenever documents have changed."""
        return self._catalog.edition()

    def known(self) -> list[KnownDocument]:
        """All documents, by source.

        Raises
        ------
        IndexFormat
            If a document's row fails its checksum.
        """
        sizes = {id: (added, *counted) for id, added, *counted in self._catalog.read(_LISTING)}
        return [_known(row, *sizes[row.id]) for row in self._catalog.documents() if row.id in sizes]

    def find(self, *patterns: str | Path) -> list[KnownDocument]:
        """The files that are meant by some paths, each once, by source.

        Parameters
        ----------
        patterns : str or Path
            A file, a folder, or a pattern of either, in which ``*`` and ``?`` stand for part of a name and ``**`` for
            any folders. They count from the working directory; a pattern without a slash is a file's name anywhere.
            What is itself a file or folder of the index means only that.

        Raises
        ------
        InvalidArgument
            If one of them is blank.
        NoDocuments
            If one of them means no document of the index.
        """
        check_not_blank(*patterns)
        known = self.known()
        files = [one for one in known if not one.collection]
        places = _by_place(files)
        chosen: dict[str, KnownDocument] = {}
        for pattern in map(str, patterns):
            found = _named(places, pattern) or _fitting(files, pattern)
            if not found:
                raise self._unknown(pattern, known)
            chosen |= {one.id: one for one in found}
        return sorted(chosen.values(), key=lambda one: one.source)

    def of_collection(self, name: str) -> list[KnownDocument]:
        """All that a vector store brought.

        Raises
        ------
        NoDocuments
            If there is nothing from a store of that name.
        """
        known = self.known()
        if found := [one for one in known if one.collection == name]:
            return found
        names = ", ".join(sorted({one.collection for one in known if one.collection})) or "none"
        raise NoDocuments(f"the index {self._path} has nothing of a vector store {name!r}; those it knows: {names}")

    def remove(self, ids: Iterable[str]) -> int:
        """Forget documents: text, vectors, KV, and KV of other documents that was made with theirs.

        Nothing of them is left in the catalogue's file or its log, unless another process is reading just now. Vectors
        go first, so that none outlives its chunk whenever the process is killed.

        Returns
        -------
        int
            How many KV of other documents went with them, to be made again by the next ingestion.

        Raises
        ------
        StorageFull
            If this account may only read the index; nothing is changed then.
        """
        self._catalog.check_writable()
        gone = list(ids)
        with locks_of(self._path)[0]:
            chunks = [chunk.id for id in gone for chunk in self._catalog.chunks_of(id)]
            own = self._catalog.read(f"SELECT DISTINCT key FROM encodings WHERE chunk IN {LISTED}", json.dumps(chunks))
            self._drop_vectors(chunks)
            deleted = self._catalog.remove_document(*gone)
            Entries(self._catalog).drop(chunks)
            self.clean()
        return len(set(deleted) - {key for (key,) in own})

    def clean(self) -> None:
        """Delete what is left of anything that was removed or replaced, on purpose or by a killed process.

        Raises
        ------
        StorageFull
            If this account may only read the index.
        """
        self._catalog.check_writable()
        with locks_of(self._path)[0]:
            self._forgotten.delete()
            self._forgotten.sweep({prefix_key(self._catalog, self._path)})
            self._catalog.purge()

    def _unknown(self, pattern: str, known: Sequence[KnownDocument]) -> NoDocuments:
        stores = {one.collection for one in known if one.collection and pattern in (one.source, one.id)}
        if stores:
            name = min(stores)
            return NoDocuments(
                f"{pattern} is in the index {self._path} as a part of the vector store {name!r}; delete it there, or "
                f"forget the whole store with `ragcache documents remove --collection {quote(name)}`"
            )
        alike = [one.source for one in known if not one.collection and Path(one.source).name == Path(pattern).name]
        meant = f" (did you mean {alike[0]}?)" if alike else ""
        return NoDocuments(
            f"the index {self._path} knows no document {pattern}{meant}; "
            f"`ragcache documents list --index {quote(str(self._path))}` names those it knows"
        )


def _known(row: DocumentRow, added: float | None, *sizes: int) -> KnownDocument:
    chunks, tokens, nbytes = sizes
    when = None if added is None else datetime.fromtimestamp(added, UTC)
    called, store = (str(row.metadata.get(name) or "") for name in (CALLED, COLLECTION))
    return KnownDocument(row.id, called or row.source, chunks, tokens, nbytes, when, store)


def _by_place(files: Iterable[KnownDocument]) -> dict[str, list[KnownDocument]]:
    """Files by their paths, and by those of all folders that they lie in."""
    places: dict[str, list[KnownDocument]] = defaultdict(list)
    for one in files:
        for place in (one.source, *map(str, Path(one.source).parents)):
            places[place].append(one)
    return dict(places)


def _named(places: Mapping[str, Sequence[KnownDocument]], path: str) -> list[KnownDocument]:
    """The file of that very path, or what lies in that folder, with links on the way and without."""
    ways = {path, os.path.abspath(path), place_of(path), os.path.realpath(path)}
    return [one for way in ways for one in places.get(way, ())]


def _fitting(files: Iterable[KnownDocument], pattern: str) -> list[KnownDocument]:
    """The files that a pattern fits; none where it is no pattern."""
    if not _MAGIC.search(pattern):
        return []
    if "/" not in pattern:
        return [one for one in files if _is_called(Path(one.source).name, pattern)]
    parts = Path(os.path.abspath(pattern)).parts
    return [one for one in files if _fits(Path(one.source).parts, parts)]


def _fits(parts: Sequence[str], patterns: Sequence[str]) -> bool:
    """Whether a path, or a folder that it lies in, is what a pattern says, name by name."""
    if not patterns:
        return True
    if patterns[0] == "**":
        return any(_fits(parts[skipped:], patterns[1:]) for skipped in range(len(parts)))
    return bool(parts) and _is_called(parts[0], patterns[0]) and _fits(parts[1:], patterns[1:])


def _is_called(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern.replace("[", "[[]"))  # which stands for itself, as in "report[1].md"


def _drop_vectors(folder: Path, chunks: Sequence[str]) -> None:
    if not folder.is_dir():
        return
    from ragcache.retrieve.vectors import Vectors

    with closing(Vectors(folder, "chunks")) as vectors:
        vectors.delete(chunks)
