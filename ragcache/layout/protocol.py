"""Axis E: in which order, and at which positions, do the chunks stand?"""

from collections.abc import Sequence
from typing import Protocol

from ragcache.segments import Prompt, Segment, Template


class Layout(Protocol):
    """Arranges system prefix, chunks and question into a prompt."""

    def place(self, template: Template, prefix: Segment, chunks: Sequence[Segment], question: str) -> Prompt:
        """The prompt, chunks given in the order of retrieval."""
