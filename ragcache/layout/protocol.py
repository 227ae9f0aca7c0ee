"""Axis E: in which order, and at which positions, do the chunks stand?"""

from collections.abc import Sequence
from typing import Protocol

from ragcache.model.prefill_context import PrefillContext
from ragcache.prompt import Frame, Prompt, Segment


class Look(Protocol):
    """What a layout may look up before there is a prompt."""

    def __call__(self, prompt: Prompt) -> PrefillContext:
        """A scratch buffer for a prompt, with what the method loads; computing over it is charged to the answer."""

    def find_path(self, chunks: Sequence[Segment]) -> Sequence[str]:
        """Ids of some of these chunks in the order of the longest prefix that the store has exact KV of."""

    def link_tokens(self, place: int) -> Segment:
        """The link tokens behind the prompt's chunk at `place`, from 0; empty where the model was tuned with none."""


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
