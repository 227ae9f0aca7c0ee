"""Which chunks one forward encodes, and in which order all of them come."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import TypeVar

from ragcache.encode.protocol import LeftContext
from ragcache.model.lazy import torch

# One long chunk fills the machine by itself; more only delays progress, and what an interrupt loses.
_TOKENS = {"cpu": 512}
_ACCELERATED = 2048
_COPIED = 8  # tokens of left context, copied rather than computed, that weigh as one: bounds memory

_Chunk = TypeVar("_Chunk", bound=Sized)


def capacity(device: "torch.device") -> int:
    """Tokens that one forward encodes on a device."""
    return _TOKENS.get(device.type, _ACCELERATED)


def weight(tokens: int, left: LeftContext) -> int:
    """What a chunk takes of that behind its left context."""
    return tokens + sum(map(len, left.kvs)) // _COPIED


def batches(
    documents: Iterable[Sequence[_Chunk]],
    left: Callable[[_Chunk], LeftContext | None],
    limit: int,
) -> Iterator[list[tuple[_Chunk, LeftContext]]]:
    """Chunks with their left contexts, as many together as weigh no more than `limit`; a heavier one goes alone.

    A chunk whose left context isn't there yet waits, and with it the rest of its document. Documents that were begun go
    on before others begin, so that few left contexts are at work at a time. A chunk is asked for its left context when
    it is taken, and once more where a batch ends in front of it, however long its document is.

    Parameters
    ----------
    documents : iterable of sequences
        Of each document the chunks to encode, in reading order, their `len` being tokens; drawn as they are needed.
    left : callable
        Gives a chunk's left context; None while something that it takes isn't stored.
    limit : int
        From `capacity`.

    Yields
    ------
    list of tuple
        One batch, to be stored before the next is asked for. What can't be made is left out in the end.
    """
    begun: list[deque[_Chunk]] = []
    fresh = map(deque, documents)
    while True:
        batch = _filled(_each(begun, fresh), left, limit)
        begun = [queue for queue in begun if queue]
        if batch:
            yield batch
        elif not begun:
            return
        else:
            for queue in begun:
                queue.popleft()  # nothing more will be stored that it waits for; what stands behind it may not need it


def _each(begun: list[deque[_Chunk]], fresh: Iterator[deque[_Chunk]]) -> Iterator[deque[_Chunk]]:
    """The documents that were begun, then others, each of them begun by that."""
    yield from tuple(begun)
    for queue in fresh:
        begun.append(queue)
        yield queue


def _filled(
    queues: Iterable[deque[_Chunk]],
    left: Callable[[_Chunk], LeftContext | None],
    limit: int,
) -> list[tuple[_Chunk, LeftContext]]:
    """One batch, taken off the queues."""
    batch: list[tuple[_Chunk, LeftContext]] = []
    room = limit
    for queue in queues:
        while room > 0 and queue and (behind := left(queue[0])) is not None:
            room -= weight(len(queue[0]), behind)
            if room < 0 and batch:
                return batch
            batch.append((queue.popleft(), behind))
        if room <= 0:
            break
    return batch
