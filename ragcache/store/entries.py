"""What a framework's vector store calls its chunks, so that their KV can be found by that name, and go with it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragcache.store.access import Access
from ragcache.store.catalog import Catalog
from ragcache.store.forgotten import LISTED
from ragcache.store.schema import ENTRY, access_value, check_row, checksum, read_access

#: In an entry's document: behind the document's name, if the entry is a part of it that stands alone.
PART = "\x1f"


@dataclass(frozen=True)
class EntryRow:
    """A name that somebody else gave to a chunk.

    Parameters
    ----------
    collection : str
        Whose name it is: a vector store's.
    name : str
        Unique in the collection.
    document : str
        What the collection calls the document.
    place : tuple of int
        Where the chunk stands in its document; compared with the document's others.
    chunk : str
        The chunk's id here; several names may share one.
    access : frozenset of str or None
        Who may read it; None for everybody.
    """

    collection: str
    name: str
    document: str
    place: tuple[int, ...]
    chunk: str
    access: Access = None


class Entries:
    """The names of a catalogue; every verb is one transaction.

    Parameters
    ----------
    catalog : Catalog
        Where they are kept.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def put(self, rows: Sequence[EntryRow]) -> None:
        """Record names; a known one is replaced, and keeps its turn among those of the same place."""
        spelled = [
            (row.collection, row.name, row.document, json.dumps(row.place), row.chunk, access_value(row.access))
            for row in rows
        ]
        values = [(*one, checksum(*one)) for one in spelled]
        with self._catalog.transaction() as connection:
            connection.executemany(
                f"INSERT INTO entries ({ENTRY}, checksum) VALUES (?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (collection, name) DO UPDATE SET document = excluded.document, place = excluded.place, "
                "chunk = excluded.chunk, access = excluded.access, checksum = excluded.checksum",
                values,
            )

    def remove(self, collection: str, names: Sequence[str]) -> None:
        """Forget names; unknown ones are passed over."""
        with self._catalog.transaction() as connection:
            connection.execute(
                f"DELETE FROM entries WHERE collection = ? AND name IN {LISTED}", (collection, json.dumps(list(names)))
            )

    def drop(self, chunks: Sequence[str]) -> None:
        """Forget all names of some chunks."""
        with self._catalog.transaction() as connection:
            connection.execute(f"DELETE FROM entries WHERE chunk IN {LISTED}", (json.dumps(list(chunks)),))

    def named(self, name: str) -> list[EntryRow]:
        """All that bear a name, in whichever collection, the newest first."""
        return self._rows("WHERE name = ? ORDER BY rowid DESC", name)

    def find(self, collection: str, names: Sequence[str]) -> list[EntryRow]:
        """A collection's entries by name; those that it lacks are left out."""
        return self._rows(f"WHERE collection = ? AND name IN {LISTED}", collection, json.dumps(list(names)))

    def of(self, collection: str, document: str) -> list[EntryRow]:
        """A document's entries in reading order: by place, then as they came."""
        rows = self._rows("WHERE collection = ? AND document = ? ORDER BY rowid", collection, document)
        return sorted(rows, key=lambda row: row.place)

    def parts(self, collection: str, document: str | None = None) -> list[EntryRow]:
        """Entries that stand alone, of one document or of all, as they came."""
        if document is None:
            return self._rows("WHERE collection = ? AND instr(document, ?) ORDER BY rowid", collection, PART)
        begins = document + PART
        clause = "WHERE collection = ? AND substr(document, 1, ?) = ? ORDER BY rowid"
        return self._rows(clause, collection, len(begins), begins)

    def all(self, collection: str) -> list[EntryRow]:
        """A collection's entries, as they came."""
        return self._rows("WHERE collection = ? ORDER BY rowid", collection)

    def _rows(self, clause: str, *parameters: Any) -> list[EntryRow]:
        return self._catalog.rows(_entry, f"SELECT {ENTRY}, checksum FROM entries {clause}", *parameters)


def _entry(
    collection: str, name: str, document: str, place: str, chunk: str, access: str | None, found: str | None
) -> EntryRow:
    check_row("vector store's entry", name, found, collection, name, document, place, chunk, access)
    return EntryRow(collection, name, document, tuple(json.loads(place)), chunk, read_access(access))
