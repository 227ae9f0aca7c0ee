"""Chunks in the order they were retrieved in, one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass

from ragcache.layout.protocol import Layout, Look
from ragcache.prompt import Frame, Prompt, Segment


@dataclass(frozen=True)
class Retrieved(Layout):
    """Most similar chunk first, positions equal to slots."""

    def place(self, frame: Frame, prefix: Segment, chunks: Sequence[Segment], question: str, look: Look) -> Prompt:
        """Prefix, chunks as given, question."""
        return frame.prompt(chunks, question, prefix=prefix)
