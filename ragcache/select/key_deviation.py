"""The tokens whose keys or values change most when the chunk is read in this prompt."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from ragcache.errors import InvalidArgument
from ragcache.model.deviation import moved
from ragcache.model.lazy import Tensor, torch
from ragcache.model.plan import Slots, StopForward
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.upload import upload
from ragcache.select.protocol import Selector


@dataclass(frozen=True)
class KeyDeviation(Selector):
    """CacheBlend's high-KV-deviation tokens (2405.16444): on keys as in the study 2603.20218, on values as released.

    The context runs through the first layers until layer `layer` has made its keys and values; the score of token t is

    - "key": (1/H) sum over kv heads of ||K_new[t] - K_cached[t]||^2, the study's and, up to 1/H, LMCache's
    - "value": sum over kv heads and dimensions of (V_new[t] - V_cached[t])^2, as CacheBlend's own code has it

    The forward stops there (the layer's attention and MLP never run), what it wrote stays (layers up to `layer` are
    fresh for every token, as in the paper), and the selective forward starts over. The pass is charged: layer + 1
    layers of all selectable tokens, in which the tokens that are chosen cost nothing more. The question is always
    computed, whatever deviates: the released code lets its tokens compete, and keeps the last one only.

    Attributes
    ----------
    layer : int
        Where deviation is measured (paper: 1, the first layer whose keys depend on the context).
    of : {"key", "value"}
        What is compared.

    Raises
    ------
    InvalidArgument
        When scores are taken, if the model has no such layer.
    """

    layer: int = 1
    of: Literal["key", "value"] = "key"
    query_agnostic: ClassVar[bool] = True

    def scores(self, p: PrefillContext) -> Tensor:
        """Squared deviation at the layer."""
        scores = torch.full((len(p.prompt),), float("-inf"))
        in_context = torch.arange(len(p.prompt)) < p.context_end
        rows = Slots(((p.selectable | p.fresh) & in_context).nonzero().squeeze(1))  # (rows,)
        if not bool(p.selectable.any()):
            return scores
        if not 0 <= self.layer < p.reader.kv_layers:
            raise InvalidArgument(
                f"deviation is to be measured at layer {self.layer}, but {p.reader.name} has layers 0 to "
                f"{p.reader.kv_layers - 1} that make keys; name one of them, e.g. KeyDeviation(layer=1)"
            )

        def measure(layer: int, key: Tensor, value: Tensor) -> None:
            if layer < self.layer:
                return
            slots = Slots(upload(rows, key.device))
            scores[rows] = self._moved(p, slots, key, value).cpu()
            p.buffer.write(layer, slots, key, value)
            raise StopForward

        p.forward(rows, on_update=measure)
        return scores

    def _moved(self, p: PrefillContext, slots: Slots, key: Tensor, value: Tensor) -> Tensor:
        """How far the rows moved, (rows,); `key` and `value` are (kv_heads, rows, head_dim)."""
        if self.of == "key":
            return moved(key, p.buffer.keys_at(self.layer, slots))
        cached: Tensor = p.buffer.layers[self.layer].values[0].index_select(1, slots)  # (kv_heads, rows, head_dim)
        return (value.float() - cached.float()).pow(2).sum((0, 2))
