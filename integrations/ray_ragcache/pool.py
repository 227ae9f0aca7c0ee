"""A pool of workers on Ray: jobs go out, statuses come back, and what dies is tried again a finite number of times."""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragcache.errors import MissingExtra, UnusableIndex, WorkerDied, install
from ray_ragcache.messages import Job, Status, WorkerSpec
from ray_ragcache.worker import ChunkWorker

_ATTEMPTS = 3  # deaths of a worker over one chunk before that is left out; and of workers before they are ready
_READY_SECONDS = 600.0  # within which one worker has to have its model loaded


class RayPool:
    """Workers, each a process with the model in it, that Ray starts where there is room.

    Parameters
    ----------
    address : str
        "local" for a Ray of one's own on this machine, else the cluster's: "auto", or ``host:port``.
    workers : int, optional
        How many; by default one for each GPU of the cluster, else one for each CPU but one.
    worker : type
        What a worker is.

    Raises
    ------
    MissingExtra
        If Ray is not installed.
    WorkerDied
        If there is no cluster at the address.
    """

    def __init__(self, address: str, workers: int | None = None, *, worker: type[ChunkWorker] = ChunkWorker) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
        try:
            import ray
        except ModuleNotFoundError as error:
            raise MissingExtra(f"ray is not installed; run `{install('ray')}`") from error
        self._ray: Any = ray
        self._own = not ray.is_initialized()
        if self._own:
            where = None if address == "local" else address
            try:
                ray.init(address=where, include_dashboard=None if where else False, log_to_driver=False)
            except ConnectionError as error:
                raise WorkerDied(
                    f"Ray cannot be reached at {address} ({_first_line(error)}); see by `ray status` whether it is "
                    "up, or take `--ray local`"
                ) from error
        found = ray.cluster_resources()
        self._gpus = int(found.get("GPU", 0))
        self.workers = workers or self._gpus or max(1, int(found.get("CPU", 1)) - 1)
        self._worker = worker
        #: Workers that died, for whoever wants to know.
        self.deaths = 0

    def run(self, spec: WorkerSpec, jobs: Sequence[Job]) -> Iterator[Status]:
        """Work through some jobs; a status of every chunk, exactly one.

        Raises
        ------
        UnusableIndex
            If a worker's model, or its ragcache, is another one than the index's, or it cannot reach the index's KV.
        WorkerDied
            If no worker gets as far as having loaded the model.
        """
        return _Run(self, self._ray, spec, jobs).statuses()

    def start(self, spec: WorkerSpec) -> Any:
        """One worker that is being started."""
        options = {"num_cpus": 1, "num_gpus": 1 if self._gpus else 0, "max_restarts": 0, "max_task_retries": 0}
        return self._ray.remote(self._worker).options(scheduling_strategy="SPREAD", **options).remote(spec)

    def close(self) -> None:
        """Leave the cluster; one of one's own ends."""
        if self._own:
            self._ray.shutdown()


@dataclass(frozen=True)
class _Task:
    """A job and how it is gone about: chunk by chunk, once a worker has died over it, which has happened so often."""

    job: Job
    careful: bool = False
    deaths: int = 0


class _Run:
    """One encoding's jobs on a pool.

    A job whose worker dies comes back chunk by chunk: what was stored is found there, and the chunk that did it shows.
    """

    def __init__(self, pool: RayPool, ray: Any, spec: WorkerSpec, jobs: Sequence[Job]) -> None:
        self._pool = pool
        self._ray = ray
        self._spec = spec
        self._waiting = deque(_Task(job) for job in jobs)
        self._starting = dict[Any, Any]()  # what says that it is ready, to the worker
        self._idle = list[Any]()
        self._busy = dict[Any, tuple[Any, _Task]]()
        self._false_starts = 0

    def statuses(self) -> Iterator[Status]:
        """All of it."""
        try:
            while self._waiting or self._busy:
                self._staff()
                self._hand_out()
                yield from self._take_in()
        finally:
            for worker in [*self._idle, *(worker for worker, _ in self._busy.values()), *self._starting.values()]:
                self._ray.kill(worker)

    def _staff(self) -> None:
        wanted = min(self._pool.workers, len(self._waiting) + len(self._busy))
        for _ in range(wanted - len(self._idle) - len(self._busy) - len(self._starting)):
            worker = self._pool.start(self._spec)
            self._starting[worker.ready.remote()] = worker

    def _hand_out(self) -> None:
        while self._idle and self._waiting:
            worker, task = self._idle.pop(), self._waiting.popleft()
            job = replace(task.job, todo=task.job.todo[:1]) if task.careful else task.job
            self._busy[worker.encode.remote(job)] = worker, task

    def _take_in(self) -> Iterator[Status]:
        done, _ = self._ray.wait([*self._starting, *self._busy], num_returns=1, timeout=_READY_SECONDS)
        if not done and not self._busy:
            raise WorkerDied(
                f"no worker was ready within {_READY_SECONDS:,.0f} s; see by `ray status` whether the cluster has room "
                "for one, and repeat the command"
            )
        for one in done:
            if one in self._starting:
                self._welcome(one)
            else:
                yield from self._collect(one)

    def _welcome(self, one: Any) -> None:
        worker = self._starting.pop(one)
        try:
            refusal = self._ray.get(one)
        except (self._ray.exceptions.RayActorError, self._ray.exceptions.RayTaskError) as error:
            self._false_starts += 1
            if self._false_starts >= _ATTEMPTS and not (self._idle or self._busy):
                raise WorkerDied(
                    f"{self._false_starts} workers died before they were ready ({_first_line(error)}); see their logs, "
                    "and repeat the command"
                ) from error
            return
        if refusal:
            raise UnusableIndex(refusal)  # the others would say the same
        self._idle.append(worker)

    def _collect(self, one: Any) -> Iterator[Status]:
        worker, task = self._busy.pop(one)
        try:
            statuses: list[Status] = self._ray.get(one)
        except self._ray.exceptions.RayActorError:
            self._pool.deaths += 1
            yield from self._repeat(task)
            return
        self._idle.append(worker)
        yield from statuses
        if task.careful:
            self._go_on(task, {status.chunk: status.key for status in statuses})

    def _repeat(self, task: _Task) -> Iterator[Status]:
        """What a worker died over: once more, chunk by chunk, until a chunk has done it too often."""
        if task.careful and task.deaths + 1 >= _ATTEMPTS:
            yield Status(task.job.todo[0], error=f"{_ATTEMPTS} workers died over it")
            self._go_on(task, {})
        else:
            self._waiting.appendleft(_Task(task.job, careful=True, deaths=task.deaths + task.careful))

    def _go_on(self, task: _Task, keys: dict[str, str]) -> None:
        """The rest of a document, behind what is there of it by now."""
        pieces = tuple(replace(piece, key=keys.get(piece.id) or piece.key) for piece in task.job.pieces)
        if rest := task.job.todo[1:]:
            self._waiting.appendleft(_Task(replace(task.job, pieces=pieces, todo=rest), careful=True))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
