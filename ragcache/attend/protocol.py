"""Axis D: how do rows attend to reused keys?"""

from typing import Protocol

from ragcache.model.lazy import Tensor, torch
from ragcache.model.plan import ScoreModFunction, Slots
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.upload import upload


class ScoreMod(Protocol):
    """Shapes the attention logits of every row that is computed, in the final forward and in every step of decoding.

    Score mods inherit from it, those of other packages too.
    """

    @property
    def needs(self) -> tuple[str, ...]:
        """Extras that the encoder must have stored; none, unless the score mod says so."""
        return ()

    def score_mod(self, p: PrefillContext, rows: Slots) -> ScoreModFunction | None:
        """How logits are shaped; None where nothing is.

        Only keys that are reused in a layer may be shaped, so that r = 1 is full prefill. Keys behind the prompt are
        those of the answer.

        Parameters
        ----------
        p : PrefillContext
            The prompt being answered.
        rows : Slots
            Context slots that will be recomputed.
        """


def reused(p: PrefillContext, rows: Slots) -> Tensor:
    """Which keys count as reused, (layers, slots) bool; it follows the forward that writes them.

    What is recomputed or exact is true, and exempt (PSR's rule, 2603.20218). Where a method recomputes nothing, a chunk
    that happens to be exact stands among the others as one of them (APE, 2502.05431): exempt, it would outweigh them.
    """
    if len(rows) or not bool(p.selectable.any()):
        return p.stale
    chunks = p.stale.clone()
    for segment in p.prompt.chunks():
        if segment in p.placed:
            chunks[:, p.span(segment)] = True
    return chunks


class KeyIndices:
    """Where masks over keys are set, on the model's device: each is uploaded once, whatever layers and tokens ask."""

    def __init__(self) -> None:
        self._found: dict[bytes, Tensor] = {}

    def of(self, mask: Tensor, device: "torch.device") -> Tensor:
        """Indices, (keys,), of a mask on the CPU, (slots,) bool."""
        name = mask.numpy().tobytes()
        if name not in self._found:
            self._found[name] = upload(mask.nonzero().squeeze(1), device)
        return self._found[name]
