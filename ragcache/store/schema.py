"""The rows and tables of the catalogue, and how one becomes the other."""

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

import numpy as np
import xxhash

from ragcache.store.access import Access


@dataclass(frozen=True)
class DocumentRow:
    """A document as it was ingested.

    Parameters
    ----------
    id : str
        Its name in the index.
    source : str
        Where it came from, a path for instance; one document per source.
    digest : str
        Digest of its content, which tells whether it changed.
    metadata : dict
        Whatever JSON can hold.
    """

    id: str
    source: str
    digest: str
    metadata: dict[str, Any]


@dataclass(frozen=True)
class ChunkRow:
    """A piece of a document.

    Parameters
    ----------
    id : str
        Its name, unique in the index.
    document : str
        The document's id.
    ordinal : int
        Its place among the document's chunks.
    text : str
        The text, as shown to the user.
    token_ids : tuple of int
        The text in the reader's tokens.
    start, end : int
        Character offsets in the document's text, `end` exclusive.
    access : frozenset of str or None
        Who may read it; None for everybody.
    """

    id: str
    document: str
    ordinal: int
    text: str
    token_ids: tuple[int, ...]
    start: int
    end: int
    access: Access = None

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def body(self) -> str:
        """What of the text stands in the document at those offsets: all but a title line in front."""
        return self.text[len(self.text) - (self.end - self.start) :]


@dataclass(frozen=True)
class EncodingRow:
    """A chunk's KV, made by one recipe in one left context.

    Parameters
    ----------
    chunk : str
        The chunk's id.
    recipe : str
        The encoder with its fields.
    key : str
        Where the blob lies; several rows may share one.
    left : tuple of str
        Keys of the left context that it was made in, in order.
    nbytes : int
        Size of the blob's file.
    kind : str
        What the index calls this stage of the recipe.
    created, used : float
        Seconds since the epoch.
    about : dict or None
        What is noted of a KV that comes from a prompt which was answered, anything that JSON can hold.
    worth : float
        What its uses were worth so far, where that is counted.
    """

    chunk: str
    recipe: str
    key: str
    left: tuple[str, ...]
    nbytes: int
    kind: str
    created: float
    used: float
    about: dict[str, Any] | None = None
    worth: float = 0.0


DOCUMENT_DIGITS = 16
"""So many characters of a chunk's id name its document."""

TEXT_DIGEST = "substr(id, 18, 12)"
"""Where `ragcache.index.chunks.chunk_id` puts the digest of a text: behind 16 characters of document and a dash."""

WORDS_LOST = "words_lost"
"""A setting: the full-text index may still hold words of chunks that are gone."""


def m001_documents_chunks_encodings(connection: sqlite3.Connection) -> None:
    """Create the tables of format 1."""
    for statement in (
        "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
        """CREATE TABLE documents (
            id TEXT PRIMARY KEY, source TEXT NOT NULL UNIQUE, digest TEXT NOT NULL, metadata TEXT NOT NULL)""",
        """CREATE TABLE chunks (
            id TEXT PRIMARY KEY, document TEXT NOT NULL REFERENCES documents ON DELETE CASCADE,
            ordinal INTEGER NOT NULL, text TEXT NOT NULL, token_ids BLOB NOT NULL,
            "start" INTEGER NOT NULL, "end" INTEGER NOT NULL)""",
        "CREATE INDEX chunks_by_document ON chunks (document, ordinal)",
        """CREATE TABLE encodings (
            chunk TEXT NOT NULL REFERENCES chunks ON DELETE CASCADE, recipe TEXT NOT NULL, key TEXT NOT NULL,
            "left" TEXT NOT NULL, nbytes INTEGER NOT NULL, kind TEXT NOT NULL,
            created REAL NOT NULL, used REAL NOT NULL, PRIMARY KEY (chunk, recipe, key))""",
        "CREATE INDEX encodings_by_key ON encodings (key)",
        "CREATE INDEX encodings_by_recipe ON encodings (recipe)",
    ):
        connection.execute(statement)


def m002_entries(connection: sqlite3.Connection) -> None:
    """Create the table of other stores' names for chunks; a chunk may come back under its name, so none is bound."""
    for statement in (
        """CREATE TABLE entries (
            collection TEXT NOT NULL, name TEXT NOT NULL, document TEXT NOT NULL, place TEXT NOT NULL,
            chunk TEXT NOT NULL, PRIMARY KEY (collection, name))""",
        "CREATE INDEX entries_by_name ON entries (name)",
        "CREATE INDEX entries_by_document ON entries (collection, document)",
    ):
        connection.execute(statement)


def m003_forgotten(connection: sqlite3.Connection) -> None:
    """Create the tables of what is to be deleted, and of what failed its checks; note when a document came."""
    for statement in (
        "CREATE TABLE forgotten (key TEXT PRIMARY KEY)",
        """CREATE TABLE lost (
            chunk TEXT NOT NULL REFERENCES chunks ON DELETE CASCADE, key TEXT NOT NULL, PRIMARY KEY (chunk, key))""",
        "CREATE INDEX lost_by_key ON lost (key)",
        "ALTER TABLE documents ADD COLUMN added REAL",  # unknown of those that an older version added
    ):
        connection.execute(statement)


