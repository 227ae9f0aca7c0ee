"""The chunks that the store has an exact prefix of in front, if the caller allows it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ragcache.layout.protocol import Layout, Look
from ragcache.prompt import Frame, Prompt, Segment


@dataclass(frozen=True)
class LongestPath(Layout):
    """The order of chunks that reuses the longest stored prefix: CacheWeaver (2606.19667), there greedily.

    RAGCache (2404.12457) leaves documents as they were retrieved, and so does this unless it is told otherwise: another
    order may give another answer, if the same one as a full prefill of that order. Unfit for chunks whose order means
    something: steps, events, corrections of one another.

    Attributes
    ----------
    reorder : bool
        Whether chunks may stand in another order: those of the longest stored path first, then the others as retrieved
        (paper: False).
    """

    reorder: bool = field(default=False, metadata={"tune": (False,)})  # the user's to allow

    def place(self, frame: Frame, prefix: Segment, chunks: Sequence[Segment], question: str, look: Look) -> Prompt:
        """Prefix, the chunks of the path, the others as given, question."""
        rest = list(chunks)
        path = look.find_path(chunks) if self.reorder else []
        first = [rest.pop([one.chunk for one in rest].index(chunk)) for chunk in path]
        return frame.prompt([*first, *rest], question, prefix=prefix)
