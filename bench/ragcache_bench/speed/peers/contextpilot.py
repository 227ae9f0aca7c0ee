"""ContextPilot (arXiv 2511.03475) in front of another peer: its own package puts chunks in an order that hits more."""

import io
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from multiprocessing.pool import ThreadPool

from ragcache.errors import MissingExtra
from ragcache_bench.speed.peers.peer import Parts, Reordered

#: Its requirements are many, and none of them is needed to order chunks.
INSTALL = "pip install --no-deps --target DIR contextpilot"

Order = Callable[[Sequence[str]], tuple[str, ...]]


def reorder_by_contextpilot() -> Order:
    """ContextPilot, which remembers what it was asked to order, and says much about it.

    Raises
    ------
    MissingExtra
        If it is not installed.
    """
    try:
        from contextpilot.context_index import compute_distance_cpu
        from contextpilot.server.live_index import ContextPilot
    except ImportError as error:
        raise MissingExtra(f"contextpilot is not there: {error}; run `{INSTALL}`, and add DIR to PYTHONPATH") from error

    # From 1,000 branches of its tree on, 0.5.0 hands a local function to other processes, which fails. Threads take it.
    compute_distance_cpu.Pool = ThreadPool
    pilot = ContextPilot(use_gpu=False)

    def order(chunks: Sequence[str]) -> tuple[str, ...]:
        with redirect_stdout(io.StringIO()):
            [found], _ = pilot.reorder(list(chunks))
        return tuple(found)

    return order


@dataclass(frozen=True)
class OrderedByContextPilot(Reordered):
    """A peer whose chunks come in ContextPilot's order; whether answers are as good in that order is not asked here."""

    called = "ContextPilot's order"
    _order: Order = field(default_factory=reorder_by_contextpilot, repr=False)

    def order(self, chunks: Parts) -> Parts:
        """As ContextPilot says, to whom a chunk is its tokens' numbers."""
        named = {" ".join(map(str, chunk)): chunk for chunk in chunks}
        return [named[name] for name in self._order(list(named))]