def m004_words(connection: sqlite3.Connection) -> None:
    """Create the full-text index of chunks, which follows them by triggers; it holds words, and no text."""
    gone = "INSERT INTO words (words, rowid, text) VALUES ('delete', old.number, old.text)"
    for statement in (
        "ALTER TABLE chunks ADD COLUMN number INTEGER",  # SQLite's own row numbers may change
        "UPDATE chunks SET number = rowid",
        "CREATE UNIQUE INDEX chunks_by_number ON chunks (number)",
        "CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = 'unicode61 remove_diacritics 2')",
        "INSERT INTO words (rowid, text) SELECT number, text FROM chunks",
        """CREATE TRIGGER words_of_new_chunk AFTER INSERT ON chunks BEGIN
            UPDATE chunks SET number = (SELECT COALESCE(MAX(number), 0) + 1 FROM chunks) WHERE id = new.id;
            INSERT INTO words (rowid, text) SELECT number, text FROM chunks WHERE id = new.id;
        END""",
        f"""CREATE TRIGGER words_of_lost_chunk AFTER DELETE ON chunks BEGIN
            {gone};
            INSERT OR REPLACE INTO settings VALUES ('{WORDS_LOST}', 'true');
        END""",
        f"""CREATE TRIGGER words_of_changed_chunk AFTER UPDATE OF text ON chunks WHEN old.text != new.text BEGIN
            {gone};
            INSERT INTO words (rowid, text) VALUES (new.number, new.text);
            INSERT OR REPLACE INTO settings VALUES ('{WORDS_LOST}', 'true');
        END""",
    ):
        connection.execute(statement)


def m005_access(connection: sqlite3.Connection) -> None:
    """Add the labels of chunks and of other stores' names for them; none is for everybody."""
    for table in ("chunks", "entries"):
        connection.execute(f"ALTER TABLE {table} ADD COLUMN access TEXT")


def m006_copies(connection: sqlite3.Connection) -> None:
    """Let equal texts of several documents be found: an id holds a digest of its chunk's text."""
    connection.execute(f"CREATE INDEX chunks_by_text ON chunks ({TEXT_DIGEST})")


def m007_harvested(connection: sqlite3.Connection) -> None:
    """Add what is noted of a KV that comes from a prompt, and what its uses were worth."""
    connection.execute("ALTER TABLE encodings ADD COLUMN about TEXT")
    connection.execute("ALTER TABLE encodings ADD COLUMN worth REAL NOT NULL DEFAULT 0")


def m008_checksums(connection: sqlite3.Connection) -> None:
    """Give rows with text a checksum; text that is no text any more gets none, and fails the check."""
    texts = 'id, document, ordinal, text, token_ids, "start", "end", access'
    for table, columns in (("documents", "id, source, digest, metadata"), ("chunks", texts)):
        connection.execute(f"ALTER TABLE {table} ADD COLUMN checksum TEXT")
        rows = connection.execute(f"SELECT rowid, {columns} FROM {table}").fetchall()
        sums = [(checksum(*values), number) for number, *values in rows if all(map(_is_valid, values))]
        connection.executemany(f"UPDATE {table} SET checksum = ? WHERE rowid = ?", sums)


def m009_more_checksums(connection: sqlite3.Connection) -> None:
    """Give encodings, other stores' names and settings a checksum; two settings that triggers write have none."""
    for table, columns in (("encodings", ENCODING_CHECKED), ("entries", ENTRY), ("settings", "name, value")):
        connection.execute(f"ALTER TABLE {table} ADD COLUMN checksum TEXT")
        rows = connection.execute(f"SELECT rowid, {columns} FROM {table}").fetchall()
        sums = [(checksum(*values), number) for number, *values in rows if all(map(_is_valid, values))]
        connection.executemany(f"UPDATE {table} SET checksum = ? WHERE rowid = ?", sums)
    connection.execute(f"UPDATE settings SET checksum = NULL WHERE name IN {UNCHECKED}")
    for name in ("words_of_lost_chunk", "words_of_changed_chunk"):
        found = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = ?", (name,))
        for (made,) in found.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
            connection.execute(made.replace("INTO settings VALUES", "INTO settings (name, value) VALUES"))


def m010_uses(connection: sqlite3.Connection) -> None:
    """Create the table of how often KV was of use, for indexes whose files have a limit."""
    connection.execute(
        "CREATE TABLE uses (key TEXT PRIMARY KEY, work REAL NOT NULL, uses INTEGER NOT NULL, used REAL NOT NULL, "
        "aged REAL NOT NULL)"
    )


MIGRATIONS = [
    m001_documents_chunks_encodings,
    m002_entries,
    m003_forgotten,
    m004_words,
    m005_access,
    m006_copies,
    m007_harvested,
    m008_checksums,
    m009_more_checksums,
    m010_uses,
]
"""Run once each, in order; a file that names one which is not listed here was made by a newer version."""

