"""The tokens whose keys change most when the chunk is read in this prompt."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ragcache.model.passes import Pass
from ragcache.model.plan import Slots, StopForward


@dataclass(frozen=True)
class KeyDeviation:
    """CacheBlend's high-KV-deviation tokens (2405.16444), on keys as in the study 2603.20218.

    The context runs through the first layers until layer `layer` has made its keys; the score of token t is
    (1/H) sum over heads of ||K_new[t] - K_cached[t]||^2. The forward stops there (the layer's attention and MLP never
    run), what it wrote stays (layers up to `layer` are fresh for every token, as in the paper), and the selective
    forward starts over. The pass is charged: layer + 1 layers of all selectable tokens.

    Attributes
    ----------
    layer : int
        Where deviation is measured (paper: 1, the first layer whose keys depend on the context).
    """

    layer: int = 1
    needs: ClassVar[tuple[str, ...]] = ()

    def scores(self, p: Pass) -> Tensor:
        """Squared key deviation at the layer."""
        scores = torch.full((len(p.prompt),), float("-inf"))
        in_context = torch.arange(len(p.prompt)) < p.context_end
        rows = Slots(((p.selectable | p.fresh) & in_context).nonzero().squeeze(1))  # (rows,)
        if not bool(p.selectable.any()):
            return scores

        def measure(layer: int, key: Tensor, value: Tensor) -> None:
            if layer < self.layer:
                return
            slots = Slots(rows.to(key.device))
            moved = key.float() - p.buffer.keys_at(layer, slots).float()  # (kv_heads, rows, head_dim)
            scores[rows] = moved.pow(2).sum(-1).mean(0).cpu()
            p.buffer.write(layer, slots, key, value)
            raise StopForward

        p.forward(rows, on_update=measure)
        return scores
