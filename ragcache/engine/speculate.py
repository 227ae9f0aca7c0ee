"""Speculate: a prompt of provisional chunks is prefilled while the final ones are still being searched for.

Dynamic speculative pipelining, RAGCache (2404.12457): whenever the provisional list changes, what was begun
on the one before is dropped, and the new one is begun; what was begun on a list that turns out final is kept.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Condition, Thread
from typing import Protocol, runtime_checkable

import torch

from ragcache.checks import check_kind
from ragcache.engine.clock import Clock
from ragcache.engine.engine import Engine
from ragcache.engine.prefill import Prefilled, choose_strategy
from ragcache.engine.request import Request
from ragcache.engine.stream import Stream
from ragcache.errors import InvalidArgument, RagCacheError
from ragcache.index.chunks import Chunk, order_by_document
from ragcache.model.cost import FlopCounter
from ragcache.report import Speculation

#: From a list of chunks, the clock of one attempt at it and the counter of its FLOPs: the request to be prefilled.
BuildRequest = Callable[[Sequence[Chunk | str], Clock, FlopCounter], Request]


@runtime_checkable
class IncrementalRetriever(Protocol):
    """A retriever that says what it would answer by now: its search is staged, or a slow ranking follows a fast one."""

    def retrieve(self, question: str, count: int) -> Iterable[Sequence[Chunk | str]]:
        """Ever better lists of `count` chunks for a question, each best first; the last is final.

        It is read in a thread of its own, and closed early if nobody waits for the answer any more.
        """


def check_retriever(retriever: object) -> None:
    """Refuse what is none, where one is given.

    Raises
    ------
    InvalidArgument
        Names it.
    """
    hint = "an object with retrieve(question, count); 'dense' and the like are for RagCache.open(retriever=...)"
    check_kind("retriever", retriever, IncrementalRetriever | None, hint)


class _Superseded(BaseException):
    """Ends an attempt whose list of chunks is no longer the newest."""


@dataclass(frozen=True)
class _Attempt:
    """A list of chunks that was begun, and what came of it: a prefilled prompt, or why it is refused."""

    chunks: Sequence[Chunk | str]
    early: bool
    clock: Clock
    counter: FlopCounter
    outcome: Prefilled | RagCacheError
    ms: float


class _Feed:
    """The lists of a retriever, read by a thread: the newest of them, and whether it is final."""

    def __init__(self, lists: Callable[[], Iterable[Sequence[Chunk | str]]]) -> None:
        self.count = 0
        self._newest: Sequence[Chunk | str] = ()
        self._changed = Condition()
        self._final = self._closed = False
        self._error: BaseException | None = None
        Thread(target=self._read, args=(lists,), daemon=True, name="ragcache-retrieve").start()

    def wait(self, count: int) -> tuple[Sequence[Chunk | str], int, bool]:
        """The newest list, once there are more than `count` or it is final; how many there were; whether it is final.

        Raises
        ------
        Exception
            What the retriever raised.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.count > count or self._final)
            self._raise()
            return self._newest, self.count, self._final

    def check(self, names: Sequence[str]) -> None:
        """Raise if these chunks are not the newest list any more, or there will be none."""
        with self._changed:
            self._raise()
            if _names(self._newest) != names:
                raise _Superseded

    def close(self) -> None:
        """Read no further."""
        with self._changed:
            self._closed, self._error = True, None  # an error holds what was prefilled, by its traceback

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _read(self, lists: Callable[[], Iterable[Sequence[Chunk | str]]]) -> None:
        error: BaseException | None = None
        try:
            found = iter(lists())
            for chunks in found:
                with self._changed:
                    if self._closed:
                        break
                    self._newest, self.count = order_by_document(chunks), self.count + 1
                    self._changed.notify_all()
            getattr(found, "close", lambda: None)()
        except BaseException as raised:  # or whoever waits would wait forever
            error = raised
        with self._changed:
            self._error, self._final = None if self._closed else error, True
            self._changed.notify_all()
        error = None  # or this frame and the error would hold each other


