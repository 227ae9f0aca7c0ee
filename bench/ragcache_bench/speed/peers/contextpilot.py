"""ContextPilot (arXiv 2511.03475) in front of another peer: its own package puts chunks in an order that hits more."""

import io
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from multiprocessing.pool import ThreadPool

from ragcache.errors import MissingExtra
from ragcache_bench.speed.peers.peer import Parts, Reordered

#: Its requirements are many, and none of them is needed to order chunks.
INSTALL = "pip install --no-deps --target DIR contextpilot"


class ContextPilotOrder:
    """ContextPilot, which remembers what it was asked to order, until it is told that a cache has let go of it.

    Raises
    ------
    MissingExtra
        If it is not installed.
    """

    def __init__(self) -> None:
        try:
            from contextpilot.context_index import compute_distance_cpu
            from contextpilot.server.live_index import ContextPilot
        except ImportError as error:
            told = f"contextpilot is not there: {error}; run `{INSTALL}`, and add DIR to PYTHONPATH"
            raise MissingExtra(told) from error
        # From 1,000 branches on, 0.5.0 hands a local function to other processes, which fails. Threads take it.
        compute_distance_cpu.Pool = ThreadPool
        self._pilot = ContextPilot(use_gpu=False)
        self._requests: dict[tuple[str, ...], set[str]] = {}

    def __call__(self, chunks: Sequence[str]) -> tuple[str, ...]:
        """The chunks in its order."""
        with redirect_stdout(io.StringIO()):  # it says much
            told = self._pilot.build_incremental([list(chunks)])
        [found], [request] = told["reordered_contexts"], told["request_ids"]
        self._requests.setdefault(tuple(found), set()).add(request)
        return tuple(found)

    def forget(self, prompt: Sequence[str]) -> None:
        """Have it know that a prompt's last chunk, in the order that it gave, is no longer held."""
        if gone := self._requests.pop(tuple(prompt), None):
            with redirect_stdout(io.StringIO()):
                self._pilot.remove_requests(gone)


@dataclass(frozen=True)
class OrderedByContextPilot(Reordered):
    """A peer whose chunks come in ContextPilot's order; whether answers are as good in that order is not asked here.

    ContextPilot is not told what a peer with a limit lets go of.
    """

    called = "ContextPilot's order"
    _order: ContextPilotOrder = field(default_factory=ContextPilotOrder, repr=False)

    def order(self, chunks: Parts) -> Parts:
        """As ContextPilot says, to whom a chunk is its tokens' numbers."""
        named = {" ".join(map(str, chunk)): chunk for chunk in chunks}
        return [named[name] for name in self._order(list(named))]
