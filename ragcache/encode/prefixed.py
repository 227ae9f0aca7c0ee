"""Each chunk behind the system prefix."""

from dataclasses import dataclass
from typing import ClassVar

from ragcache.encode.protocol import BaseEncoder, EncodingContext, LeftContext


@dataclass(frozen=True)
class Prefixed(BaseEncoder):
    """The system prefix stands before: CacheClip (2510.10129), APE (2502.05431), FusionRAG (2601.12904).

    The prefix holds the attention sink, so a stitched prompt has one sink, and the first chunk's KV is exact.
    """

    recipe: ClassVar[str] = "prefixed"

    def left(self, chunk: str, context: EncodingContext) -> LeftContext:
        """The system prefix."""
        return context.prefix()