@dataclass
class _Pipeline:
    """Attempts at a question, one after the other, and what those took that were thrown away."""

    engine: Engine
    feed: _Feed
    build: BuildRequest
    clock: Clock
    started: int = 0
    dropped: int = 0
    wasted_ms: float = 0.0
    wasted_flops: float = 0.0

    def run(self) -> Stream:
        """Begin every list that is new, until one is final that is prefilled."""
        held, count, final = None, 0, False
        while True:
            chunks, count, final = self.feed.wait(count)
            if final and not count:
                raise no_list()
            if held is not None and _names(held.chunks) == _names(chunks):
                if final:
                    return self._keep(replace(held, chunks=chunks))
                continue
            if held is not None:
                self._drop(held.ms, held.counter)
                held = None  # its context goes before another is made
            held = self._begin(chunks, early=not final) if chunks or final else None

    def _begin(self, chunks: Sequence[Chunk | str], *, early: bool) -> _Attempt | None:
        """Prefill a prompt of these chunks; None if that was broken off."""
        check = partial(self.feed.check, _names(chunks))
        clock = self.clock.branch(check)
        began, counter = clock.now(), FlopCounter(self.engine.reader.dims)
        self.started += 1
        outcome: Prefilled | RagCacheError
        try:
            request = self.build(chunks, clock, counter)
            with self.engine.reader.checked(check):
                outcome = choose_strategy(request.method).prefill(request, self.engine.index)
        except RagCacheError as error:
            outcome = error  # of no account if the list is not final
        except _Superseded:
            self._drop(clock.now() - began, counter)
            return None
        return _Attempt(chunks, early, clock, counter, outcome, clock.now() - began)

    def _drop(self, ms: float, counter: FlopCounter) -> None:
        self.dropped += 1
        self.wasted_ms += ms
        self.wasted_flops += counter.flops

    def _keep(self, held: _Attempt) -> Stream:
        """The answer of an attempt at what turned out to be the final list."""
        if not isinstance(held.outcome, Prefilled):
            raise held.outcome
        held.clock.check = None
        request = self.build(held.chunks, held.clock, held.counter)  # the same chunks, with their final scores
        held.clock.note_first_token()
        dims, slots = held.counter.dims, torch.arange(len(held.outcome.prompt))
        wasted = self.wasted_flops / dims.forward(slots, range(dims.layers), logits=True)
        told = Speculation(self.feed.count, self.started, self.dropped, held.early, self.wasted_ms, wasted)
        report = replace(held.outcome.report, speculation=told)
        return Stream(self.engine.reader, request, replace(held.outcome, report=report))


def start_early(
    engine: Engine, lists: Callable[[], Iterable[Sequence[Chunk | str]]], build: BuildRequest, clock: Clock
) -> Stream:
    """Prefill provisional chunks while better ones are searched for; what comes back is of the final ones.

    RAGCache's dynamic speculative pipelining (2404.12457), for one question: it begins at every list that is another.
    The paper, which serves many, begins only while fewer prefills wait than a batch takes.

    Parameters
    ----------
    engine : Engine
        Prefills, in this thread, and breaks off before the next stage or layer once there is a newer list.
    lists : callable
        Ever better lists of chunks, read in another thread; the last is final.
    build : callable
        Makes the request of a list.
    clock : Clock
        Runs since the question came.

    Raises
    ------
    InvalidArgument
        If there was no list.
    Exception
        What the retriever raised, or what the final list is refused for.
    """
    feed = _Feed(lists)
    try:
        return _Pipeline(engine, feed, build, clock).run()
    finally:
        feed.close()


def read_final(lists: Iterable[Sequence[Chunk | str]]) -> Sequence[Chunk | str]:
    """The last of a retriever's lists.

    Raises
    ------
    InvalidArgument
        If there was none.
    """
    final = deque(lists, maxlen=1)
    if not final:
        raise no_list()
    return final[0]


def no_list() -> InvalidArgument:
    """The error of whoever needs chunks from a retriever that gave no list."""
    return InvalidArgument("the retriever gave 0 lists of chunks; retrieve(question, count) must yield at least 1")


def _names(chunks: Sequence[Chunk | str]) -> tuple[str, ...]:
    return tuple(chunk if isinstance(chunk, str) else chunk.id for chunk in chunks)
