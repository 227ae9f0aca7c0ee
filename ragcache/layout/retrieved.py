"""Chunks in the order they are given in, one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass

from ragcache.layout.protocol import Layout, Look
from ragcache.prompt import Frame, Prompt, Segment


@dataclass(frozen=True)
class Retrieved(Layout):
    """Chunks as they are given, positions equal to slots; of a search, a document's together, in its own order."""

    def place(self, frame: Frame, prefix: Segment, chunks: Sequence[Segment], question: str, look: Look) -> Prompt:
        """Prefix, chunks as given, question."""
        return frame.prompt(chunks, question, prefix=prefix)
