"""Each chunk behind the chunks most like it: FusionRAG's neighbour fusion."""

from dataclasses import dataclass

from ragcache.encode.prefixed import Prefixed
from ragcache.encode.protocol import Anywhere, Encoder, LeftContext, Stored

_STITCHED = "stitched"


@dataclass(frozen=True)
class Fused(Anywhere):
    """Similarity-guided preprocessing, FusionRAG (2601.12904) section 4.1.

    Pass A prefills every chunk behind the system prefix. Pass B prefills it again behind the prefix and the *pass-A* KV
    of its `neighbours` most similar chunks, re-rotated to contiguous positions, and replaces its KV by the result.
    Chunks that are retrieved together have then seen each other.

    Attributes
    ----------
    neighbours : int
        How many (paper: 10; 5 is about as good, 15 worse).
    """

    neighbours: int = 10

    @property
    def recipe(self) -> str:
        """Name and fields."""
        return f"fused(neighbours={self.neighbours})"

    @property
    def before(self) -> Encoder:  # type: ignore[override]
        """Pass A."""
        return Prefixed()

    def left(self, chunk: str, stored: Stored) -> LeftContext | None:
        """Prefix and neighbours' pass-A KV, most similar first; None while a neighbour lacks its pass A."""
        prefix = stored.prefix()
        found = [stored.load(other, Prefixed().recipe) for other in stored.neighbours(chunk, self.neighbours)]
        neighbours = [left for left in found if left is not None]
        if len(neighbours) < len(found):
            return None
        # Stitched neighbours are never what a full prefill would have had there, even when they stand there later.
        stitched = (_STITCHED,) if neighbours else ()
        return LeftContext(
            prefix.kvs + tuple(kv for left in neighbours for kv in left.kvs),
            prefix.keys + stitched + tuple(key for left in neighbours for key in left.keys),
            f"{prefix.words} + {len(neighbours)} neighbours",
        )
