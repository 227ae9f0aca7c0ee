"""Every reused token: full prefill through the recompute path."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ragcache.model.passes import Pass


@dataclass(frozen=True)
class Everything:
    """The reference at the upper end of the dial: r = 1 in every budget."""

    needs: ClassVar[tuple[str, ...]] = ()

    def scores(self, p: Pass) -> Tensor:
        """Always, for every slot."""
        return torch.full((len(p.prompt),), float("inf"))
