"""Each chunk by itself, at positions 0, 1, …"""

from dataclasses import dataclass
from typing import ClassVar

from ragcache.encode.protocol import BaseEncoder, EncodingContext, LeftContext


@dataclass(frozen=True)
class Alone(BaseEncoder):
    """No left context at all: PromptCache's naive reuse (2311.04934), CacheBlend (2405.16444), EPIC (2410.15332).

    Every chunk then carries an attention sink of its own and has seen no other chunk.
    """

    recipe: ClassVar[str] = "alone"

    def left(self, chunk: str, context: EncodingContext) -> LeftContext:
        """Nothing."""
        return LeftContext()
