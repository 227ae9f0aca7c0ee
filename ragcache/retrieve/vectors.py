"""Chunk vectors on disk: one Chroma collection, searched by cosine similarity."""

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from ragcache.errors import (
    IndexFormat,
    IndexMismatch,
    InvalidArgument,
    RagCacheError,
    StorageFull,
    UnusableIndex,
    ingest,
    remedy,
)
from ragcache.retrieve.graph_files import GraphFiles, clear_unused
from ragcache.retrieve.needs import needs
from ragcache.retrieve.reading import Reading, is_chromas, mark_of, state_of
from ragcache.store import hold_turn

if TYPE_CHECKING:
    from chromadb import ClientAPI, Collection

EXACT = 2000  # chunks: up to so many every vector is compared; beyond, so many are looked at for the best few
_BATCH = 5000  # vectors that are read at once
_OFF_UNIT = 1e-3  # of a vector's length; they are stored with a length of 1
_REFUSED, _LOCKED = (8, 10, 13, 14), (5, 6)  # SQLite's codes: read-only, I/O, full, cannot open; busy, locked


class Vectors:
    """One named collection in a Chroma folder, created if absent, durable after each call.

    What another process writes is seen by the next call. A folder that may not be written to can be searched.

    Parameters
    ----------
    path : Path
        Chroma's folder.
    name : str
        The collection: 3 to 512 of ``a-z A-Z 0-9 . _ -``, with a letter or digit at either end.

    Raises
    ------
    IndexFormat
        If the folder holds something that Chroma can't read.
    InvalidArgument
        If the name is not one that Chroma takes.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self._name = name
        self._reading: Reading | None = None
        self._mark: tuple[int | bytes, ...] | None = None
        self._state: str | None = None
        self._graph = GraphFiles(path)
        self._written: str | None = None  # the state behind which the client knows all
        with guard(path), self._lock():
            if self._read() is None:
                _ = self._collection

    @cached_property
    def _client(self) -> "ClientAPI":
        with needs():
            from chromadb import PersistentClient
            from chromadb.config import Settings
        with guard(self.path):
            client = PersistentClient(self.path, settings=Settings(anonymized_telemetry=False))
        self._written = state_of(self.path)  # its graph is read when it is first used
        return client

    @property
    def _collection(self) -> "Collection":
        client = self._client
        with guard(self.path), _refused(f"the collection name {self._name!r} is refused by Chroma"):
            return client.get_or_create_collection(
                self._name, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
            )

    def _read(self) -> Reading | None:
        """The collection without its client, opened again when anybody has changed it."""
        mark = mark_of(self.path)
        if mark == self._mark:
            return self._reading
        state = state_of(self.path)
        if self._reading is None or state is None or state != self._state:
            self._close_reading()
            if not mark:  # deleted under us: the client has files that have no name any more
                self._close_client()
            self._reading = Reading.open(self.path, self._name)
            if self._reading is None or not self._reading.copied:  # opening has written, in our turn
                mark, state = mark_of(self.path), state_of(self.path)
        self._mark, self._state = mark, state
        return self._reading

    def _close_reading(self) -> None:
        if self._reading is not None:
            self._reading.close()
        self._reading = self._mark = None

    @contextmanager
    def _writing(self) -> Iterator["Collection"]:
        """The collection, for one process at a time; a client that another has overtaken is opened again.

        Chroma's client keeps a search graph of its own, and would mix it with what another has written meanwhile.
        """
        self._close_reading()
        with guard(self.path), self._turn():
            if self._written is None or self._written != state_of(self.path):
                self._close_client()
            self._graph.forget()
            try:
                yield self._collection
            finally:
                self._written = state_of(self.path)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Use the collection while no other process does, its graph's checksums checked before and recorded behind.

        Asking counts as writing: Chroma may write its graph then, and there is no collection while it is compacted.
        """
        with self._lock() as writable:
            self._graph.check()
            try:
                yield
            finally:
                if writable:
                    clear_unused(self.path)
                    self._graph.record()

    @contextmanager
    def _lock(self) -> Iterator[bool]:
        """Wait until no other process has the folder open for work; says whether this one may write to it.

        Opening needs it, too: Chroma then looks for changes that were not finished, and undoes another's.
        """
        lock = self.path.with_name(f"{self.path.name}.lock")
        writable = os.access(lock.parent, os.W_OK) and (not self.path.exists() or os.access(self.path, os.W_OK))
        with hold_turn(lock) if writable else nullcontext():
            yield writable

    def upsert(self, ids: Sequence[str], embeddings: NDArray[np.float32]) -> None:
        """Add vectors, or replace those of known ids.

        Parameters
        ----------
        ids : Sequence[str]
            Unique.
        embeddings : ndarray, (ids, dim)
            L2-normalised.

        Raises
        ------
        IndexMismatch
            If the collection holds vectors of another size.
        """
        if not len(ids):
            return
        for batch in self._batches(len(ids)):
            with self._writing() as collection, self._other_size(embeddings.shape[1]):
                collection.upsert(ids=list(ids[batch]), embeddings=embeddings[batch])

    def delete(self, ids: Sequence[str]) -> None:
        """Remove vectors; unknown ids are passed over."""
        if not len(ids):
            return
        for batch in self._batches(len(ids)):
            with self._writing() as collection:
                collection.delete(ids=list(ids[batch]))

    def _batches(self, count: int) -> list[slice]:
        """So many of something, in parts that Chroma takes at once."""
        with guard(self.path), self._lock():
            step = self._client.get_max_batch_size()
        return [slice(start, start + step) for start in range(0, count, step)]

    def query(self, embedding: NDArray[np.float32], k: int) -> list[tuple[str, float]]:
        """Find the `k` most similar vectors.

        Parameters
        ----------
        embedding : ndarray, (dim,)
            L2-normalised.
        k : int
            How many; fewer come back from a smaller collection.

        Returns
        -------
        list[tuple[str, float]]
            Id and cosine similarity, best first, ties by id.

        Raises
        ------
        IndexMismatch
            If the collection holds vectors of another size.
        """
        if k < 1:
            return []
        total = self.count()
        wanted = min(max(k, EXACT), total)
        found = dict(zip(*self._nearest(embedding, wanted), strict=True)) if wanted else {}
        similar = {name: 1.0 - distance for name, distance in found.items()}
        if len(similar) < wanted <= EXACT:  # Chroma's graph did not lead to all of them
            similar = self.similarities(embedding, self.ids())
        return sorted(similar.items(), key=lambda hit: (-hit[1], hit[0]))[:k]

    def _nearest(self, embedding: NDArray[np.float32], k: int) -> tuple[Sequence[str], Sequence[float]]:
        with guard(self.path), self._turn():
            reading = self._read()
            if reading is not None and (found := reading.query(embedding, k)) is not None:
                return found
            with self._other_size(len(embedding)):
                result = self._collection.query(query_embeddings=[embedding], n_results=k, include=["distances"])
        return result["ids"][0], (result["distances"] or [[]])[0]

    def similarities(self, embedding: NDArray[np.float32], ids: Sequence[str]) -> dict[str, float]:
        """Cosine similarities of some chunks, by id; what has no vector is left out.

        Parameters
        ----------
        embedding : ndarray, (dim,)
            L2-normalised.
        ids : Sequence[str]
            Of chunks.
        """
        return {name: float(vector @ embedding) for name, vector in self.stored(ids).items()}

    def _vectors_of(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Those of some vectors that are there, by id."""
        with guard(self.path), self._turn():
            reading = self._read()
            found = None if reading is None else reading.get(ids)
            part = self._collection.get(ids=list(ids), include=["embeddings"]) if found is None else {}
        if found is None:
            found = part["ids"], np.asarray(part["embeddings"]).tolist()
        return dict(zip(found[0], np.asarray(found[1], dtype=np.float32), strict=True)) if found[0] else {}

    def stored(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Those of any number of vectors that are there, by id."""
        stored: dict[str, NDArray[np.float32]] = {}
        for start in range(0, len(ids), _BATCH):
            stored.update(self._vectors_of(ids[start : start + _BATCH]))
        return stored

    def embeddings(self, ids: Sequence[str]) -> NDArray[np.float32]:
        """Read vectors back, in the order of `ids`.

        Returns
        -------
        ndarray, (ids, dim)
            float32, equal to what went in up to the last bit (Chroma normalises once more).

        Raises
        ------
        IndexFormat
            If one of them is not there.
        """
        stored = self.stored(ids)
        if missing := [name for name in ids if name not in stored]:
            raise IndexFormat(
                f"{self.path} has no vector for {len(missing)} of {len(ids)} chunks, {missing[0]} first; "
                f"run `{ingest(self.path.parent)}`."
            )
        return np.stack([stored[name] for name in ids]) if len(ids) else np.empty((0, 0), dtype=np.float32)

    def find_damaged(self, ids: Sequence[str]) -> list[str]:
        """Those of some vectors that are no unit vectors any more; one that still is, but another, is not found."""
        found = list[str]()
        for start in range(0, len(ids), _BATCH):
            stored = self._vectors_of(ids[start : start + _BATCH])
            lengths = {name: float(np.linalg.norm(vector)) for name, vector in stored.items()}
            found += [name for name in ids[start : start + _BATCH] if not abs(lengths.get(name, 0) - 1) < _OFF_UNIT]
        return found

    def check_file(self) -> list[str]:
        """What SQLite finds wrong with Chroma's database as a whole."""
        file = self.path / "chroma.sqlite3"
        try:
            uri = f"file:{quote(str(file.absolute()))}?mode=ro"
            with self._lock(), closing(sqlite3.connect(uri, uri=True)) as database:
                found = [str(text) for (text,) in database.execute("PRAGMA integrity_check(10)")]
        except sqlite3.Error as error:
            found = [str(error)]
        return [] if found == ["ok"] else [f"{file}: {text}" for text in found]

    def ids(self) -> list[str]:
        """All ids, sorted."""
        with guard(self.path), self._turn():
            reading = self._read()
            known = None if reading is None else reading.ids()
            return sorted(self._collection.get(include=[])["ids"] if known is None else known)

    def count(self) -> int:
        """How many vectors there are."""
        with guard(self.path), self._turn():
            reading = self._read()
            known = None if reading is None else reading.count()
            return int(self._collection.count()) if known is None else known

    def compact(self) -> None:
        """Write all vectors anew, so that nothing of those that were removed is left in Chroma's files.

        Killed halfway it leaves the vectors where they were, or none; the next ingestion makes those that are missing.
        This belongs in a process that never held the removed ones: Chroma writes whole buffers, and may not clear what
        they held before.
        """
        with self._writing() as collection:  # in one turn, or what another process adds meanwhile would be lost
            kept = collection.get(include=["embeddings"])
            ids, embeddings = kept["ids"], np.asarray(kept["embeddings"], dtype=np.float32)
            self._client.delete_collection(self._name)
            step = self._client.get_max_batch_size()
            for batch in (slice(start, start + step) for start in range(0, len(ids), step)):
                self._collection.upsert(ids=ids[batch], embeddings=embeddings[batch])
            self._close_client()
            self._shrink()

    def _shrink(self) -> None:
        """Let nothing of a deleted collection stand in the database."""
        database = sqlite3.connect(self.path / "chroma.sqlite3", isolation_level=None)
        with closing(database):
            gone = "SELECT id FROM collections"
            database.execute("PRAGMA secure_delete = ON")
            database.execute(f"DELETE FROM embeddings_queue WHERE substr(topic, -36) NOT IN ({gone})")
            database.execute("VACUUM")

    def close(self) -> None:
        """Let go of the folder, so that it may be moved or deleted."""
        self._close_reading()
        self._close_client()

    def _close_client(self) -> None:
        if "_client" in self.__dict__:
            self.__dict__.pop("_client").close()

    @contextmanager
    def _other_size(self, size: int) -> Iterator[None]:
        from chromadb.errors import InvalidArgumentError, InvalidDimensionException

        try:
            yield
        except (InvalidArgumentError, InvalidDimensionException) as error:
            raise IndexMismatch(
                f"{self.path} holds vectors of another size than {size}, so it was made with another embedder; "
                "open it with that one, or ingest into a new --index."
            ) from error


@contextmanager
def _refused(what: str) -> Iterator[None]:
    from chromadb.errors import InvalidArgumentError

    try:
        yield
    except (InvalidArgumentError, ValueError) as error:
        raise InvalidArgument(f"{what}; take 3 to 512 of a-z, A-Z, 0-9, '.', '_' and '-'.") from error


@contextmanager
def guard(path: Path) -> Iterator[None]:
    """Say in our words what Chroma says of a folder.

    Raises
    ------
    StorageFull, UnusableIndex, IndexFormat
        If the disk refused, another process had it locked, or it is damaged.
    """
    try:
        yield
    except RagCacheError:
        raise
    except BaseException as error:
        if not is_chromas(error) or isinstance(error, ImportError):
            raise
        code = re.search(r"\(code: (\d+)\)", str(error))
        kind = int(code[1]) & 0xFF if code else 0
        if kind in _REFUSED or isinstance(error, OSError):
            raise StorageFull(f"the disk refused {path} ({error}); {remedy(error, kind)}.") from error
        if kind in _LOCKED or "is locked" in str(error):
            raise UnusableIndex(f"{path} is in use by another process ({error}); repeat the command.") from error
        raise IndexFormat(
            f"{path} can't be read as a vector store ({error}); delete that folder and run `{ingest(path.parent)}`, "
            "which makes it anew."
        ) from error