CALLED = "called"  # in a document's metadata: what to call it in place of its source
COLLECTION = "collection"  # in a document's metadata: the vector store that it comes from


class DamagedRow(ValueError):
    """A row that is not what was written, and what the next ingestion does about it, if it can do anything."""

    def __init__(self, kind: str, id: str) -> None:
        super().__init__(f"the {kind} {ascii(id)[1:-1]:.80} fails its checksum")
        self.remedy = _REMEDIES.get(kind)


_REMEDIES = {
    "document": "reads it anew",
    "chunk": "reads its document anew",
    "vector store's entry": "lets go of it; then sync that store, or adopt it again",
}


DOCUMENT = "id, source, digest, metadata"
CHUNK = 'id, document, ordinal, text, token_ids, "start", "end", access'
ENCODING = 'chunk, recipe, key, "left", nbytes, kind, created, used, about, worth'
ENCODING_CHECKED = 'chunk, recipe, key, "left", nbytes, kind, created, about'  # the others change at every use
ENTRY = "collection, name, document, place, chunk, access"
EDITION = "edition"
UNCHECKED = (EDITION, WORDS_LOST)
"""Settings that SQL counts and sets by itself; a change of one of them costs time and nothing else."""


def checksum(*values: str | bytes | float | None) -> str:
    """xxh3-64 over the columns of a row, whatever bytes a damaged text has."""
    digest = xxhash.xxh3_64()
    for value in values:
        data = value if isinstance(value, bytes) else repr(value).encode("ascii", "backslashreplace")
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()


def check_row(kind: str, id: str, found: str | None, *values: str | bytes | float | None) -> None:
    """Refuse a row whose columns are not those that its checksum was made of.

    Raises
    ------
    DamagedRow
        Names the row.
    """
    if found != checksum(*values):
        raise DamagedRow(kind, id)


def _is_valid(value: object) -> bool:
    return not isinstance(value, str) or value.encode("utf-8", "ignore").decode() == value


def document_values(row: DocumentRow) -> tuple[Any, ...]:
    """Spell a row in the order of `DOCUMENT`, and its checksum."""
    values = (row.id, row.source, row.digest, json.dumps(row.metadata))
    return (*values, checksum(*values))


def document_row(id: str, source: str, digest: str, metadata: str, found: str | None) -> DocumentRow:
    """Read what `document_values` wrote."""
    check_row("document", id, found, id, source, digest, metadata)
    return DocumentRow(id, source, digest, json.loads(metadata))


def chunk_values(row: ChunkRow) -> tuple[Any, ...]:
    """Spell a row in the order of `CHUNK`, and its checksum."""
    ids = np.asarray(row.token_ids, dtype="<i4").tobytes()
    values = (row.id, row.document, row.ordinal, row.text, ids, row.start, row.end, access_value(row.access))
    return (*values, checksum(*values))


def chunk_row(
    id: str, document: str, ordinal: int, text: str, ids: bytes, start: int, end: int, access: str | None,
    found: str | None,
) -> ChunkRow:  # fmt: skip
    """Read what `chunk_values` wrote."""
    check_row("chunk", id, found, id, document, ordinal, text, ids, start, end, access)
    token_ids = tuple(np.frombuffer(ids, "<i4").tolist())
    return ChunkRow(id, document, ordinal, text, token_ids, start, end, read_access(access))


def access_value(access: Access) -> str | None:
    """Spell a label; equal ones alike."""
    return None if access is None else json.dumps(sorted(access))


def read_access(value: str | None) -> Access:
    """Read what `access_value` wrote."""
    return None if value is None else frozenset(json.loads(value))


def encoding_values(row: EncodingRow) -> tuple[Any, ...]:
    """Spell a row in the order of `ENCODING`, and its checksum."""
    left, about = json.dumps(row.left), None if row.about is None else json.dumps(row.about)
    checked = (row.chunk, row.recipe, row.key, left, row.nbytes, row.kind, float(row.created), about)
    return (*checked[:-1], row.used, about, row.worth, checksum(*checked))


def encoding_row(
    chunk: str, recipe: str, key: str, left: str, nbytes: int, kind: str, created: float, used: float,
    about: str | None, worth: float, found: str | None,
) -> EncodingRow:  # fmt: skip
    """Read what `encoding_values` wrote."""
    check_row("KV", key, found, chunk, recipe, key, left, nbytes, kind, created, about)
    noted = None if about is None else json.loads(about)
    return EncodingRow(chunk, recipe, key, tuple(json.loads(left)), nbytes, kind, created, used, noted, worth)


def setting_values(name: str, value: Any) -> tuple[str, str, str]:
    """Spell a setting, and its checksum."""
    written = json.dumps(value)
    return name, written, checksum(name, written)


def setting_value(name: str, value: str, found: str | None) -> Any:
    """Read what `setting_values` wrote."""
    if name not in UNCHECKED:
        check_row("setting", name, found, name, value)
    return json.loads(value)
