"""Stock transformers with an exact prefix cache."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from transformers import DynamicCache

from ragcache.model.reader import Reader
from ragcache_bench.speed.peers.peer import Parts, common_prefix, joined

# Behind anything cached transformers' attention takes a mask over all keys, which is slower than none: a beginning
# shorter than this share of the prompt would cost more than it saves. With 16 tokens cached, 4,096 took 1.4 times as
# long as with none (docs/benchmarks/latency-qwen2.5-0.5b.json).
LEAST = 1 / 3


@dataclass
class PrefixCache:
    """Keeps the KV of every prompt, and prefills what lies behind the longest beginning it knows, if that is worth it.

    Attributes
    ----------
    reader : Reader
        The model, run with transformers' own attention and cache.
    """

    reader: Reader
    name: str = field(default="prefix cache", init=False)
    remembers: bool = field(default=True, init=False)
    _known: list[tuple[Sequence[int], Any]] = field(default_factory=list, init=False, repr=False)

    def reset(self) -> None:
        """Forget all prompts."""
        self._known.clear()

    def ready(self, parts: Parts) -> None:
        """Nothing: it knows only what was asked."""

    def first_token(self, parts: Parts) -> Tensor:
        """The first token's logits, (vocabulary,)."""
        ids = joined(parts)
        found = [(common_prefix(ids, known), kept) for known, kept in self._known]
        best, kept = max(found, key=lambda pair: pair[0], default=(0, None))
        length = min(best, len(ids) - 1) if best >= LEAST * len(ids) else 0  # the last token is run anyway
        logits, cache = self.reader.stock(ids[length:], _beginning(kept, length) if length else None)
        self._known.append((ids, cache))
        return logits

    def settle(self) -> None:
        """Nothing: the cache is kept as it is."""


def _beginning(cache: Any, length: int) -> Any:
    """The first tokens' KV as a cache of its own; transformers appends by concatenating, not in place."""
    own = DynamicCache()
    for index, layer in enumerate(cache.layers):
        own.update(layer.keys[:, :, :0], layer.values[:, :, :0], index)  # which makes the layer
        own.layers[index].keys, own.layers[index].values = layer.keys[:, :, :length], layer.values[:, :, :length]
    return own
