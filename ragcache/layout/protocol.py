"""Axis E: in which order, and at which positions, do the chunks stand?"""

from collections.abc import Callable, Sequence
from typing import Protocol

from ragcache.model.prefill_context import PrefillContext
from ragcache.prompt import Frame, Prompt, Segment

#: Fills a scratch buffer for a prompt, with what the method loads; what is computed over it is charged to the answer.
Look = Callable[[Prompt], PrefillContext]


class Layout(Protocol):
    """Arranges system prefix, chunks and question into a prompt.

    Layouts inherit from it, those of other packages too.
    """

    @property
    def needs(self) -> tuple[str, ...]:
        """Extras that the encoder must have stored; none, unless the layout says so."""
        return ()

    def place(self, frame: Frame, prefix: Segment, chunks: Sequence[Segment], question: str, look: Look) -> Prompt:
        """The prompt, chunks given in the order of retrieval."""
