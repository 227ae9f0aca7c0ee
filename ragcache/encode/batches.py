"""How many chunks one forward encodes."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from ragcache.encode.protocol import LeftContext
from ragcache.lazy import torch

# One long chunk fills the machine by itself; more only delays progress, and what an interrupt loses.
_TOKENS = {"cpu": 512}
_ACCELERATED = 2048
_COPIED = 8  # tokens of left context, copied rather than computed, that weigh as one: bounds memory

_Item = TypeVar("_Item")


def capacity(device: "torch.device") -> int:
    """Tokens that one forward encodes on a device."""
    return _TOKENS.get(device.type, _ACCELERATED)


def weight(tokens: int, left: LeftContext) -> int:
    """What a chunk takes of that behind its left context."""
    return tokens + sum(map(len, left.kvs)) // _COPIED


def batches(items: Iterable[_Item], weigh: Callable[[_Item], int], limit: int) -> Iterator[list[_Item]]:
    """Neighbouring items together, as many as weigh no more than `limit`; a heavier one goes alone."""
    batch: list[_Item] = []
    total = 0
    for item in items:
        size = weigh(item)
        if batch and total + size > limit:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size
    if batch:
        yield batch
