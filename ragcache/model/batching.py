"""Several requests' forwards in one: matrix products over all of their rows, attention by each to its own keys.

Requests run as they are written, each in a thread of its own but one at a time, and wait where they need the model.
Once all of them do, the forwards that go together are run as one, in the thread that called `run_batch`. Left to
run at once, threads would contend for the interpreter at every small operation.
"""

import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from ragcache.model.buffer import KVBuffer
from ragcache.model.plan import ForwardPlan, Part, Positions

_Answer = TypeVar("_Answer")
_LOGITS = "logits"
_here = threading.local()


@dataclass(eq=False)
class ForwardRequest:
    """A forward that a request waits for.

    Attributes
    ----------
    token_ids : sequence of int
        One per row.
    positions : Positions
        (rows,) RoPE positions.
    buffer : KVBuffer
        The request's own.
    plan : ForwardPlan
        Where its rows stand, and what is watched.
    keep : int or None
        How many rows' logits are wanted, from the end; 0 is all of them, None is none.
    """

    token_ids: Sequence[int]
    positions: Positions
    buffer: KVBuffer
    plan: ForwardPlan
    keep: int | None
    place: int = field(default=0, init=False)
    done: bool = field(default=False, init=False)
    logits: Tensor | None = field(default=None, init=False)
    error: BaseException | None = field(default=None, init=False)

    @property
    def kind(self) -> Hashable:
        """Calls of one kind end at the same layer, so they may be one forward; None for one that must run alone."""
        plan = self.plan
        if plan.has_layer_hooks or plan.last is not None or len(plan.cu_seqlens) > 2:
            return None
        if self.keep is not None:
            return _LOGITS
        return plan.last_scored if plan.stop_after_scores else None


def rows_of(calls: Sequence[ForwardRequest]) -> list[slice]:
    """Where each call's rows stand in the joint forward."""
    edges = accumulate((len(call.token_ids) for call in calls), initial=0)
    return [slice(start, stop) for start, stop in pairwise(edges)]


class BatchBuffer(Cache):
    """The calls' buffers as one: what is written goes to each call's own, what is read is a list of parts.

    The parts, (rows, keys, values, plan) of each call, ride on the key tensor as a plan does.

    Parameters
    ----------
    calls : sequence of ForwardRequest
        Those that are run as one.
    expanded : bool
        Whether the model makes K and V anew of what is read: it is then given all that the buffers hold, end to end.
    """

    def __init__(self, calls: Sequence[ForwardRequest], *, expanded: bool = False) -> None:
        self._calls, self._rows = calls, rows_of(calls)
        depth = len(calls[0].buffer.layers)
        super().__init__(layers=[_BatchLayer(calls, self._rows, index, expanded) for index in range(depth)])

    def parts(self, layer: int, key: Tensor, value: Tensor) -> list[Part]:
        """Each call's own, of the keys and values that the model has made of what a layer held, end to end."""
        ends = accumulate((call.buffer.layers[layer].length for call in self._calls), initial=0)
        return [
            (rows, key[:, :, start:stop], value[:, :, start:stop], call.plan)
            for call, rows, (start, stop) in zip(self._calls, self._rows, pairwise(ends), strict=True)
        ]


class _BatchLayer(CacheLayerMixin):
    is_initialized = True
    is_sliding = False

    def __init__(self, calls: Sequence[ForwardRequest], rows: Sequence[slice], index: int, expanded: bool) -> None:
        super().__init__()
        self._expanded = expanded
        self._calls = calls
        self._rows = rows
        self._index = index

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing: the buffers are the calls'."""

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        parts = []
        for call, rows in zip(self._calls, self._rows, strict=True):
            own = call.buffer.layers[self._index]
            parts.append((rows, *own.update(key_states[:, :, rows], value_states[:, :, rows]), call.plan))
        if self._expanded:
            return torch.cat([part[1] for part in parts], 2), torch.cat([part[2] for part in parts], 2)
        key_states.ragcache_parts = parts  # type: ignore[attr-defined]
        return key_states, value_states

    def get_seq_length(self) -> int:
        return 0

    def get_max_length(self) -> int:
        return -1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return query_length, 0


