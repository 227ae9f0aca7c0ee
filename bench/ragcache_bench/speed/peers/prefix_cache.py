"""Stock transformers with an exact prefix cache."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from torch import Tensor
from transformers import DynamicCache

from ragcache.model.reader import Reader
from ragcache_bench.speed.peers.peer import Parts, common_prefix, distinct_tokens, joined

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
    limit : int, optional
        Most bytes of KV, where what prompts begin alike with counts once; what was used longest ago goes first, from a
        prompt's end on. Without it everything is kept.
    least : float
        Share of a prompt from which on a beginning is of use.
    """

    reader: Reader
    limit: int | None = None
    least: float = LEAST
    name: str = field(default="prefix cache", init=False)
    remembers: bool = field(default=True, init=False)
    _known: list[tuple[Sequence[int], Any]] = field(default_factory=list, init=False, repr=False)

    def reset(self) -> None:
        """Forget all prompts."""
        self._known.clear()

    def ready(self, parts: Parts) -> None:
        """Nothing: it knows only what was asked."""

    @property
    def held(self) -> int:
        """Bytes of KV."""
        return distinct_tokens(ids for ids, _ in self._known) * self.reader.bytes_per_token

    def first_token(self, parts: Parts) -> Tensor:
        """The first token's logits, (vocabulary,)."""
        ids = joined(parts)
        lengths = [common_prefix(ids, known) for known, _ in self._known]
        best = max(range(len(lengths)), key=lengths.__getitem__, default=None)
        length = 0 if best is None else min(lengths[best], len(ids) - 1)  # the last token is run anyway
        found = None
        if best is not None and length >= max(1, self.least * len(ids)):
            found = _beginning(self._known[best][1], length)
        logits, cache = self.reader.stock(ids if found is None else ids[length:], found)
        self._known.append((ids, cache))
        return logits

    def settle(self) -> None:
        """Let go of what is over the limit."""
        while self.limit is not None and (over := self.held - self.limit) > 0:
            (ids, cache), *later = self._known
            own = len(ids) - max((common_prefix(ids, known) for known, _ in later), default=0)
            gone = ceil(over / self.reader.bytes_per_token)
            if gone < own:
                self._known[0] = ids[: len(ids) - gone], _beginning(cache, len(ids) - gone)
            else:
                self._known.pop(0)


def _beginning(cache: Any, length: int) -> Any:
    """The first tokens' KV as a cache of its own; transformers appends by concatenating, not in place."""
    own = DynamicCache()
    for index, layer in enumerate(cache.layers):
        own.update(layer.keys[:, :, :0], layer.values[:, :, :0], index)  # which makes the layer
        own.layers[index].keys, own.layers[index].values = layer.keys[:, :, :length], layer.values[:, :, :length]
    return own
