"""What the index knows: documents, their chunks, and which KV each chunk has; SQLite, one file.

Blobs are published before their row is written and deleted after it is gone, so that a crash leaves an
orphan at worst. Verbs that remove rows return the keys that no row names any more, for their blobs to
be deleted.
"""

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from ragcache.errors import DISTRIBUTION, IndexFormat, InvalidArgument, RagCacheError, StorageFull, UnusableIndex
from ragcache.store.schema import (
    CHUNK,
    DOCUMENT,
    ENCODING,
    MIGRATIONS,
    ChunkRow,
    DocumentRow,
    EncodingRow,
    chunk_row,
    chunk_values,
    document_row,
    document_values,
    encoding_row,
    encoding_values,
)

_Row = TypeVar("_Row")

_APPLICATION = 0x52414743  # "RAGC" in the file's header, so that another program's database is refused
_WAIT_SECONDS = 30.0
_HEADER_BYTES = 100

#: In a query: any number of values in one parameter, as a JSON list.
LISTED = "(SELECT value FROM json_each(?))"
_LACKS = "NOT EXISTS (SELECT 1 FROM encodings WHERE chunk = chunks.id AND recipe = ?)"
_EDITION = "edition"
_NEXT_EDITION = (
    f"INSERT INTO settings VALUES ('{_EDITION}', '1') ON CONFLICT (name) DO UPDATE SET "
    "value = CAST(CAST(value AS INTEGER) + 1 AS TEXT)"
)
_REFUSED = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY")
_UNOPENED = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_CANTOPEN", "SQLITE_PERM")


