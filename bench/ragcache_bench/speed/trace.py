"""A trace of questions as real traffic has them: popular chunks often, in ever other company and orders."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ragcache.engine.engine import Engine
from ragcache.errors import InvalidArgument
from ragcache.model.reader import Reader
from ragcache.report import Progress, ignore_progress
from ragcache_bench.contenders import Contender
from ragcache_bench.metrics import bootstrap_ratio
from ragcache_bench.records import Journal
from ragcache_bench.speed.latency import at_hand
from ragcache_bench.speed.peers import Peer
from ragcache_bench.speed.runners import Runner, Turn, line_up, with_full
from ragcache_bench.speed.shapes import filled, question, random_texts


@dataclass(frozen=True)
class Trace:
    """Which chunks every question comes with.

    Attributes
    ----------
    questions : int
        How many.
    chunks : int
        Of each prompt.
    tokens : int
        Of each chunk.
    pool : int
        Chunks there are.
    exponent : float
        Zipf's: the k-th most popular chunk is drawn with weight k ** -exponent.
    seed : int
        Of the draws.

    Raises
    ------
    InvalidArgument
        If a prompt takes more chunks than there are.
    """

    questions: int = 60
    chunks: int = 8
    tokens: int = 256
    pool: int = 200
    exponent: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.chunks > self.pool:
            raise InvalidArgument(f"prompts of {self.chunks} chunks cannot be drawn from a pool of {self.pool}")

    def drawn(self) -> list[list[int]]:
        """Chunks of each question, none of them twice, in the prompt's order, which says nothing of popularity."""
        source = torch.Generator().manual_seed(self.seed)
        weights = torch.arange(1, self.pool + 1, dtype=torch.float64) ** -self.exponent  # (pool,)
        found = [torch.multinomial(weights, self.chunks, generator=source) for _ in range(self.questions)]
        return [row[torch.randperm(self.chunks, generator=source)].tolist() for row in found]


@dataclass(frozen=True)
class Replayed:
    """What a trace took one of those who answered it.

    Attributes
    ----------
    method, recompute : str, float or None
        Row of the table or a peer's name, nominal share.
    mean_ms, p50_ms, p95_ms : float
        Of the times to the first token.
    speedup, speedup_low, speedup_high : float
        Full prefill's mean over this one's, and where 95 % of its resampled values lie; questions are drawn.
    """

    method: str
    recompute: float | None
    mean_ms: float
    p50_ms: float
    p95_ms: float
    speedup: float
    speedup_low: float
    speedup_high: float


def replay(
    reader: Reader,
    field: Sequence[Contender],
    trace: Trace,
    journal: Journal,
    *,
    store: str = "warm",
    peers: Sequence[Peer] = (),
    progress: Progress = ignore_progress,
) -> list[Replayed]:
    """Have everybody answer every question before the next one comes; what the journal knows is not timed again.

    Parameters
    ----------
    reader : Reader
        From `random_reader` or `checkpoint_reader`.
    field : sequence of Contender
        Full prefill always takes part.
    trace : Trace
        The questions.
    journal : Journal
        Keeps every time, so that a run that was ended goes on where it was.
    store : str
        Where our KV is, as in `ragcache_bench.speed.latency.measure`.
    peers : sequence of Peer
        What people run instead.
    progress : callable
        Called with stage, done, total.
    """
    everyone = with_full(field)
    with at_hand(reader, store) as index:
        # Those behind the pool are in no question: everybody warms up on them.
        chunks = filled(index, everyone, random_texts(trace.pool + trace.chunks, trace.tokens), progress)
        runners = line_up(Engine(reader, index), everyone, store, peers)
        for runner in runners:
            runner.run(Turn.of(index, question(index), chunks[trace.pool :]))
        machine = (str(reader.device), str(torch.get_num_threads()), reader.fingerprint)
        taken = [[0.0] * trace.questions for _ in runners]
        for number, drawn in enumerate(trace.drawn()):
            turn = Turn.of(index, question(index, number + 1), [chunks[i] for i in drawn])
            for place in range(number, number + len(runners)):  # nobody is always first
                which = place % len(runners)
                key = (repr(trace), store, *machine, str(number))
                taken[which][number] = _timed(runners[which], turn, journal, key)
            progress("replay", number + 1, trace.questions)
    return [_replayed(runner, mine, taken[0]) for runner, mine in zip(runners, taken, strict=True)]


def _timed(runner: Runner, turn: Turn, journal: Journal, where: Sequence[str]) -> float:
    """A turn's milliseconds; one that is known already is only run again by what has to remember it."""
    known = len(journal.known)
    ms: float = journal.recall([*where, runner.method, str(runner.recompute)], lambda: runner.run(turn).ms)
    if runner.remembers and len(journal.known) == known:
        runner.run(turn)
    return ms


def _replayed(runner: Runner, taken: Sequence[float], full: Sequence[float]) -> Replayed:
    ratio = bootstrap_ratio(full, taken)
    p50, p95 = np.percentile(taken, [50, 95]).tolist()
    return Replayed(runner.method, runner.recompute, float(np.mean(taken)), p50, p95, ratio.mean, ratio.low, ratio.high)
