"""Chunks in the order they were retrieved in, one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass

from ragcache.layout.protocol import Look
from ragcache.segments import Prompt, Segment, Template


@dataclass(frozen=True)
class Retrieved:
    """Most similar chunk first, positions equal to slots."""

    def place(
        self, template: Template, prefix: Segment, chunks: Sequence[Segment], question: str, look: Look
    ) -> Prompt:
        """Prefix, chunks as given, question."""
        return template.prompt(chunks, question, prefix=prefix)
