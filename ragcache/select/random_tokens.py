"""Random tokens: the control that every selector must beat at its own budget."""

import zlib
from dataclasses import dataclass

from ragcache.model.lazy import Tensor, torch
from ragcache.model.prefill_context import PrefillContext
from ragcache.select.protocol import Selector


@dataclass(frozen=True)
class RandomTokens(Selector):
    """Uniformly random tokens, the same ones for the same prompt and seed.

    Attributes
    ----------
    seed : int
        Benchmarks average over several.
    """

    seed: int = 0

    def scores(self, p: PrefillContext) -> Tensor:
        """Uniform noise."""
        # A generator heeds 32 bits of its seed, so this one's seed goes into them too.
        generator = torch.Generator().manual_seed(zlib.crc32(str(p.prompt.token_ids).encode(), self.seed))
        return torch.rand(len(p.prompt), generator=generator)
