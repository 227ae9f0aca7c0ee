"""What an index shows to an encoder, and which of its KV no longer holds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING

from ragcache.encode.protocol import Encoder, LeftContext
from ragcache.errors import InvalidArgument
from ragcache.prompt import Segment
from ragcache.store import Catalog, ChunkRow, may_precede

if TYPE_CHECKING:
    from ragcache.model.buffer import ChunkKV

#: Setting: recipes whose KV depends on what stands before a chunk in its document.
STRUCTURAL = "recipes_by_structure"


class Order:
    """A document's chunks in reading order, and how much of it stands before each.

    Parameters
    ----------
    segments : sequence of Segment
        All of its chunks that may stand before each other.
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.segments = segments
        self._starts = list(accumulate(map(len, segments), initial=0))  # tokens before each chunk, then all

    def before(self, place: int, room: int) -> Sequence[Segment]:
        """As much of the end of what stands before a chunk as fits with it into `room` tokens."""
        first = bisect_left(self._starts, self._starts[place + 1] - room)
        return self.segments[min(first, place) : place]


@dataclass(eq=False)
class IndexEncodingContext:
    """`ragcache.encode.EncodingContext` for one encoder at work.

    A document is read when the first of its chunks asks what stands before it, and let go with the last. Before a chunk
    stands only what all may read who may read the chunk itself. What was
    loaded is kept at hand as long as it is used, which `turn` decides: neighbouring chunks share most of their left
    context.

    Attributes
    ----------
    recipe : str
        The encoder's; noted in the catalogue once it asks what stands before a chunk.
    catalog : Catalog
        Knows which chunks a document has.
    system : callable
        Gives the system prefix.
    part : callable
        Gives a chunk's stored KV by a recipe.
    alike : callable or None
        Gives the ids of the most similar other chunks.
    room : int
        Tokens that the model takes behind the system prefix.
    """

    recipe: str
    catalog: Catalog
    system: Callable[[], LeftContext]
    part: Callable[[str, str], LeftContext | None]
    alike: Callable[[str, int], Sequence[str]] | None
    room: int
    _places: dict[str, tuple[Order, int, list[str]]] = field(default_factory=dict)  # place in its document; all there
    _used: dict[tuple[str, str], LeftContext] = field(default_factory=dict)  # since the last turn
    _known: dict[tuple[str, str], LeftContext] = field(default_factory=dict)  # in the turn before

    def prefix(self) -> LeftContext:
        """The system prefix."""
        return self._prefix

    def neighbours(self, chunk: str, count: int) -> Sequence[str]:
        """Ids of the most similar other chunks, most similar first.

        Raises
        ------
        InvalidArgument
            If nobody can say.
        """
        if self.alike is None:
            raise InvalidArgument("fusing a chunk with its neighbours needs their embeddings; ingest through RagCache")
        return self.alike(chunk, count)

    def preceding(self, chunk: str) -> Sequence[Segment]:
        """What stands before a chunk in its own document, in reading order, as much of its end as the model takes."""
        if chunk not in self._places:
            self._note()
            self._read(chunk)
        order, place, names = self._places.get(chunk, (Order(()), 0, [chunk]))
        if chunk == names[-1]:
            for name in names:
                self._places.pop(name, None)
        return order.before(place, self.room) if place else ()

    def load(self, chunk: str, recipe: str) -> LeftContext | None:
        """A chunk's stored KV as part of a left context; None where it has none."""
        name = chunk, recipe
        found = self._used.get(name) or self._known.get(name) or self.part(chunk, recipe)
        if found is not None:
            self._used[name] = found
        return found

    def turn(self) -> None:
        """Let go of what wasn't used since the last turn."""
        self._known, self._used = self._used, {}

    @cached_property
    def _prefix(self) -> LeftContext:
        return self.system()

    def _read(self, chunk: str) -> None:
        """Find a chunk's place in its document, and those of the others there."""
        row = self.catalog.chunk(chunk)
        own = self.catalog.chunks_of(row.document) if row else []
        names = [one.id for one in own]
        for alike in _grouped(own):
            [access] = {one.access for one in alike.values()}
            readable = [one for one in own if one.id in alike or may_precede(one.access, access)]
            order = Order([Segment(one.token_ids, one.text, one.id) for one in readable])
            self._places |= {one.id: (order, place, names) for place, one in enumerate(readable) if one.id in alike}

    def _note(self) -> None:
        """Before anything is stored that a change of the document must make forgotten."""
        noted = self.catalog.setting(STRUCTURAL, [])
        if self.recipe not in noted and self.catalog.writable:
            self.catalog.set_setting(STRUCTURAL, [*noted, self.recipe])


def _grouped(rows: Sequence[ChunkRow]) -> list[dict[str, ChunkRow]]:
    """Chunks by id, those together that may stand before each other and behind the same ones."""
    labels = {row.access for row in rows}
    groups = [{row.id: row for row in rows if row.access == label} for label in labels if may_precede(label, label)]
    return groups + [{row.id: row} for row in rows if not may_precede(row.access, row.access)]


def displaced(catalog: Catalog, document: str, rows: Sequence[ChunkRow]) -> dict[str, list[str]]:
    """What no longer holds once a document is replaced.

    Parameters
    ----------
    catalog : Catalog
        With the document as it was.
    document : str
        Its id.
    rows : sequence of ChunkRow
        Its chunks to come, in reading order.

    Returns
    -------
    dict of str to list of str
        Per recipe that depends on it, the chunks that stay and will have something else before them.
    """
    structural = catalog.setting(STRUCTURAL, [])
    old, new = (
        [(row.id, row.access) for row in of] for of in (catalog.chunks_of(document) if structural else [], rows)
    )
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    moved = sorted({name for name, _ in old[same:]} & {name for name, _ in new})
    return dict.fromkeys(structural, moved) if moved else {}


def lacking_extras(encoder: Encoder, kv: ChunkKV) -> list[str]:
    """What an encoder stores beside K and V that a KV, made by an older version of it, doesn't have."""
    return sorted(set(encoder.extras) - set(kv.extras))
