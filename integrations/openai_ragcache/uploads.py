"""What a tenant uploaded: files, and the vector stores that they are in; kept in the folder of the index."""

import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import Any, Literal, Self

from openai_ragcache.names import new_id
from ragcache.errors import InvalidArgument
from ragcache.store import is_encrypted

Status = Literal["in_progress", "completed", "failed"]

_Statement = tuple[str, Sequence[object]]

_SCHEMA = """
    CREATE TABLE IF NOT EXISTS files (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, bytes INTEGER NOT NULL, purpose TEXT NOT NULL, created INTEGER NOT NULL
    );
    CREATE TABLE IF NOT EXISTS stores (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, metadata TEXT NOT NULL, created INTEGER NOT NULL
    );
    CREATE TABLE IF NOT EXISTS members (
        store TEXT NOT NULL REFERENCES stores (id) ON DELETE CASCADE,
        file TEXT NOT NULL REFERENCES files (id) ON DELETE CASCADE,
        status TEXT NOT NULL, error TEXT NOT NULL, attributes TEXT NOT NULL, created INTEGER NOT NULL,
        PRIMARY KEY (store, file)
    );
    CREATE INDEX IF NOT EXISTS stores_of_files ON members (file);"""


@dataclass(frozen=True)
class UploadedFile:
    """A file, as it was sent; `created` is seconds since 1970."""

    id: str
    name: str
    bytes: int
    purpose: str
    created: int


@dataclass(frozen=True)
class VectorStore:
    """A set of files that are searched together."""

    id: str
    name: str
    metadata: dict[str, Any]
    created: int

    @classmethod
    def new(cls, name: str, metadata: Mapping[str, Any]) -> Self:
        """One that is not kept yet."""
        return cls(new_id("vs"), name, dict(metadata), int(time.time()))


@dataclass(frozen=True)
class Member:
    """A file in a store: whether its chunks are there yet, and if not, why."""

    store: str
    file: str
    status: Status
    error: str
    attributes: dict[str, Any] = field(default_factory=dict)
    created: int = 0

    @classmethod
    def new(cls, store: VectorStore, file: UploadedFile, attributes: Mapping[str, Any] | None = None) -> Self:
        """One that is not kept yet, and whose chunks are to be made."""
        return cls(store.id, file.id, "in_progress", "", dict(attributes or {}), int(time.time()))


