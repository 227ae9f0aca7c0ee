"""What the index knows: documents, their chunks, and which KV each chunk has; SQLite, one file.

Blobs are published before their row is written and deleted after it is gone. Verbs that remove rows write
down, in the same transaction, which blobs are to be deleted: those that no row names any more and all
that were made with them. `Forgotten` deletes them.
"""

import json
import re
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ragcache.errors import InvalidArgument
from ragcache.store.damage import damaged_rows, drop_damaged, name_damaged
from ragcache.store.database import Database
from ragcache.store.forgotten import (
    LISTED,
    MADE_WITH,
    drop_recipe,
    evict,
    forget,
    forget_unreferenced,
    keys_of,
    lose,
    recall,
)
from ragcache.store.schema import (
    CALLED,
    CHUNK,
    COLLECTION,
    DOCUMENT,
    DOCUMENT_DIGITS,
    EDITION,
    ENCODING,
    TEXT_DIGEST,
    WORDS_LOST,
    ChunkRow,
    DamagedRow,
    DocumentRow,
    EncodingRow,
    chunk_row,
    chunk_values,
    document_row,
    document_values,
    encoding_row,
    encoding_values,
    setting_value,
    setting_values,
)
from ragcache.store.words import optimize_words, write_words_anew

_LACKS = "NOT EXISTS (SELECT 1 FROM encodings WHERE chunk = chunks.id AND recipe = ?)"
_WORD = re.compile(r"[\w\u0300-\u036f]+")  # with accents that are characters of their own
_NEXT_EDITION = (
    f"INSERT INTO settings (name, value) VALUES ('{EDITION}', '1') ON CONFLICT (name) DO UPDATE SET "
    "value = CAST(CAST(value AS INTEGER) + 1 AS TEXT)"
)


