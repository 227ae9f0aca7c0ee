"""Several processes that answer, and one that writes: whatever stops them, the journal holds whole questions only."""

import multiprocessing
import signal
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from math import ceil
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext

import torch

from ragcache.errors import RagCacheError, WorkerDied
from ragcache.model.reader import Reader
from ragcache.report import Progress
from ragcache.retrieve import Embedder
from ragcache_bench.asking import Job, work
from ragcache_bench.records import Record

_PATIENCE = 5.0  # seconds that a process has to end


@dataclass(frozen=True)
class Workers:
    """Processes that each load the reader for themselves and take one task after the other, the longest first.

    A task that is more than a process's share of the work is divided; each that works on it encodes its chunks.

    Attributes
    ----------
    load : callable
        Makes the reader; it travels to another process, so it is a function of a module or a `partial` of one.
    count : int
        How many.
    threads : int
        CPU threads of each.
    """

    load: Callable[[], Reader]
    count: int
    threads: int = 1

    def records(self, jobs: Sequence[Job], embedder_name: str, progress: Progress) -> Generator[list[Record]]:
        """Each question's records, as they come.

        Raises
        ------
        RagCacheError
            Whatever a worker raised on purpose.
        WorkerDied
            If one ended otherwise.
        """
        queue = sorted(share_out(jobs, self.count), key=_size)
        with ExitStack() as stack:
            # Theirs lie inside, so that nothing is left of one that has to be killed.
            place = stack.enter_context(tempfile.TemporaryDirectory(prefix="ragcache-bench-"))
            started = (_Worker(self, embedder_name, place) for _ in range(min(self.count, len(queue))))
            idle = [stack.enter_context(worker) for worker in started]
            for worker in idle:
                stack.callback(worker.pipe.close)  # all of them, before any is waited for
            busy: dict[Connection, _Worker] = {}
            while queue or busy:
                while queue and idle:
                    worker = idle.pop()
                    worker.take(queue.pop())
                    busy[worker.pipe] = worker
                for pipe in wait(list(busy)):
                    worker = busy[pipe]  # type: ignore[index]
                    match worker.hear():
                        case None:
                            idle.append(busy.pop(worker.pipe))
                        case list() as records:
                            yield records
                        case (stage, done, total):
                            progress(stage, done, total)


class _Worker:
    """A process at the other end of a pipe."""

    def __init__(self, how: Workers, embedder_name: str, place: str) -> None:
        context = _context()
        self.pipe, theirs = context.Pipe()
        self._task = ""
        self._process = context.Process(target=_serve, args=(theirs, how, embedder_name, place), daemon=True)  # type: ignore[attr-defined]
        with _deaf():
            self._process.start()
        theirs.close()  # else its end would never be seen

    def __enter__(self) -> "_Worker":
        return self

    def __exit__(self, *error: object) -> None:
        self.pipe.close()  # which it meets at its next step, and ends by itself
        self._process.join(_PATIENCE)
        self._process.terminate()
        self._process.join()

    def take(self, job: Job) -> None:
        """Give it something to do."""
        self._task = job.task
        with suppress(OSError):  # that it is gone is heard
            self.pipe.send(job)

    def hear(self) -> "list[Record] | tuple[str, int, int] | None":
        """A question's records, progress, or None where the job is done."""
        try:
            message = self.pipe.recv()
        except (EOFError, ConnectionError) as error:
            self._process.join(_PATIENCE)
            raise WorkerDied(
                f"a process ended with exit code {self._process.exitcode} while it worked on {self._task!r}; run the "
                "same command again to resume, with fewer --workers if memory was short"
            ) from error
        if isinstance(message, RagCacheError):
            raise message
        return message  # type: ignore[no-any-return]


def _context() -> BaseContext:
    """Processes that start from one which has imported everything, once for all; forked from here, torch may hang."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def _serve(pipe: Connection, how: Workers, embedder_name: str, place: str) -> None:
    """Work on what comes through the pipe until it is closed."""
    torch.set_num_threads(how.threads)
    tempfile.tempdir = place
    try:
        reader, embedder = how.load(), Embedder(embedder_name)
        while True:
            for records in work(pipe.recv(), reader, embedder, lambda *step: pipe.send(step)):
                pipe.send(records)
            pipe.send(None)
    except RagCacheError as error:
        with suppress(ConnectionError):
            pipe.send(error)
    except (EOFError, ConnectionError):  # the other end has closed it
        return


@contextmanager
def _deaf() -> Iterator[None]:
    """Start processes that do not hear an interrupt, which is this one's to handle."""
    if threading.current_thread() is not threading.main_thread():  # only there may it be set
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def share_out(jobs: Sequence[Job], count: int) -> list[Job]:
    """Divide jobs that are more than one process's share by their questions; each part keeps the whole pool."""
    share = max(1, sum(map(_size, jobs))) / count
    parts = ((job, max(1, min(len(job.questions), ceil(_size(job) / share)))) for job in jobs)
    return [replace(job, questions=job.questions[i::many]) for job, many in parts for i in range(many)]


def _size(job: Job) -> int:
    """How long a job takes, about: what is read for all answers."""
    return sum(len(asked.turns) * sum(map(len, asked.example.chunks)) for asked in job.questions)
