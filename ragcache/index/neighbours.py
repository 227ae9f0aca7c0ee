"""The chunks most similar to each chunk: what FusionRAG fuses it with (arXiv 2601.12904)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragcache.index.index import Index
from ragcache.retrieve import Vectors
from ragcache.store import Access, may_precede

_BLOCK = 1024  # rows per matrix product: 8 bytes x 1024 x chunks of scores at a time
_DECIMALS = 6  # what fp32 storage keeps: equal texts that were embedded in different batches tie


def find_neighbours(
    embeddings: NDArray[np.float32], keys: Sequence[str], texts: Sequence[str], n: int, access: Sequence[Access] = ()
) -> list[list[int]]:
    """Find the `n` most similar other chunks of every chunk, by exact search.

    The result depends on the set of chunks only, not on their order: ties are broken by key.

    Parameters
    ----------
    embeddings : ndarray, (chunks, dim)
        L2-normalised, so that a dot product is the cosine similarity.
    keys : Sequence[str]
        What identifies each chunk.
    texts : Sequence[str]
        The chunks' texts; a chunk is never its own neighbour, nor is one with an equal text.
    n : int
        Neighbours per chunk.
    access : sequence of Access
        Who may read each chunk; everybody, if empty. A chunk's neighbours may be read by all who may read it.

    Returns
    -------
    list[list[int]]
        Indices into `keys`, most similar first; fewer than `n` where fewer chunks differ.
    """
    if not len(keys) or n < 1:
        return [[] for _ in keys]
    order = np.array(sorted(range(len(keys)), key=keys.__getitem__))
    sorted_by_key = np.asarray(embeddings, dtype=np.float64)[order]
    numbers = {text: number for number, text in enumerate(texts)}
    group = np.array([numbers[text] for text in texts])[order]  # (chunks,); equal texts, equal number
    labels = list(dict.fromkeys(access)) or [None]
    label = np.array([labels.index(one) for one in access or [None] * len(keys)])[order]  # (chunks,)
    readable = np.array([[may_precede(other, own) for other in labels] for own in labels])  # (labels, labels)
    found: list[list[int]] = [[] for _ in keys]
    for start in range(0, len(keys), _BLOCK):
        rows = slice(start, start + _BLOCK)
        scores = np.round(sorted_by_key[rows] @ sorted_by_key.T, _DECIMALS)  # (block, chunks)
        scores[group[rows, None] == group[None, :]] = -np.inf
        scores[~readable[label[rows]][:, label]] = -np.inf
        for row, best in zip(order[rows], _top(scores, n), strict=True):
            found[row] = order[best].tolist()
    return found


class SimilarChunks:
    """Most similar other chunks by exact search over the stored embeddings, computed once."""

    def __init__(self, index: Index, vectors: Vectors) -> None:
        self._index = index
        self._vectors = vectors
        self._count = 0
        self._found: dict[str, list[str]] = {}

    def __call__(self, chunk: str, count: int) -> Sequence[str]:
        """Ids of a chunk's `count` most similar others, most similar first; none of one that came since the search."""
        if self._count != count:
            self._search(count)
        return self._found.get(chunk, [])

    def _search(self, count: int) -> None:
        known = self._index.catalog.all_chunks()
        stored = self._vectors.stored([chunk.id for chunk in known])
        chunks = [chunk for chunk in known if chunk.id in stored]  # others came since, from another process
        names = [chunk.id for chunk in chunks]
        texts, access = [chunk.text for chunk in chunks], [chunk.access for chunk in chunks]
        embeddings = np.array([stored[name] for name in names], dtype=np.float32)  # (chunks, dim)
        found = find_neighbours(embeddings, names, texts, count, access)
        self._found = {name: [names[i] for i in row] for name, row in zip(names, found, strict=True)}
        self._count = count


def _top(scores: NDArray[np.float64], n: int) -> list[NDArray[np.intp]]:
    """Columns of each row's `n` highest finite scores, highest first, the left one of equals first."""
    n = min(n, scores.shape[1])
    least = -np.partition(-scores, n - 1, axis=1)[:, n - 1]  # (block,)
    best = []
    for row, low in zip(scores, least, strict=True):
        columns = np.flatnonzero((row >= low) & (row > -np.inf))
        best.append(columns[np.argsort(-row[columns], kind="stable")[:n]])
    return best
