"""A Chroma collection, read through the bindings that Chroma's client calls: they are imported in a tenth of its time.

An opening sees its own files as they were, so it is of use as long as nobody has changed them since. `mark_of` tells at
once; but Chroma also writes when it opens a folder, which changes nothing: then `state_of` tells.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragcache.retrieve.graph_files import clear_unused, read_database

_Found = TypeVar("_Found")

_PLACE = ("default_tenant", "default_database")
_OPEN_INDICES = 100
_DATABASE = "chroma.sqlite3"
_CHANGES = slice(24, 28)  # of a SQLite file's header: counts its transactions


class Reading:
    """One collection, to be counted and searched; whatever is wrong with it, Chroma's own client has the words for.

    Parameters
    ----------
    path : Path
        Chroma's folder. One that may not be written to is copied, since Chroma opens no other.
    name : str
        An existing collection.
    """

    def __init__(self, path: Path, name: str) -> None:
        import chromadb_rust_bindings as chroma

        self.copied = not os.access(path, os.W_OK) or not os.access(path / _DATABASE, os.W_OK)
        self._copy = tempfile.TemporaryDirectory(prefix="ragcache-") if self.copied else None
        folder = path if self._copy is None else copy_collection(path, Path(self._copy.name) / "vectors")
        database = chroma.SqliteDBConfig(  # as chromadb.config.Settings has it
            url=str(folder / _DATABASE),
            hash_type=chroma.MigrationHash.MD5,
            migration_mode=chroma.MigrationMode.Apply,
        )
        self._bindings: Any = chroma.Bindings(
            allow_reset=False, sqlite_db_config=database, persist_path=str(folder), hnsw_cache_size=_OPEN_INDICES
        )
        self._id = str(self._bindings.get_collection(name, *_PLACE).id)
        self._count: int | None = None

    @classmethod
    def open(cls, path: Path, name: str) -> Self | None:
        """The collection, if there is one that can be read this way."""
        if not (path / _DATABASE).is_file():
            return None
        try:
            return cls(path, name)
        except BaseException as error:  # another version of the bindings, no such collection, a damaged file
            if not is_chromas(error):
                raise
            return None

    def close(self) -> None:
        """Let go of what was copied."""
        self._bindings = None
        if self._copy is not None:
            self._copy.cleanup()

    def count(self) -> int | None:
        """How many vectors there are; None where it fails. Counted once: whoever writes ends an opening."""
        if self._count is None:
            self._count = self._ask(lambda: int(self._bindings.count(self._id, *_PLACE)))
        return self._count

    def query(self, embedding: NDArray[np.float32], k: int) -> tuple[Sequence[str], Sequence[float]] | None:
        """Ids and cosine distances of the `k` nearest; None where it fails."""

        def ask() -> tuple[Sequence[str], Sequence[float]]:
            found = self._bindings.query(self._id, None, [embedding.tolist()], k, None, None, ["distances"], *_PLACE)
            return found.ids[0], found.distances[0]

        return self._ask(ask)

    def ids(self) -> Sequence[str] | None:
        """All ids; None where it fails."""
        return self._ask(lambda: self._bindings.get(self._id, None, None, None, 0, None, [], *_PLACE).ids)

    def get(self, ids: Sequence[str] | None) -> tuple[Sequence[str], Sequence[Sequence[float]]] | None:
        """Those of some ids that are there, or all, with their vectors; None where it fails."""

        def ask() -> tuple[Sequence[str], Sequence[Sequence[float]]]:
            names = None if ids is None else list(ids)
            found = self._bindings.get(self._id, names, None, None, 0, None, ["embeddings"], *_PLACE)
            return found.ids, found.embeddings

        return self._ask(ask)

    def _ask(self, ask: Callable[[], _Found]) -> _Found | None:
        try:
            return ask()
        except BaseException as error:  # vectors of another size, a file that is gone
            if not is_chromas(error):
                raise
            return None


def is_chromas(error: BaseException) -> bool:
    """Whether an error is the library's, whose native code may panic, which is no `Exception` there."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def mark_of(path: Path) -> tuple[int | bytes, ...]:
    """What changes whenever any process writes to Chroma's folder; nothing where there is none."""
    try:
        with (path / _DATABASE).open("rb") as file:
            about = os.fstat(file.fileno())
            return about.st_ino, about.st_size, about.st_mtime_ns, file.read(_CHANGES.stop)[_CHANGES]
    except OSError:
        return ()


def state_of(path: Path) -> str | None:
    """What changes whenever vectors do, though not when a process only opens Chroma's folder; None if it can't be read.

    Every change takes the next number of a queue, and a search graph is of one of them.
    """
    newest = "SELECT max(seq_id) FROM embeddings_queue"
    graphs, names = "SELECT * FROM max_seq_id ORDER BY 1", "SELECT id, name FROM collections ORDER BY 1"
    found = read_database(path, newest, graphs, names)
    return repr((mark_of(path)[:1], found)) if found else None


def stored_ids(path: Path) -> set[str] | None:
    """The ids of all vectors in a Chroma folder, read beside Chroma; None where they can't be read."""
    found = read_database(path, "SELECT embedding_id FROM embeddings")
    return {name for (name,) in found[0]} if found else None


def copy_collection(path: Path, folder: Path) -> Path:
    """Copy Chroma's folder to a new one, its database as of one moment."""
    shutil.copytree(path, folder, ignore=shutil.ignore_patterns(f"{_DATABASE}*"), copy_function=shutil.copyfile)
    folder.chmod(0o700)
    for part in folder.iterdir():
        part.chmod(0o700)
    whole, copy = sqlite3.connect(f"file:{path / _DATABASE}?mode=ro", uri=True), sqlite3.connect(folder / _DATABASE)
    with closing(whole), closing(copy):
        whole.backup(copy)
    clear_unused(folder)
    return folder
