"""Requests that come together in an event loop, answered at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from ragcache import Reader

#: Requests that are answered at once: each has a KV buffer of its own meanwhile.
AT_ONCE = 16

#: Makes an answer; told whether others are made at the same time.
Request = Callable[[bool], Any]


class Gathered:
    """What coroutines ask for in one turn of their event loop is answered in one thread, the forwards joined.

    `asyncio.gather` starts all of its coroutines in one turn, and so do LlamaIndex's own workers.

    Parameters
    ----------
    reader : Reader
        Whose forwards are joined.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._waiting: dict[asyncio.AbstractEventLoop, list[tuple[Request, asyncio.Future[Any]]]] = {}
        self._running: set[asyncio.Task[None]] = set()

    def __deepcopy__(self, memo: object) -> Gathered:
        """Itself: frameworks copy what holds it, and there is one model."""
        return self

    async def ask(self, request: Request) -> Any:
        """What a request gives; whatever it raises."""
        loop = asyncio.get_running_loop()
        if loop not in self._waiting:
            self._waiting[loop] = []
            loop.call_soon(self._begin, loop)  # behind all that are ready now
        answer: asyncio.Future[Any] = loop.create_future()
        self._waiting[loop].append((request, answer))
        return await answer

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        task = loop.create_task(self._answered(self._waiting.pop(loop)))
        self._running.add(task)  # or nobody would hold on to it
        task.add_done_callback(self._running.discard)

    async def _answered(self, asked: list[tuple[Request, asyncio.Future[Any]]]) -> None:
        try:
            for first in range(0, len(asked), AT_ONCE):
                group = [one for one in asked[first : first + AT_ONCE] if not one[1].cancelled()]
                made = await asyncio.to_thread(self._together, [request for request, _ in group])
                for (_, answer), (said, error) in zip(group, made, strict=True):
                    if not answer.done():
                        answer.set_exception(error) if error else answer.set_result(said)
        except BaseException as error:  # of the reader itself: whoever still waits would wait for ever
            for _, answer in asked:
                if not answer.done():
                    answer.set_exception(error)
            if not isinstance(error, Exception):
                raise

    def _together(self, requests: list[Request]) -> list[tuple[Any, Exception | None]]:
        if len(requests) == 1:
            return [_tried(requests[0], joined=False)]
        return self._reader.run_batch([partial(_tried, request, joined=True) for request in requests])


def _tried(request: Request, *, joined: bool) -> tuple[Any, Exception | None]:
    """What a request gives, or its error, which is nobody else's."""
    try:
        return request(joined), None
    except Exception as error:
        return None, error
