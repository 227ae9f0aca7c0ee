"""Which chunks were fused with others than those that are their neighbours now (FusionRAG, arXiv 2601.12904).

A chunk's neighbours are found when its KV is made. Of chunks that come one by one, the first has none, the second one,
and so on, whatever comes later; the paper leaves open when they are looked for again. Nothing is loaded to tell: the
keys in front of a chunk are compared with those that its encoder would put there today.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby
from operator import attrgetter

from ragcache.encode import Encoder, LeftContext
from ragcache.index.encoding_context import IndexEncodingContext
from ragcache.index.index import Index, Neighbours
from ragcache.model.buffer import ChunkKV
from ragcache.store import ChunkRow, EncodingRow


@dataclass(frozen=True)
class Outdated:
    """What is to be made anew of an encoding.

    Attributes
    ----------
    chunks : sequence of ChunkRow
        Those of whose KV none stands behind what would stand in front of it today, in reading order.
    keys : mapping of str to sequence of str
        By chunk, KV that stands behind something else: of these, and of those that were made anew since.
    """

    chunks: Sequence[ChunkRow]
    keys: Mapping[str, Sequence[str]]

    @property
    def documents(self) -> list[list[ChunkRow]]:
        """The chunks, by document."""
        return [list(rows) for _, rows in groupby(self.chunks, key=attrgetter("document"))]


def find_outdated(index: Index, encoder: Encoder, neighbours: Neighbours) -> Outdated:
    """Find what of an encoding stands behind other chunks than it would today; what is missing is not looked at.

    Parameters
    ----------
    index : Index
        Whose chunks are compared.
    encoder : Encoder
        One that fuses a chunk with others.
    neighbours : callable
        Gives the ids of the most similar other chunks.
    """
    context = _context(index, encoder, neighbours)
    chunks, others, current = list[ChunkRow](), list[EncodingRow](), set[str]()
    for chunk in index.catalog.all_chunks():
        rows = index.catalog.encodings(chunk.id, encoder.recipe)
        left = encoder.left(chunk.id, context) if rows else None
        if left is None:
            continue
        same = [row.key for row in rows if row.left == left.keys]
        current.update(same)
        others += [row for row in rows if row.left != left.keys]
        if not same:
            chunks.append(chunk)
    keys = defaultdict[str, list[str]](list)
    for row in others:
        if row.key not in current:
            keys[row.chunk].append(row.key)
    return Outdated(chunks, keys)


def _context(index: Index, encoder: Encoder, neighbours: Neighbours) -> IndexEncodingContext:
    """What the index shows to an encoder, but of each KV its key and length only."""
    prefix = index.prefix_segment.token_ids
    system = _outline(prefix, index.prefix_key, "system prefix") if prefix else LeftContext()
    part = cache(partial(_part, index))
    room = index.reader.limit - len(prefix)
    return IndexEncodingContext(encoder.recipe, index.catalog, lambda: system, part, neighbours, room)


def _part(index: Index, chunk: str, recipe: str) -> LeftContext | None:
    rows, known = index.catalog.encodings(chunk, recipe), index.catalog.chunk(chunk)
    return _outline(known.token_ids, rows[0].key, "") if rows and known else None


def _outline(token_ids: tuple[int, ...], key: str, words: str) -> LeftContext:
    return LeftContext((ChunkKV((), 0, token_ids, {}),), (key,), words)