class Catalog:
    """The tables of one index, for any number of threads.

    Every verb is one transaction, durable on return. Several processes may share the file; each waits
    up to 30 s for another's write.

    Parameters
    ----------
    path : str or Path
        The file, created if absent, readable by its owner only; its folder must exist.
    durable : bool
        Whether what was written survives a crash of the machine.

    Raises
    ------
    IndexFormat
        The file is no catalogue, is damaged, or was made by a newer version. Every verb may raise it
        when it meets damage.
    StorageFull
        The disk refused a write; the transaction left no trace. Every verb that writes may raise it.
    UnusableIndex
        The file cannot be opened, or another process kept it locked for too long.
    """

    def __init__(self, path: str | Path, *, durable: bool = True) -> None:
        self.path = Path(path)
        self._sync = "FULL" if durable else "OFF"
        self._lock = RLock()
        self._connection = self._connect()
        try:
            self._prepare()
        except RagCacheError:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the file; the catalogue cannot be used afterwards."""
        with self._lock:
            self._connection.close()

    def setting(self, name: str, default: Any = None) -> Any:
        """Read a setting, `default` where it was never set."""
        values = self._rows(json.loads, "SELECT value FROM settings WHERE name = ?", name)
        return values[0] if values else default

    def set_setting(self, name: str, value: Any) -> None:
        """Write a setting, anything that JSON can hold."""
        with self.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, json.dumps(value)))

    def put_document(self, document: DocumentRow, chunks: Sequence[ChunkRow]) -> list[str]:
        """Put a document and all its chunks in the place of what the index had under its id or source.

        A chunk that comes back with the same id and tokens keeps its encodings.

        Returns
        -------
        list of str
            Keys that no encoding names any more.

        Raises
        ------
        InvalidArgument
            A chunk names another document, or its id is taken by one.
        """
        if any(chunk.document != document.id for chunk in chunks):
            raise InvalidArgument(f"every chunk put with document {document.id!r} must name it.")
        with self.transaction() as connection:
            keys = self._keys_of(
                "document IN (SELECT id FROM documents WHERE id = ? OR source = ?)", document.id, document.source
            )
            connection.execute("DELETE FROM documents WHERE source = ? AND id != ?", (document.source, document.id))
            connection.execute(
                f"INSERT INTO documents ({DOCUMENT}) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
                "source = excluded.source, digest = excluded.digest, metadata = excluded.metadata",
                document_values(document),
            )
            self._replace_chunks(document.id, [chunk_values(chunk) for chunk in chunks])
            connection.execute(_NEXT_EDITION)
            return self._unreferenced(keys)

    def remove_document(self, id: str) -> list[str]:
        """Remove a document with its chunks and their encodings.

        Returns
        -------
        list of str
            Keys that no encoding names any more; empty if there is no such document.
        """
        with self.transaction() as connection:
            keys = self._keys_of("document = ?", id)
            connection.execute("DELETE FROM documents WHERE id = ?", (id,))
            connection.execute(_NEXT_EDITION)
            return self._unreferenced(keys)

    def document(self, id: str) -> DocumentRow | None:
        """Find a document by its id."""
        return next(iter(self._documents("WHERE id = ?", id)), None)

    def document_by_source(self, source: str) -> DocumentRow | None:
        """Find a document by where it came from."""
        return next(iter(self._documents("WHERE source = ?", source)), None)

    def documents(self) -> list[DocumentRow]:
        """List all documents, by source."""
        return self._documents("ORDER BY source")

    def chunk(self, id: str) -> ChunkRow | None:
        """Find a chunk by its id."""
        return next(iter(self.chunks([id])), None)

    def chunks(self, ids: Sequence[str]) -> list[ChunkRow]:
        """Find chunks by id, in the order asked for; those the index lacks are left out."""
        found = {chunk.id: chunk for chunk in self._chunks(f"WHERE id IN {LISTED}", json.dumps(list(ids)))}
        return [found[id] for id in ids if id in found]

    def chunks_of(self, document: str) -> list[ChunkRow]:
        """List a document's chunks in reading order."""
        return self._chunks("WHERE document = ? ORDER BY ordinal", document)

    def all_chunks(self) -> list[ChunkRow]:
        """List every chunk, by document and in reading order."""
        return self._chunks("ORDER BY document, ordinal")

    def places(self) -> list[tuple[str, str]]:
        """List every chunk's id and its document's."""
        found = self.read("SELECT id, document FROM chunks ORDER BY document, ordinal")
        return [(id, document) for id, document in found]

    def texts(self) -> list[tuple[str, str]]:
        """List every chunk's id and text, by document and in reading order."""
        return [(id, text) for id, text in self.read("SELECT id, text FROM chunks ORDER BY document, ordinal")]

    def edition(self) -> int:
        """Tell how often documents were put or removed, by whomever: another number, other chunks."""
        return int(self.setting(_EDITION, 0))

    def missing(self, recipe: str, document: str | None = None) -> list[ChunkRow]:
        """List the chunks, of one document or of all, without an encoding by a recipe, in reading order."""
        condition, values = ("", ()) if document is None else ("document = ? AND", (document,))
        return self._chunks(f"WHERE {condition} {_LACKS} ORDER BY document, ordinal", *values, recipe)

    def lacking(self, recipe: str) -> dict[str, int]:
        """Count the chunks without an encoding by a recipe, by document; those that lack none are left out."""
        query = f"SELECT document, COUNT(*) FROM chunks WHERE {_LACKS} GROUP BY document ORDER BY document"
        return dict(self.read(query, recipe))

    def encoded(self, recipe: str) -> list[str]:
        """List the ids of the chunks that have an encoding by a recipe."""
        return [chunk for (chunk,) in self.read("SELECT DISTINCT chunk FROM encodings WHERE recipe = ?", recipe)]

    def put_encoding(self, *rows: EncodingRow) -> None:
        """Record blobs that are already stored; the same chunk, recipe and key replace their row.

        Raises
        ------
        InvalidArgument
            The index has no such chunk; no row was written then.
        """
        with self.transaction() as connection:
            connection.executemany(
                f"INSERT OR REPLACE INTO encodings ({ENCODING}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [encoding_values(row) for row in rows],
            )

    def recipes(self) -> list[str]:
        """List the recipes that any chunk has an encoding by."""
        return [recipe for (recipe,) in self.read("SELECT DISTINCT recipe FROM encodings ORDER BY recipe")]

    def encodings(self, chunk: str, recipe: str) -> list[EncodingRow]:
        """List a chunk's encodings by one recipe, the newest first."""
        return self._encodings("WHERE chunk = ? AND recipe = ? ORDER BY created DESC, key", chunk, recipe)

    def made_with(self, keys: Iterable[str]) -> list[EncodingRow]:
        """List the encodings whose left context holds any of some keys: they carry its content too."""
        return self._encodings(
            f'WHERE EXISTS (SELECT 1 FROM json_each("left") WHERE value IN {LISTED}) ORDER BY chunk, recipe, key',
            json.dumps(list(keys)),
        )

    def drop_recipe(self, recipe: str) -> list[str]:
        """Remove every encoding by a recipe.

        Returns
        -------
        list of str
            Keys that no encoding names any more.
        """
        with self.transaction() as connection:
            keys = self._keys_of("recipe = ?", recipe)
            connection.execute("DELETE FROM encodings WHERE recipe = ?", (recipe,))
            return self._unreferenced(keys)

    def drop_key(self, key: str) -> None:
        """Remove every encoding that names a key, because its blob is gone."""
        with self.transaction() as connection:
            connection.execute("DELETE FROM encodings WHERE key = ?", (key,))

    def referenced(self, key: str) -> bool:
        """Tell whether any encoding names a key."""
        return bool(self.read("SELECT 1 FROM encodings WHERE key = ? LIMIT 1", key))

    def touch(self, keys: Iterable[str]) -> None:
        """Note that blobs were used now."""
        with self.transaction() as connection:
            connection.execute(
                f"UPDATE encodings SET used = ? WHERE key IN {LISTED}", (time.time(), json.dumps(list(keys)))
            )

    def stats(self) -> dict[str, Any]:
        """Count what there is.

        Returns
        -------
        dict
            documents, chunks; encodings: per recipe its chunks and bytes; bytes: of all blobs, each
            counted once however many rows share it.
        """
        sizes = "SELECT recipe, key, MAX(nbytes) AS nbytes FROM encodings GROUP BY"
        chunks = dict(self.read("SELECT recipe, COUNT(DISTINCT chunk) FROM encodings GROUP BY recipe"))
        nbytes = dict(self.read(f"SELECT recipe, SUM(nbytes) FROM ({sizes} recipe, key) GROUP BY recipe"))
        return {
            "documents": self.read("SELECT COUNT(*) FROM documents")[0][0],
            "chunks": self.read("SELECT COUNT(*) FROM chunks")[0][0],
            "encodings": {name: {"chunks": chunks[name], "bytes": nbytes[name]} for name in sorted(chunks)},
            "bytes": self.read(f"SELECT COALESCE(SUM(nbytes), 0) FROM ({sizes} key)")[0][0],
        }

    def _connect(self) -> sqlite3.Connection:
        try:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))  # the WAL inherits the mode
            size = self.path.stat().st_size
        except OSError as error:
            raise UnusableIndex(f"the catalogue {self.path} cannot be opened ({error.strerror}).") from error
        if 0 < size < _HEADER_BYTES:  # SQLite would take it for an empty file and overwrite it
            raise self._damaged(f"it has only {size} bytes")
        with self._guard():
            return sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)

    def _prepare(self) -> None:
        tables = self.read("SELECT COUNT(*) FROM sqlite_master")[0][0]
        if tables and self.read("PRAGMA application_id")[0][0] != _APPLICATION:
            raise IndexFormat(f"{self.path} is another program's database; choose another folder for the index.")
        for pragma in ("journal_mode = WAL", f"synchronous = {self._sync}", "foreign_keys = ON", "secure_delete = ON"):
            self.read(f"PRAGMA {pragma}")
        with self.transaction() as connection:
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied REAL)")
            self._migrate(connection)

    def _migrate(self, connection: sqlite3.Connection) -> None:
        applied = {name for (name,) in self.read("SELECT name FROM migrations")}
        unknown = applied - {migration.__name__ for migration in MIGRATIONS}
        if unknown:
            raise IndexFormat(
                f"{self.path} was made by a newer version (it has {min(unknown)}); upgrade with "
                f"`pip install --upgrade {DISTRIBUTION}`."
            )
        for migration in MIGRATIONS:
            if migration.__name__ not in applied:
                migration(connection)
                connection.execute("INSERT INTO migrations VALUES (?, ?)", (migration.__name__, time.time()))

    def _replace_chunks(self, document: str, values: Sequence[tuple[Any, ...]]) -> None:
        before = dict(self.read("SELECT id, token_ids FROM chunks WHERE document = ?", document))
        kept = [row for row in values if before.get(row[0]) == row[4]]
        new = [row for row in values if before.get(row[0]) != row[4]]
        self._connection.execute(
            f"DELETE FROM chunks WHERE document = ? AND id NOT IN {LISTED}",
            (document, json.dumps([row[0] for row in kept])),
        )
        self._connection.executemany(
            'UPDATE chunks SET ordinal = ?, text = ?, "start" = ?, "end" = ? WHERE id = ?',
            [(ordinal, text, start, end, id) for id, _, ordinal, text, _, start, end in kept],
        )
        self._connection.executemany(f"INSERT INTO chunks ({CHUNK}) VALUES (?, ?, ?, ?, ?, ?, ?)", new)

    def _keys_of(self, condition: str, *parameters: Any) -> list[str]:
        query = f"SELECT DISTINCT key FROM encodings JOIN chunks ON chunks.id = chunk WHERE {condition}"
        return [key for (key,) in self.read(query, *parameters)]

    def _unreferenced(self, keys: Sequence[str]) -> list[str]:
        query = "SELECT value FROM json_each(?) WHERE value NOT IN (SELECT key FROM encodings)"
        return [key for (key,) in self.read(query, json.dumps(keys))]

    def _documents(self, clause: str, *parameters: Any) -> list[DocumentRow]:
        return self._rows(document_row, f"SELECT {DOCUMENT} FROM documents {clause}", *parameters)

    def _chunks(self, clause: str, *parameters: Any) -> list[ChunkRow]:
        return self._rows(chunk_row, f"SELECT {CHUNK} FROM chunks {clause}", *parameters)

    def _encodings(self, clause: str, *parameters: Any) -> list[EncodingRow]:
        return self._rows(encoding_row, f"SELECT {ENCODING} FROM encodings {clause}", *parameters)

    def _rows(self, make: Callable[..., _Row], query: str, *parameters: Any) -> list[_Row]:
        try:
            return [make(*values) for values in self.read(query, *parameters)]
        except (ValueError, TypeError) as error:
            raise self._damaged(error) from error

    def read(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Rows of a query, for other tables of this file too."""
        with self._lock, self._guard():
            return self._connection.execute(query, parameters).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction, for other tables of this file too; an error leaves no trace of it."""
        with self._lock, self._guard(), self._connection as connection:  # commits, or rolls back on any error
            connection.execute("BEGIN IMMEDIATE")
            yield connection

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.ProgrammingError:  # our mistake, not the file's
            raise
        except sqlite3.IntegrityError as error:
            raise InvalidArgument(f"the catalogue has no place for this row ({error}).") from error
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def _translated(self, error: sqlite3.Error) -> RagCacheError:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(_REFUSED):
            return StorageFull(f"the disk refused a write to {self.path} ({error}); free some space and repeat.")
        if name.startswith(_UNOPENED):
            return UnusableIndex(f"the catalogue {self.path} cannot be opened now ({error}); repeat the command.")
        return self._damaged(error)

    def _damaged(self, error: Exception | str) -> IndexFormat:
        return IndexFormat(
            f"{self.path} is damaged or no catalogue ({error}); restore it from a backup, or delete the index "
            "and ingest again."
        )