class Catalog(Database):
    """The tables of one index; every verb is one transaction."""

    def setting(self, name: str, default: Any = None) -> Any:
        """Read a setting, `default` where it was never set."""
        query = "SELECT name, value, checksum FROM settings WHERE name = ?"
        values = self.rows(setting_value, query, name)
        return values[0] if values else default

    def set_setting(self, name: str, value: Any) -> None:
        """Write a setting, anything that JSON can hold."""
        with self.transaction() as connection:
            put = "INSERT OR REPLACE INTO settings (name, value, checksum) VALUES (?, ?, ?)"
            connection.execute(put, setting_values(name, value))

    def put_document(
        self, document: DocumentRow, chunks: Sequence[ChunkRow], *, anew: Mapping[str, Sequence[str]] | None = None
    ) -> list[str]:
        """Put a document and all its chunks in the place of what the index had under its id or source.

        A chunk that comes back with the same id and tokens keeps its encodings, unless others may read it than before:
        those, and whatever was made with them, are forgotten even where an equal text has them too.

        Parameters
        ----------
        document : DocumentRow
            The document.
        chunks : sequence of ChunkRow
            All of its chunks.
        anew : mapping of str to sequence of str, optional
            By recipe, chunks that lose their encodings even if they come back.

        Returns
        -------
        list of str
            Keys whose blobs are to be deleted.

        Raises
        ------
        InvalidArgument
            A chunk names another document, or its id is taken by one.
        """
        if any(chunk.document != document.id for chunk in chunks):
            raise InvalidArgument(f"every chunk put with document {document.id!r} must name it.")
        same = "document IN (SELECT id FROM documents WHERE id = ? OR source = ?)"
        with self.transaction() as connection:
            keys = keys_of(connection, same, document.id, document.source)
            relabelled = self._keys_of_relabelled(connection, chunks)
            gone = keys_of(connection, f"{same} AND id NOT IN {LISTED}", document.id, document.source,
                           json.dumps([chunk.id for chunk in chunks]))  # fmt: skip
            connection.execute("DELETE FROM documents WHERE source = ? AND id != ?", (document.source, document.id))
            connection.execute(
                f"INSERT INTO documents ({DOCUMENT}, checksum, added) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) "
                "DO UPDATE SET source = excluded.source, digest = excluded.digest, metadata = excluded.metadata, "
                "checksum = excluded.checksum, added = excluded.added",
                (*document_values(document), time.time()),
            )
            self._replace_chunks(document.id, [chunk_values(chunk) for chunk in chunks])
            for recipe, ids in (anew or {}).items():
                named = f"recipe = ? AND chunk IN {LISTED}"
                connection.execute(f"DELETE FROM encodings WHERE {named}", (recipe, json.dumps(list(ids))))
            connection.execute(_NEXT_EDITION)
            lost = {*relabelled, *_private(connection, gone)}
            return forget(connection, lost) + forget_unreferenced(connection, set(keys) - lost)

    def remove_document(self, *ids: str) -> list[str]:
        """Remove documents with their chunks and their encodings, and all that was made with those.

        Returns
        -------
        list of str
            Keys whose blobs are to be deleted; empty if there is no such document.
        """
        listed = json.dumps(ids)
        with self.transaction() as connection:
            keys = keys_of(connection, f"document IN {LISTED}", listed)
            connection.execute(f"DELETE FROM documents WHERE id IN {LISTED}", (listed,))
            connection.execute(_NEXT_EDITION)
            lost = _private(connection, keys)
            return forget(connection, lost) + forget_unreferenced(connection, set(keys) - lost)

    def find_damaged(self) -> list[str]:
        """Name the rows, of whichever table, that are not what was written."""
        return name_damaged(self.read)

    def remove_damaged(self) -> list[str]:
        """Remove what `find_damaged` names; documents with such a row go as `remove_document` says.

        Returns
        -------
        list of str
            Where the documents came from, as far as that can still be read.
        """
        with self.transaction() as connection:
            drop_damaged(connection)
            rows, about = (damaged_rows(connection.execute, table) for table in ("chunks", "documents"))
            if not rows and not about:
                return []
            numbers = json.dumps(list(rows))
            ids = {str(id) for id, *_ in about.values()}
            ids |= {name for id, document, *_ in rows.values() for name in (str(document), str(id)[:DOCUMENT_DIGITS])}
            listed = json.dumps(sorted(ids))
            sources = connection.execute(f"SELECT rowid, source FROM documents WHERE id IN {LISTED}", (listed,))
            read = [source for number, source in sources if number not in about]
            keys = keys_of(connection, f"document IN {LISTED} OR rowid IN {LISTED}", listed, numbers)
            connection.execute(f"DELETE FROM chunks WHERE rowid IN {LISTED}", (numbers,))
            connection.execute(f"DELETE FROM documents WHERE id IN {LISTED}", (listed,))
            connection.execute(_NEXT_EDITION)
            write_words_anew(connection)  # words go by the text that they were made of, which is lost
            lost = _private(connection, keys)
            forget(connection, lost)
            forget_unreferenced(connection, set(keys) - lost)
            return read

    def sources(self) -> list[str]:
        """List the files that documents came from."""
        store = "CASE WHEN json_valid(metadata) THEN json_extract(metadata, ?) END"
        found = self.read(f"SELECT source FROM documents WHERE {store} IS NULL", f"$.{COLLECTION}")
        return [source for (source,) in found]

    def document(self, id: str) -> DocumentRow | None:
        """Find a document by its id."""
        return next(iter(self._documents("WHERE id = ?", id)), None)

    def document_by_source(self, source: str) -> DocumentRow | None:
        """Find a document by where it came from."""
        return next(iter(self._documents("WHERE source = ?", source)), None)

    def documents(self, ids: Collection[str] | None = None) -> list[DocumentRow]:
        """List all documents, or those of some ids, by source."""
        some = () if ids is None else (json.dumps(list(ids)),)
        return self._documents(f"{f'WHERE id IN {LISTED}' if some else ''} ORDER BY source", *some)

    def chunk(self, id: str) -> ChunkRow | None:
        """Find a chunk by its id."""
        return next(iter(self.chunks([id])), None)

    def chunks(self, ids: Sequence[str]) -> list[ChunkRow]:
        """Find chunks by id, in the order asked for; those the index lacks are left out."""
        found = {chunk.id: chunk for chunk in self._chunks(f"WHERE id IN {LISTED}", json.dumps(list(ids)))}
        return [found[id] for id in ids if id in found]

    def chunks_of(self, document: str, most: int = -1) -> list[ChunkRow]:
        """List a document's chunks in reading order, all of them or so many at the most."""
        return self._chunks("WHERE document = ? ORDER BY ordinal LIMIT ?", document, most)

    def copies(self, ids: Sequence[str]) -> dict[str, list[ChunkRow]]:
        """Find the documents that have the text of one of these chunks: the first such chunk of each, if of several."""
        texts = self.read(f"SELECT id, text FROM chunks WHERE id IN {LISTED}", json.dumps(list(ids)))
        alike = f"WHERE {TEXT_DIGEST} = {TEXT_DIGEST.replace('id', '?')} AND text = ? ORDER BY document, ordinal DESC"
        found = {id: {row.document: row for row in self._chunks(alike, id, text)} for id, text in texts}
        return {id: list(rows.values()) for id, rows in found.items() if len(rows) > 1}

    def all_chunks(self) -> list[ChunkRow]:
        """List every chunk, by document and in reading order."""
        return self._chunks("ORDER BY document, ordinal")

    def places(self) -> list[tuple[str, str]]:
        """List every chunk's id and its document's."""
        found = self.read("SELECT id, document FROM chunks ORDER BY document, ordinal")
        return [(id, document) for id, document in found]

    def chunk_ids(self, sources: Collection[str]) -> list[str]:
        """List the ids of all chunks of the documents that are called so, by document and in reading order."""
        called = f"coalesce(nullif(json_extract(documents.metadata, '$.{CALLED}'), ''), source)"
        query = f"SELECT chunks.id FROM chunks JOIN documents ON documents.id = document WHERE {called} IN {LISTED}"
        return [id for (id,) in self.read(f"{query} ORDER BY document, ordinal", json.dumps(list(sources)))]

    def texts(self) -> list[tuple[str, str]]:
        """List every chunk's id and text, by document and in reading order."""
        return [(id, text) for id, text in self.read("SELECT id, text FROM chunks ORDER BY document, ordinal")]

    def token_counts(self) -> list[int]:
        """Tokens of every chunk."""
        return [size // 4 for (size,) in self.read("SELECT length(token_ids) FROM chunks")]

    def search_words(self, question: str, count: int, within: Collection[str] | None = None) -> list[str]:
        """Find the ids of chunks that share words with a question, best first by BM25.

        Parameters
        ----------
        question : str
            In any words; they are compared without case and accents, whole.
        count : int
            How many; fewer come back where fewer share a word.
        within : collection of str, optional
            The ids of the chunks that may be found, otherwise all.
        """
        # As they are written: SQLite folds them as it folded the texts, in which "ß" stays what it is.
        words = {word.casefold(): word for word in _WORD.findall(question)}.values()
        some = () if within is None else (json.dumps(list(within)),)
        found = f"words JOIN chunks ON number = words.rowid WHERE words MATCH ? {f'AND id IN {LISTED}' if some else ''}"
        asked = " OR ".join(f'"{word}"' for word in words), *some, count
        return [id for (id,) in self.read(f"SELECT id FROM {found} ORDER BY rank, id LIMIT ?", *asked)] if words else []

    def purge(self) -> None:
        """Leave nothing of removed text in the file or its log."""
        if not self.forget_words():
            self.truncate_log()

    def forget_words(self) -> bool:
        """Take words of removed text out of the full-text index, which keeps them until then; whether there were any.

        The index is written anew, in time proportional to its size, so many removals should come before it.
        """
        if not self.setting(WORDS_LOST):
            return False
        with self.transaction() as connection:
            optimize_words(connection)
            connection.execute("DELETE FROM settings WHERE name = ?", (WORDS_LOST,))
        self.truncate_log()
        return True

    def edition(self) -> int:
        """Tell how often documents were put or removed, by whomever: another number, other chunks."""
        return int(self.setting(EDITION, 0))

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
            self._record(connection, rows)

    def put_standing(self, rows: Sequence[EncodingRow], stands: Callable[[str], bool]) -> list[str]:
        """The same, but for rows whose chunk, blob or left context is gone, whoever removed it meanwhile.

        Parameters
        ----------
        rows : sequence of EncodingRow
            Of any chunks.
        stands : callable
            Tells whether a key has its blob.

        Returns
        -------
        list of str
            Keys of the others, whose blobs are to be deleted.
        """
        listed = json.dumps([row.chunk for row in rows]), json.dumps([key for row in rows for key in row.left])
        with self.transaction() as connection:
            chunks = {id for (id,) in self.read(f"SELECT id FROM chunks WHERE id IN {LISTED}", listed[0])}
            gone = {key for (key,) in self.read(f"SELECT key FROM forgotten WHERE key IN {LISTED}", listed[1])}

            def holds(row: EncodingRow) -> bool:
                return row.chunk in chunks and gone.isdisjoint(row.left) and all(map(stands, (row.key, *row.left)))

            kept = [row for row in rows if holds(row)]
            self._record(connection, kept)
            return forget_unreferenced(connection, {row.key for row in rows} - {row.key for row in kept})

    def recipes(self) -> list[str]:
        """List the recipes that any chunk has an encoding by."""
        return [recipe for (recipe,) in self.read("SELECT DISTINCT recipe FROM encodings ORDER BY recipe")]

    def encodings(self, chunk: str, recipe: str) -> list[EncodingRow]:
        """List a chunk's encodings by one recipe, the newest first."""
        return self._encodings("WHERE chunk = ? AND recipe = ? ORDER BY created DESC, key", chunk, recipe)

    def has_damaged(self, chunk: str) -> bool:
        """Tell whether what is written of a chunk's KV fails its checksum."""
        rows = self.read(f"SELECT {ENCODING}, checksum FROM encodings WHERE chunk = ?", chunk)
        return len(self._encodings("WHERE chunk = ?", chunk)) < len(rows)

    def by_key(self, keys: Iterable[str]) -> list[EncodingRow]:
        """List the encodings that name one of some keys."""
        return self._encodings(f"WHERE key IN {LISTED} ORDER BY chunk, recipe, key", json.dumps(list(keys)))

    def by_recipe(self, recipe: str) -> list[EncodingRow]:
        """List all encodings by one recipe, of whichever chunk."""
        return self._encodings("WHERE recipe = ? ORDER BY created, key", recipe)

    def bytes_of(self, recipe: str) -> int:
        """Add up the blobs by one recipe, each counted once."""
        keys = "SELECT MAX(nbytes) AS nbytes FROM encodings WHERE recipe = ? GROUP BY key"
        return int(self.read(f"SELECT COALESCE(SUM(nbytes), 0) FROM ({keys})", recipe)[0][0])

    def bytes_under(self, keys: Iterable[str]) -> int:
        """Add up the blobs of some keys."""
        sizes = f"SELECT MAX(nbytes) AS nbytes FROM encodings WHERE key IN {LISTED} GROUP BY key"
        return int(self.read(f"SELECT COALESCE(SUM(nbytes), 0) FROM ({sizes})", json.dumps(list(keys)))[0][0])

    def made_with(self, keys: Iterable[str]) -> list[EncodingRow]:
        """List the encodings whose left context holds any of some keys: they carry its content too."""
        return self._encodings(f"WHERE {MADE_WITH} ORDER BY chunk, recipe, key", json.dumps(list(keys)))

    def drop_recipe(self, recipe: str) -> list[str]:
        """Remove every encoding by a recipe; what was made with it stays.

        Returns
        -------
        list of str
            Keys whose blobs are to be deleted.
        """
        with self.transaction() as connection:
            return drop_recipe(connection, recipe)

    def drop_key(self, *keys: str) -> None:
        """Remove every encoding that names one of some keys, whose blobs are of no use; what was made with it stays."""
        if keys:
            with self.transaction() as connection:
                for key in keys:
                    lose(connection, key)

    def keys(self) -> set[str]:
        """Collect the keys of all encodings."""
        return {key for (key,) in self.read("SELECT DISTINCT key FROM encodings")}

    def keys_of_chunks(self, chunks: Sequence[str]) -> set[str]:
        """Collect the keys of all encodings of some chunks."""
        found = self.read(f"SELECT key FROM encodings WHERE chunk IN {LISTED}", json.dumps(list(chunks)))
        return {key for (key,) in found}

    def credit(self, worths: Mapping[tuple[str, str], float]) -> None:
        """Add to what the uses of encodings were worth, by chunk and key; they were used now."""
        values = [(worth, time.time(), chunk, key) for (chunk, key), worth in worths.items()]
        with self.transaction() as connection:
            connection.executemany(
                "UPDATE encodings SET worth = worth + ?, used = ? WHERE chunk = ? AND key = ?", values
            )

    def note(self, rows: Iterable[EncodingRow]) -> None:
        """Write down what rows say `about` their encodings and of their worth; those that are gone stay so."""
        values = [(*encoding_values(row)[-3:], time.time(), row.chunk, row.key) for row in rows]
        update = "UPDATE encodings SET about = ?, worth = ?, checksum = ?, used = ? WHERE chunk = ? AND key = ?"
        with self.transaction() as connection:
            connection.executemany(update, values)

    def evict(self, keys: Iterable[str]) -> list[str]:
        """Remove every encoding by some keys, to make room; what was made with them stays.

        Returns
        -------
        list of str
            Keys whose blobs are to be deleted.
        """
        with self.transaction() as connection:
            return evict(connection, set(keys))

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

    def _record(self, connection: sqlite3.Connection, rows: Sequence[EncodingRow]) -> None:
        connection.executemany(
            f"INSERT OR REPLACE INTO encodings ({ENCODING}, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [encoding_values(row) for row in rows],
        )
        recall(connection, [row.key for row in rows])

    def _keys_of_relabelled(self, connection: sqlite3.Connection, chunks: Sequence[ChunkRow]) -> list[str]:
        """Keys of the KV of chunks that others may read from now on."""
        before = {row.id: row.access for row in self.chunks([chunk.id for chunk in chunks])}
        changed = [chunk.id for chunk in chunks if before.get(chunk.id, chunk.access) != chunk.access]
        return keys_of(connection, f"id IN {LISTED}", json.dumps(changed)) if changed else []

    def _replace_chunks(self, document: str, values: Sequence[tuple[Any, ...]]) -> None:
        read = self.read("SELECT id, token_ids, access FROM chunks WHERE document = ?", document)
        before = {id: same for id, *same in read}
        kept = [row for row in values if before.get(row[0]) == [row[4], row[7]]]
        new = [row for row in values if before.get(row[0]) != [row[4], row[7]]]
        self._connection.execute(
            f"DELETE FROM chunks WHERE document = ? AND id NOT IN {LISTED}",
            (document, json.dumps([row[0] for row in kept])),
        )
        self._connection.executemany(
            'UPDATE chunks SET ordinal = ?, text = ?, "start" = ?, "end" = ?, checksum = ? WHERE id = ?',
            [(ordinal, text, start, end, found, id) for id, _, ordinal, text, _, start, end, _, found in kept],
        )
        self._connection.executemany(f"INSERT INTO chunks ({CHUNK}, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", new)

    def _documents(self, clause: str, *parameters: Any) -> list[DocumentRow]:
        return self.rows(document_row, f"SELECT {DOCUMENT}, checksum FROM documents {clause}", *parameters)

    def _chunks(self, clause: str, *parameters: Any) -> list[ChunkRow]:
        return self.rows(chunk_row, f"SELECT {CHUNK}, checksum FROM chunks {clause}", *parameters)

    def _encodings(self, clause: str, *parameters: Any) -> list[EncodingRow]:
        """Rows about KV; one that fails its checksum is a miss until the next ingestion has removed it."""
        found = []
        for values in self.read(f"SELECT {ENCODING}, checksum FROM encodings {clause}", *parameters):
            with suppress(DamagedRow):
                found.append(encoding_row(*values))
        return found


def _private(connection: sqlite3.Connection, keys: Sequence[str]) -> set[str]:
    """Those of some keys that only chunks with an access label still have: not everybody may read their text now."""
    query = (
        f"SELECT key FROM encodings JOIN chunks ON id = chunk WHERE key IN {LISTED} "
        "GROUP BY key HAVING COUNT(access) = COUNT(*)"
    )
    return {key for (key,) in connection.execute(query, (json.dumps(list(keys)),))}
