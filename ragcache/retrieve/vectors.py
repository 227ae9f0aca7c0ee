"""Chunk vectors on disk: one Chroma collection, searched by cosine similarity."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragcache.errors import IndexFormat, IndexMismatch, InvalidArgument, ingest
from ragcache.retrieve.needs import needs
from ragcache.retrieve.reading import Reading

if TYPE_CHECKING:
    from chromadb import ClientAPI, Collection


class Vectors:
    """One named collection in a Chroma folder, created if absent, durable after each call.

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
        self._reading = Reading.open(path, name)
        if self._reading is None:
            _ = self._collection

    @cached_property
    def _client(self) -> "ClientAPI":
        with needs():
            from chromadb import PersistentClient
            from chromadb.config import Settings
        with _damaged(self.path):
            return PersistentClient(self.path, settings=Settings(anonymized_telemetry=False))

    @cached_property
    def _collection(self) -> "Collection":
        client = self._client
        with _refused(f"the collection name {self._name!r} is refused by Chroma"), _damaged(self.path):
            return client.get_or_create_collection(
                self._name, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
            )

    def _read(self) -> Reading | None:
        """The collection without its client, as long as nobody may have written to it."""
        return self._reading if self._reading is not None and self._reading.fresh else None

    def upsert(
        self,
        ids: Sequence[str],
        embeddings: NDArray[np.float32],
        metadatas: Sequence[Mapping[str, str]] | None = None,
    ) -> None:
        """Add vectors, or replace those of known ids.

        Parameters
        ----------
        ids : Sequence[str]
            Unique.
        embeddings : ndarray, (ids, dim)
            L2-normalised.
        metadatas : Sequence[Mapping[str, str]], optional
            One for each id, none of them empty.

        Raises
        ------
        IndexMismatch
            If the collection holds vectors of another size.
        """
        step = self._client.get_max_batch_size()
        for batch in (slice(start, start + step) for start in range(0, len(ids), step)):
            with self._other_size(embeddings.shape[1]):
                self._collection.upsert(
                    ids=list(ids[batch]),
                    embeddings=embeddings[batch],
                    metadatas=None if metadatas is None else [dict(one) for one in metadatas[batch]],
                )

    def delete(self, ids: Sequence[str]) -> None:
        """Remove vectors; unknown ids are passed over."""
        step = self._client.get_max_batch_size()
        for start in range(0, len(ids), step):
            self._collection.delete(ids=list(ids[start : start + step]))

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
        ids, distances = self._nearest(embedding, k)
        found = [(name, 1.0 - distance) for name, distance in zip(ids, distances, strict=True)]
        return sorted(found, key=lambda hit: (-hit[1], hit[0]))

    def _nearest(self, embedding: NDArray[np.float32], k: int) -> tuple[Sequence[str], Sequence[float]]:
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
        if not ids:
            return {}
        reading = self._read()
        found = None if reading is None else reading.get(ids)
        if found is None:
            part = self._collection.get(ids=list(ids), include=["embeddings"])
            found = part["ids"], np.asarray(part["embeddings"]).tolist()
        names, stored = found
        return dict(zip(names, (np.asarray(stored, np.float32) @ embedding).tolist(), strict=True)) if names else {}

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
        stored: dict[str, NDArray[np.float32]] = {}
        step = self._client.get_max_batch_size()
        for start in range(0, len(ids), step):
            part = self._collection.get(ids=list(ids[start : start + step]), include=["embeddings"])
            stored.update(zip(part["ids"], np.asarray(part["embeddings"], dtype=np.float32), strict=True))
        if missing := [name for name in ids if name not in stored]:
            raise IndexFormat(
                f"{self.path} has no vector for {len(missing)} of {len(ids)} chunks, {missing[0]} first; "
                f"run `{ingest(self.path.parent)}`."
            )
        return np.stack([stored[name] for name in ids]) if len(ids) else np.empty((0, 0), dtype=np.float32)

    def ids(self) -> list[str]:
        """All ids, sorted."""
        return sorted(self._collection.get(include=[])["ids"])

    def count(self) -> int:
        """How many vectors there are."""
        reading = self._read()
        return reading.count() if reading is not None else int(self._collection.count())

    def close(self) -> None:
        """Let go of the folder, so that it may be moved or deleted."""
        self._reading = None
        if "_client" in self.__dict__:
            self._client.close()

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
def _damaged(path: Path) -> Iterator[None]:
    from chromadb.errors import InternalError

    try:
        yield
    except InternalError as error:
        raise IndexFormat(
            f"{path} can't be read as a vector store ({error}); remove the index and run `ragcache ingest PATH…` again."
        ) from error
