"""A reader for what the compatibility check refuses: stock full prefill, and nothing else."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from torch import Tensor

from ragcache.errors import UnsupportedModel
from ragcache.model import compatibility
from ragcache.model.reader import Reader
from ragcache.model.rope import KeyRotator

_TRIAL = (5, 7, 9)


class FallbackReader(Reader):
    """Serves any decoder by full prefill; one that passes the check is served as by `Reader`.

    Only `stock` runs a refused model. Everything that reads or makes chunk KV raises what the check said.

    Attributes
    ----------
    refused : str
        What the check said; empty where it let the model pass.

    Raises
    ------
    UnsupportedModel
        If the model is refused and its own cache does not carry on a prompt either.
    """

    def _admit(self) -> KeyRotator:
        try:
            return super()._admit()
        except UnsupportedModel as error:
            self.refused = f"{error.reason}; every prompt is prefilled in full"
            self._try_stock(error)
            return KeyRotator(())

    def _try_stock(self, refusal: UnsupportedModel) -> None:
        """Two tokens and one more must be the same as three: so an answer is decoded."""
        whole, _ = self.stock(_TRIAL)
        _, cache = self.stock(_TRIAL[:-1])
        apart, _ = self.stock(_TRIAL[-1:], cache)
        if not (whole - apart).abs().max() <= compatibility.tolerance(self.model.dtype) * whole.abs().max():
            raise UnsupportedModel(
                f"{self.name} cannot be served by full prefill either, since it does not go on from its own cache; "
                "name another --model"
            ) from refusal

    @cached_property
    def bytes_per_token(self) -> int:
        """0 for a refused model, of which nothing is stored."""
        return 0 if self.refused else super().bytes_per_token

    def stock(
        self, token_ids: Sequence[int], cache: Any = None, *, attention: str | None = None, rows: int | None = None
    ) -> tuple[Tensor, Any]:
        """As `Reader.stock`; a refused model's layers may keep another state than K and V."""
        from transformers import DynamicCache

        if cache is None and self.refused:
            cache = DynamicCache(config=self.model.config)
        return super().stock(token_ids, cache, attention=attention, rows=rows)

    @contextmanager
    def _running(self, rows: int) -> Iterator[None]:
        if self.refused:
            raise UnsupportedModel(self.refused, "Use --method full")
        with super()._running(rows):
            yield
