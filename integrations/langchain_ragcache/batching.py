"""Several requests to one model, answered at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from functools import partial
from typing import TypeVar

from ragcache import RagCache

_Answer = TypeVar("_Answer")

#: Requests that are answered at once, where nothing else is said: each has a KV buffer of its own meanwhile.
AT_ONCE = 16
_joined: ContextVar[bool] = ContextVar("ragcache_joined", default=False)


def joined() -> bool:
    """Whether the request at hand is one of several that are answered at once."""
    return _joined.get()


def at_once(rag: RagCache, requests: Sequence[Callable[[], _Answer]], most: int | None = None) -> list[_Answer]:
    """What requests give, their forwards joined, `most` of them at a time; one alone runs as ever.

    Each runs in a thread of its own, in a copy of the caller's context, so that LangChain knows whose part it is.
    """
    if len(requests) < 2 or joined():
        return [request() for request in requests]
    size = most or AT_ONCE
    groups = [requests[first : first + size] for first in range(0, len(requests), size)]
    return [one for group in groups for one in rag.reader.run_batch([partial(_in_context(), one) for one in group])]


def _in_context() -> Callable[[Callable[[], _Answer]], _Answer]:
    context = copy_context()
    context.run(_joined.set, True)
    return context.run