class BatchScheduler:
    """Requests that run at once and meet where they need the model.

    Parameters
    ----------
    forward : callable
        Runs calls of one kind as one forward, and gives each one's logits.
    """

    def __init__(self, forward: Callable[[Sequence[ForwardRequest]], Sequence[Tensor | None]]) -> None:
        self._key, self._forward = forward, forward
        self._changed = threading.Condition()
        self._turn = threading.Lock()  # held by the one request that runs
        self._waiting: list[ForwardRequest] = []
        self._busy = 0
        self._given_up: BaseException | None = None

    @staticmethod
    def here(forward: object) -> "BatchScheduler | None":
        """The scheduler that this thread's request is part of, if it meets at that reader's forward."""
        scheduler: BatchScheduler | None = getattr(_here, "scheduler", None)
        return scheduler if scheduler is not None and scheduler._key == forward else None

    def run(self, requests: Sequence[Callable[[], _Answer]]) -> list[_Answer]:
        """Run requests; what each gives, or the first one's error once all are done."""
        self._busy = len(requests)
        with ThreadPoolExecutor(max(1, len(requests)), "ragcache-request") as pool:
            try:
                futures = [pool.submit(self._attend, place, request) for place, request in enumerate(requests)]
                while group := self._next():
                    self._serve(group)
            except BaseException as error:
                self._give_up(error)
                raise
        return [future.result() for future in futures]

    def wait(self, call: ForwardRequest) -> Tensor | None:
        """Have a forward run with whatever else is waited for."""
        self._turn.release()
        with self._changed:
            call.place = _here.place
            self._waiting.append(call)
            self._leave()
            self._changed.wait_for(lambda: call.done or self._given_up is not None)
        self._turn.acquire()
        self._check()
        if call.error is not None:
            raise call.error
        return call.logits

    def _attend(self, place: int, request: Callable[[], _Answer]) -> _Answer:
        _here.scheduler, _here.place = self, place
        try:
            with self._turn:
                self._check()
                return request()
        finally:
            _here.scheduler = None
            with self._changed:
                self._leave()

    def _leave(self) -> None:
        self._busy -= 1
        if not self._busy:
            self._changed.notify_all()

    def _next(self) -> list[ForwardRequest]:
        """The calls to run now: those that end first, so that the others' forwards meet; none when all are done."""
        with self._changed:
            self._changed.wait_for(lambda: self._busy == 0)
            kinds = {call.kind for call in self._waiting}
            kind = min(kinds, key=lambda one: (one == _LOGITS, one if isinstance(one, int) else 0), default=None)
            return sorted((call for call in self._waiting if call.kind == kind), key=lambda call: call.place)

    def _serve(self, calls: Sequence[ForwardRequest]) -> None:
        try:
            for call, logits in zip(calls, self._forward(calls), strict=True):
                call.logits = logits
        except Exception as error:  # whoever waits for it raises it
            for call in calls:
                call.error = error
        self._release(calls)

    def _release(self, calls: Sequence[ForwardRequest]) -> None:
        with self._changed:
            self._waiting = [call for call in self._waiting if call not in calls]
            self._busy += len(calls)
            for call in calls:
                call.done = True
            self._changed.notify_all()

    def _give_up(self, error: BaseException) -> None:
        """Let every request end where it waits, or would; nobody is waited for, so a second interrupt does no harm."""
        with self._changed:
            self._given_up = error
            self._changed.notify_all()

    def _check(self) -> None:
        if self._given_up is not None:
            raise RuntimeError("the requests that were run together were given up") from self._given_up


def split_logits(kept: Tensor, calls: Sequence[ForwardRequest]) -> list[Tensor]:
    """Each call's logits out of those of all kept rows, (kept rows, vocabulary)."""
    counts = [len(call.token_ids) if call.keep == 0 else call.keep or 0 for call in calls]
    return list(torch.split(kept, counts))


def rows_with_logits(calls: Sequence[ForwardRequest]) -> list[int]:
    """Rows of the joint forward whose logits are wanted."""
    return [
        row
        for call, rows in zip(calls, rows_of(calls), strict=True)
        for row in range(rows.start if call.keep == 0 else rows.stop - (call.keep or 0), rows.stop)
    ]
