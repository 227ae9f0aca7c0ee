"""Which chunks of an index are most like each other."""

from collections.abc import Sequence

from ragcache.index import Index
from ragcache.retrieve import Vectors, neighbours


class SimilarChunks:
    """Most similar other chunks by exact search over the stored embeddings, computed once."""

    def __init__(self, index: Index, vectors: Vectors) -> None:
        self._index = index
        self._vectors = vectors
        self._count = 0
        self._found: dict[str, list[str]] = {}

    def __call__(self, chunk: str, count: int) -> Sequence[str]:
        """Ids of a chunk's `count` most similar others, most similar first."""
        if self._count != count:
            self._search(count)
        return self._found[chunk]

    def _search(self, count: int) -> None:
        chunks = self._index.catalog.all_chunks()
        names = [chunk.id for chunk in chunks]
        found = neighbours(self._vectors.embeddings(names), names, [chunk.text for chunk in chunks], count)
        self._found = {name: [names[i] for i in row] for name, row in zip(names, found, strict=True)}
        self._count = count
