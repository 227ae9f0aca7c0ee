"""Each chunk behind what stands before it in its own document."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile

from ragcache.encode.protocol import BaseEncoder, EncodingContext, LeftContext
from ragcache.errors import InvalidArgument
from ragcache.prompt import Segment


@dataclass(frozen=True)
class InDocument(BaseEncoder):
    """A document is prefilled once, behind the system prefix, and its KV sliced into chunks (unpublished, ours).

    A chunk carries its headers, antecedents and definitions along, whether or not they are retrieved with it. Its left
    context is the system prefix and the in-document KV of the chunks before it, so every token is computed once, chunk
    after chunk, and a document that is read whole and in order right behind the prefix is exact as far as `window`
    reaches back to its beginning. A document's first chunk, and one of no document, stands behind the prefix alone.

    Attributes
    ----------
    window : int or None
        Most tokens of the document in front of a chunk: the nearest chunks, in reading order, that fit as a whole. None
        for all that the model takes (tuned here: on short pages 512 and 2048 are alike and 128 loses; the rest bounds
        what a long document costs).

    Raises
    ------
    InvalidArgument
        If `window` is negative.
    """

    window: int | None = 2048

    def __post_init__(self) -> None:
        if self.window is not None and self.window < 0:
            raise InvalidArgument(f"window is {self.window}; give 0 or more tokens, or None for the whole document")

    @property
    def recipe(self) -> str:
        """Name and fields."""
        return f"in-document(window={self.window})"

    def left(self, chunk: str, context: EncodingContext) -> LeftContext | None:
        """Prefix and the chunks before it in its document; None while one of them isn't stored."""
        before = context.preceding(chunk)
        if self.window is not None:
            before = nearest(before, self.window)
        # The nearest is made last: while it is missing, nothing else need be looked up.
        found = takewhile(bool, (context.load(one.chunk or "", self.recipe) for one in reversed(before)))
        parts = [left for left in found if left is not None][::-1]
        if len(parts) < len(before):
            return None
        prefix = context.prefix()
        return LeftContext(
            prefix.kvs + tuple(kv for left in parts for kv in left.kvs),
            prefix.keys + tuple(key for left in parts for key in left.keys),
            f"{prefix.words} + {len(parts)} before it in its document" if parts else prefix.words,
        )


def nearest(before: Sequence[Segment], room: int) -> Sequence[Segment]:
    """As many segments from the end as fit into `room` tokens, in their order; the others are not looked at."""
    fitting = takewhile(lambda total: total <= room, accumulate(map(len, reversed(before))))
    return before[len(before) - sum(1 for _ in fitting) :]