class Uploads:
    """A tenant's files and vector stores; threads may share it.

    Parameters
    ----------
    folder : Path
        Made at the first upload, for its owner only. None are taken beside an encrypted index, where they would lie as
        they came.
    """

    def __init__(self, folder: Path) -> None:
        #: How far a file's ingestion is, by its id: the stage, how much of it is done, and how much there is.
        self.stages: dict[str, tuple[str, int, int]] = {}
        self._folder = Path(os.path.realpath(folder))  # as the index knows its documents
        self._lock = threading.Lock()
        self._opened: sqlite3.Connection | None = None

    def close(self) -> None:
        """Close the table of files."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    # -- files

    def add_file(self, name: str, data: bytes, purpose: str) -> UploadedFile:
        """Keep a file under an id of its own; its name must be one, without folders."""
        self._refuse_encrypted()
        file = UploadedFile(new_id("file"), name, len(data), purpose, int(time.time()))
        path = self.path(file)
        for folder in (self._folder, path.parent):
            folder.mkdir(mode=0o700, exist_ok=True)
        try:  # a file is listed once it is whole
            with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "wb") as out:
                out.write(data)
            self._write("INSERT INTO files VALUES (?, ?, ?, ?, ?)", file.id, name, file.bytes, purpose, file.created)
        except BaseException:
            rmtree(path.parent, ignore_errors=True)
            raise
        return file

    def path(self, file: UploadedFile) -> Path:
        """Where a file lies: its document's source in the index."""
        return self._folder / file.id / file.name

    def files(self) -> list[UploadedFile]:
        """All files, oldest first."""
        return [UploadedFile(*row) for row in self._rows("SELECT * FROM files ORDER BY created, rowid")]

    def file(self, id: str) -> UploadedFile | None:
        """One of them."""
        return next((UploadedFile(*row) for row in self._rows("SELECT * FROM files WHERE id = ?", id)), None)

    def remove_file(self, file: UploadedFile) -> None:
        """Forget a file, in every store."""
        self._write("DELETE FROM files WHERE id = ?", file.id)
        rmtree(self.path(file).parent, ignore_errors=True)

    # -- stores

    def add_store(self, store: VectorStore, members: Iterable[Member] = ()) -> None:
        """Keep a store with the files in it, all or nothing."""
        row = store.id, store.name, json.dumps(store.metadata), store.created
        self._write_all([("INSERT INTO stores VALUES (?, ?, ?, ?)", row), *map(_insertion, members)])

    def change_store(self, store: VectorStore, name: str, metadata: Mapping[str, Any]) -> None:
        """Give a store another name, and say other things of it."""
        sql = "UPDATE stores SET name = ?, metadata = ? WHERE id = ?"
        self._write(sql, name, json.dumps(metadata), store.id)

    def stores(self) -> list[VectorStore]:
        """All stores, oldest first."""
        return [_store(*row) for row in self._rows("SELECT * FROM stores ORDER BY created, rowid")]

    def store(self, id: str) -> VectorStore | None:
        """One of them."""
        return next((_store(*row) for row in self._rows("SELECT * FROM stores WHERE id = ?", id)), None)

    def remove_store(self, store: VectorStore) -> None:
        """Forget a store; its files stay."""
        self._write("DELETE FROM stores WHERE id = ?", store.id)

    # -- files of stores

    def add_members(self, members: Iterable[Member]) -> None:
        """Put files into stores, or into them anew."""
        self._write_all([_insertion(member) for member in members])

    def note(self, member: Member, error: str = "") -> None:
        """Note that a file's chunks are in its store, or why not."""
        sql = "UPDATE members SET status = ?, error = ? WHERE store = ? AND file = ?"
        self._write(sql, "failed" if error else "completed", error, member.store, member.file)

    def members(self, store: VectorStore | None = None) -> list[Member]:
        """The files of a store, or of all, oldest first."""
        where, values = ("WHERE store = ?", (store.id,)) if store else ("", ())
        return [_member(*row) for row in self._rows(f"SELECT * FROM members {where} ORDER BY created, rowid", *values)]

    def member(self, store: VectorStore, file: str) -> Member | None:
        """A file of a store."""
        rows = self._rows("SELECT * FROM members WHERE store = ? AND file = ?", store.id, file)
        return next((_member(*row) for row in rows), None)

    def count_members(self, store: VectorStore | None = None) -> dict[str, dict[str, tuple[int, int]]]:
        """How many files a store, or each, has, and of how many bytes, by its id and by how far the files are."""
        where, values = ("WHERE store = ?", (store.id,)) if store else ("", ())
        tables = "members JOIN files ON files.id = file"
        sql = f"SELECT store, status, COUNT(*), SUM(bytes) FROM {tables} {where} GROUP BY 1, 2"
        counts: dict[str, dict[str, tuple[int, int]]] = {}
        for id, status, number, size in self._rows(sql, *values):
            counts.setdefault(id, {})[status] = number, size
        return counts

    def is_in_a_store(self, file: UploadedFile) -> bool:
        """Whether any store has a file, in time that does not grow with what they have."""
        return bool(self._rows("SELECT 1 FROM members WHERE file = ? LIMIT 1", file.id))

    def remove_member(self, member: Member) -> None:
        """Take a file out of a store."""
        self._write("DELETE FROM members WHERE store = ? AND file = ?", member.store, member.file)

    def sources(self, store: VectorStore) -> dict[str, tuple[UploadedFile, Member]]:
        """The documents that a store has in the index, by their sources there."""
        done = {member.file: member for member in self.members(store) if member.status == "completed"}
        return {str(self.path(file)): (file, done[file.id]) for file in self.files() if file.id in done}

    def _rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            if self._opened is None and not (self._folder / "uploads.sqlite").exists():
                return []
            return list(self._connection().execute(sql, values))

    def _write(self, sql: str, *values: object) -> None:
        self._write_all([(sql, values)])

    def _write_all(self, statements: Iterable[_Statement]) -> None:
        """Change what is kept, by all of some statements or by none."""
        self._refuse_encrypted()
        with self._lock, self._connection() as connection:
            for sql, values in statements:
                connection.execute(sql, values)

    def _refuse_encrypted(self) -> None:
        if is_encrypted(self._folder.parent):
            raise InvalidArgument(
                "the index is encrypted, and uploads would lie beside it as they came; ingest the files on the server, "
                "by `ragcache ingest`"
            )

    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._opened = sqlite3.connect(self._folder / "uploads.sqlite", check_same_thread=False)
            self._opened.execute("PRAGMA foreign_keys = ON")
            self._opened.execute("PRAGMA secure_delete = ON")
            self._opened.executescript(_SCHEMA)
        return self._opened


def _insertion(member: Member) -> _Statement:
    row = member.store, member.file, member.status, member.error, json.dumps(member.attributes), member.created
    return "INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?, ?, ?)", row


def _store(id: str, name: str, metadata: str, created: int) -> VectorStore:
    return VectorStore(id, name, json.loads(metadata), created)


def _member(store: str, file: str, status: Status, error: str, attributes: str, created: int) -> Member:
    return Member(store, file, status, error, json.loads(attributes), created)
