"""Axis B: which of the reused tokens are recomputed?"""

from typing import Protocol

from ragcache.model.lazy import Tensor
from ragcache.model.prefill_context import PrefillContext
from ragcache.prompt import Prompt


class Selector(Protocol):
    """Scores the prompt's tokens; a schedule turns scores and budget into rows.

    Selectors inherit from it, those of other packages too, and get what most of them have in common.

    Attributes
    ----------
    needs : tuple of str
        Extras that the encoder must have stored; none, unless the selector says so.
    query_agnostic : bool
        Whether the scores depend on the context alone: questions over one context then share what is recomputed.
    """

    @property
    def needs(self) -> tuple[str, ...]:
        """Extras that the encoder must have stored."""
        return ()

    @property
    def query_agnostic(self) -> bool:
        """Whether the scores depend on the context alone, whatever is asked; not so, unless the selector says it."""
        return False

    def begin(self, prompt: Prompt) -> "Selector":
        """The selector for this prompt; what can be done without the prompt's KV is started.

        Called before KV is loaded. A selector made of others begins them too.
        """
        return self

    def close(self) -> None:
        """Break off what `begin` has started: nobody asks for scores any more.

        Called on what `begin` gave, once its scores are taken, or its request is given up. A selector made of others
        closes them.
        """
        return

    def scores(self, p: PrefillContext) -> Tensor:
        """One score per slot of the prompt, (slots,) fp32: higher first, -inf never, +inf always.

        Only the scores of selectable slots (cached and inexact) are looked at.
        """
        ...
