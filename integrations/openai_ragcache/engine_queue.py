"""The engine's queue: one job at a time, a bounded number waits, and what nobody waits for any more is dropped."""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from math import ceil
from time import perf_counter
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")

_log = logging.getLogger(__name__)

_BACKGROUND = 1000  # pieces of work that wait for the engine to be idle, at most
_IDLE = 64  # those that give way at once, which hold on to what they are about

#: Work for idle time; it is given what to call often, which breaks it off as soon as anybody waits for the engine.
IdleWork = Callable[[Callable[[], None]], None]


class QueueFull(Exception):
    """More work waits than may wait.

    Parameters
    ----------
    waiting : int
        How much.
    retry_after : int
        Seconds after which there is likely to be room.
    """

    def __init__(self, waiting: int, retry_after: int) -> None:
        super().__init__(f"{waiting} requests wait for the model already; try again in {retry_after} s")
        self.retry_after = retry_after


class QueueClosed(Exception):
    """The server is stopping, and begins nothing new."""


class GaveWay(Exception):
    """Work in idle time was broken off, and begins anew later: somebody waits for the engine."""


class NobodyWaits(Exception):
    """Whoever wanted the results of some work has left."""


@dataclass(frozen=True)
class _Failure:
    error: Exception


class Job(Generic[Result]):
    """Work for the engine; iterate asynchronously for its results.

    Parameters
    ----------
    work : callable
        Gives results, one after the other; runs in the engine's thread, and should call the job's `check` often.
    loop : AbstractEventLoop
        Where the results are awaited.
    alone : bool
        Whether it must not run in the middle of background work.

    Attributes
    ----------
    waited_ms : float
        Milliseconds in the queue.
    """

    def __init__(self, work: "Work[Result]", loop: asyncio.AbstractEventLoop, alone: bool = False) -> None:
        self.waited_ms = 0.0
        self.alone = alone
        self._work = work
        self._loop = loop
        self._results: asyncio.Queue[Result | _Failure | None] = asyncio.Queue()
        self._left = threading.Event()
        self._began = perf_counter()

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for the results any more."""
        return self._left.is_set()

    def cancel(self) -> None:
        """Have the work end at its next `check`, or never begin."""
        self._left.set()

    def check(self) -> None:
        """Break the work off if nobody waits for it.

        Raises
        ------
        NobodyWaits
            If the job was cancelled.
        """
        if self.is_cancelled:
            raise NobodyWaits

    def run(self) -> None:
        """Do the work; what goes wrong is told to whoever waits."""
        self.waited_ms = (perf_counter() - self._began) * 1e3
        try:
            self.check()
            with closing(_as_generator(self._work(self))) as results:
                for result in results:
                    self._tell(result)
                    self.check()
        except NobodyWaits:
            pass
        except Exception as error:  # the caller's, wherever that is
            self._tell(_Failure(error))
        self._tell(None)

    def drop(self) -> None:
        """End without having begun."""
        self.cancel()
        self._tell(None)

    async def __aiter__(self) -> AsyncIterator[Result]:
        while (result := await self._results.get()) is not None:
            if isinstance(result, _Failure):
                raise result.error
            yield result
        if self.is_cancelled:
            raise NobodyWaits

    def _tell(self, result: Result | _Failure | None) -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it whoever waited
            self._loop.call_soon_threadsafe(self._results.put_nowait, result)


#: What a job does.
Work = Callable[[Job[Result]], Iterator[Result]]


class EngineQueue:
    """Runs jobs one at a time, in a thread of its own; those in the background when no other waits.

    Background work that takes long lets others run between its steps, by `run_waiting`.

    Parameters
    ----------
    limit : int
        Most jobs that wait, beside those in the background.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: deque[Job[Any]] = deque()
        self._background: deque[Job[Any]] = deque()
        self._idle: deque[IdleWork] = deque()
        self._running: list[Job[Any]] = []  # one in the background, and one that runs between its steps
        self._idle_runs = False
        self._seconds = 1.0  # of a job, lately
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="ragcache-engine", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Jobs that have not begun, beside those in the background."""
        return len(self._waiting)

    @property
    def idle_work(self) -> int:
        """Pieces of work for idle time that are not done yet."""
        with self._changed:
            return len(self._idle) + self._idle_runs

    @property
    def is_open(self) -> bool:
        """Whether new work is taken, and done."""
        return not self._closed and self._thread.is_alive()

    def submit(self, work: Work[Result], *, alone: bool = False) -> Job[Result]:
        """Have some work done for the running event loop; `alone`, not in the middle of what runs in the background.

        Raises
        ------
        QueueFull
            If as much waits as may.
        QueueClosed
            If the queue was closed.
        """
        [job] = self._accept(self._waiting, self._limit, [work], lambda: None, alone)
        return job

    def submit_background(
        self, works: Sequence[Work[Result]], first: Callable[[], object] = lambda: None
    ) -> list[Job[Result]]:
        """Have some pieces of work done once the engine has nothing else to do: all of them, or none.

        Parameters
        ----------
        works : sequence of callable
            Whose results the running event loop waits for.
        first : callable
            Called where all are accepted, before any begins; if it fails, none is done.

        Raises
        ------
        QueueFull
            If not all may wait.
        QueueClosed
            If the queue was closed.
        """
        return self._accept(self._background, _BACKGROUND, works, first)

    def _accept(
        self,
        queue: deque[Job[Any]],
        limit: int,
        works: Sequence[Work[Result]],
        first: Callable[[], object],
        alone: bool = False,
    ) -> list[Job[Result]]:
        jobs = [Job(work, asyncio.get_running_loop(), alone) for work in works]
        with self._changed:
            if self._closed:
                raise QueueClosed("the server is stopping; try again when it is back")
            for left in [one for one in queue if one.is_cancelled]:
                queue.remove(left)
                left.drop()
            if len(queue) + len(jobs) > limit:
                raise QueueFull(len(queue), max(1, ceil(len(queue) * self._seconds)))
            first()
            queue.extend(jobs)
            self._changed.notify()
        return jobs

    def when_idle(self, work: IdleWork) -> bool:
        """Have work done while nothing else is to be done, background work included; from any thread.

        It has no results, and begins anew whenever it has to give way.

        Returns
        -------
        bool
            Whether it was taken: not if much of it waits already, or the queue was closed.
        """
        with self._changed:
            if self._closed or len(self._idle) >= _IDLE:
                return False
            self._idle.append(work)
            self._changed.notify()
        return True

    def close(self, timeout: float = 10.0) -> None:
        """Drop what waits, break off what runs, and wait for it to end."""
        with self._changed:
            self._closed = True
            for job in (*self._waiting, *self._background):
                job.drop()
            self._waiting.clear()
            self._background.clear()
            self._idle.clear()
            for job in self._running:
                job.cancel()
            self._changed.notify()
        self._thread.join(timeout)

    def run_waiting(self) -> None:
        """Run the jobs that wait now, up to one that must be alone. Background work calls it where it holds nothing."""
        for _ in range(self.waiting):
            if (job := self._next_between()) is not None:
                self._run_job(job)

    def _next_between(self) -> Job[Any] | None:
        with self._changed:
            if self._closed or not self._waiting or self._waiting[0].alone:
                return None
            self._running.append(self._waiting.popleft())
            return self._running[-1]

    def _run(self) -> None:
        while (work := self._next()) is not None:
            if isinstance(work, Job):
                self._run_job(work)
            else:
                self._run_idle(work)

    def _run_job(self, job: Job[Any]) -> None:
        began = perf_counter()
        job.run()
        self._seconds = 0.8 * self._seconds + 0.2 * (perf_counter() - began)
        with self._changed:
            self._running.remove(job)

    def _next(self) -> Job[Any] | IdleWork | None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._waiting or self._background or self._idle)
            if self._closed:
                return None
            if not self._waiting and not self._background:
                self._idle_runs = True
                return self._idle.popleft()
            self._running.append((self._waiting or self._background).popleft())
            return self._running[-1]

    def _run_idle(self, work: IdleWork) -> None:
        try:
            work(self._give_way)
        except GaveWay:
            with self._changed:
                self._idle.appendleft(work)
        except Exception:  # nobody waits for it
            _log.exception("work in idle time failed")
        finally:
            self._idle_runs = False

    def _give_way(self) -> None:
        if self._closed or self._waiting or self._background:
            raise GaveWay


def _as_generator(results: Iterator[Result]) -> Any:
    """What `closing` takes."""
    return results if hasattr(results, "close") else (result for result in results)
