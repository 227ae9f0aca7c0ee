"""A Chroma collection, read through the bindings that Chroma's client calls: they are imported in a tenth of its time.

Only for a process that has not imported the client, which is one where nobody writes: two openings of a folder don't
see each other's writes at once.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

_PLACE = ("default_tenant", "default_database")
_OPEN_INDICES = 100


class Reading:
    """One collection, to be counted and searched; whatever is wrong with it, Chroma's own client has the words for.

    Parameters
    ----------
    path : Path
        Chroma's folder.
    name : str
        An existing collection.
    """

    def __init__(self, path: Path, name: str) -> None:
        import chromadb_rust_bindings as chroma

        database = chroma.SqliteDBConfig(  # as chromadb.config.Settings has it
            url=str(path / "chroma.sqlite3"),
            hash_type=chroma.MigrationHash.MD5,
            migration_mode=chroma.MigrationMode.Apply,
        )
        self._bindings: Any = chroma.Bindings(
            allow_reset=False, sqlite_db_config=database, persist_path=str(path), hnsw_cache_size=_OPEN_INDICES
        )
        self._id = str(self._bindings.get_collection(name, *_PLACE).id)

    @classmethod
    def open(cls, path: Path, name: str) -> Self | None:
        """The collection, if there is one that can be read this way."""
        if "chromadb" in sys.modules or not (path / "chroma.sqlite3").is_file():
            return None
        try:
            return cls(path, name)
        except Exception:  # another version of the bindings, no such collection, a damaged file
            return None

    @property
    def fresh(self) -> bool:
        """Whether nobody in this process may have written since."""
        return "chromadb" not in sys.modules

    def count(self) -> int:
        """How many vectors there are."""
        return int(self._bindings.count(self._id, *_PLACE))

    def query(self, embedding: NDArray[np.float32], k: int) -> tuple[Sequence[str], Sequence[float]] | None:
        """Ids and cosine distances of the `k` nearest; None where it fails."""
        try:
            found = self._bindings.query(self._id, None, [embedding.tolist()], k, None, None, ["distances"], *_PLACE)
        except Exception:  # vectors of another size, a file that is gone
            return None
        return found.ids[0], found.distances[0]

    def get(self, ids: Sequence[str]) -> tuple[Sequence[str], Sequence[Sequence[float]]] | None:
        """Those of some ids that are there, with their vectors; None where it fails."""
        try:
            found = self._bindings.get(self._id, list(ids), None, None, 0, None, ["embeddings"], *_PLACE)
        except Exception:  # a file that is gone
            return None
        return found.ids, found.embeddings
