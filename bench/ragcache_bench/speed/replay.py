"""A trace of questions, answered one after the other by everybody: how soon the first token comes, and what is held."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import numpy as np
import torch

from ragcache import Sampling
from ragcache.encode import PromptEncoder
from ragcache.engine.engine import Engine
from ragcache.errors import InvalidArgument
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.model.reader import Reader
from ragcache.report import Progress, ignore_progress
from ragcache_bench.contenders import Contender
from ragcache_bench.metrics import bootstrap_ratio
from ragcache_bench.records import Journal
from ragcache_bench.speed.latency import at_hand
from ragcache_bench.speed.peers import MakePeers
from ragcache_bench.speed.runners import Runner, Taken, Turn, drop_pages, other, own, with_full
from ragcache_bench.speed.shapes import filled_alike, question, sized_texts
from ragcache_bench.speed.trace import Requests

_MIB = 1 << 20
_ALL = 1 << 62
_ONE = Sampling(max_new_tokens=1)


@dataclass(frozen=True)
class Replayed:
    """What a trace took one of those who answered it.

    Attributes
    ----------
    method, recompute : str, float or None
        Row of the table or a peer's name, nominal share.
    cache : float or None
        Most that it may hold, as a share of the KV of all chunks; None without a limit.
    held_mib : float
        Most that it held, of the KV or the states by which a later question is answered sooner.
    mean_ms, p50_ms, p95_ms : float
        Of the times to the first token.
    speedup, speedup_low, speedup_high : float
        Full prefill's mean over this one's, and where 95 % of its resampled values lie; questions are drawn.
    """

    method: str
    recompute: float | None
    cache: float | None
    held_mib: float
    mean_ms: float
    p50_ms: float
    p95_ms: float
    speedup: float
    speedup_low: float
    speedup_high: float


@dataclass(frozen=True)
class _Answerer:
    """Somebody who is timed, within a limit, over an index of their own."""

    runner: Runner
    cache: float | None
    index: Index
    chunks: Sequence[Chunk]

    def turn(self, number: int, prompt: Sequence[int]) -> Turn:
        return Turn.of(self.index, question(self.index, number), [self.chunks[chunk] for chunk in prompt])


def replay(
    reader: Reader,
    field: Sequence[Contender],
    trace: Requests,
    journal: Journal,
    *,
    store: str = "warm",
    caches: Sequence[float | None] = (None,),
    peers: MakePeers = lambda limit: (),
    progress: Progress = ignore_progress,
) -> list[Replayed]:
    """Have everybody answer every question before the next one comes; what the journal knows is not timed again.

    Whoever holds something is there once for each limit. Each chunk is a document. Our methods have an index each,
    filled before the first question as far as the limit allows; what lacks is made when it is asked for, and stored if
    it is worth its place. Peers begin with nothing, since what they keep is prompts, and so do our methods that keep KV
    of prompts.

    Parameters
    ----------
    reader : Reader
        From `random_reader` or `checkpoint_reader`.
    field : sequence of Contender
        Full prefill always takes part.
    trace : Requests
        The questions.
    journal : Journal
        Keeps every time, so that a run that was ended goes on where it was.
    store : str
        Where our KV is, as in `ragcache_bench.speed.latency.measure`.
    caches : sequence of float or None
        Limits, as shares of the KV of all chunks; None is no limit.
    peers : callable
        Makes what people run instead, with a limit in bytes, or None.
    progress : callable
        Called with stage, done, total.
    """
    with ExitStack() as stack:
        everyone = _line_up(stack, reader, field, trace, store, caches, peers, progress)
        machine = (str(reader.device), str(torch.get_num_threads()), reader.fingerprint)
        taken = [[0.0] * len(trace.prompts) for _ in everyone]
        held = [0] * len(everyone)
        for number, prompt in enumerate(trace.prompts):
            for place in range(number, number + len(everyone)):  # nobody is always first
                which = place % len(everyone)
                one, key = everyone[which], (repr(trace), store, *machine, str(number))
                taken[which][number] = _timed(one, one.turn(number + 1, prompt), journal, key)
                held[which] = max(held[which], one.runner.held())
            progress("replay", number + 1, len(trace.prompts))
    return [_replayed(*one, taken[0]) for one in zip(everyone, held, taken, strict=True)]


def _line_up(
    stack: ExitStack,
    reader: Reader,
    field: Sequence[Contender],
    trace: Requests,
    store: str,
    caches: Sequence[float | None],
    peers: MakePeers,
    progress: Progress,
) -> list[_Answerer]:
    """Everybody, warmed up on chunks that are in no question, and nothing of these is kept: full prefill first."""
    whole = sum(trace.lengths) * reader.bytes_per_token
    full, *others = with_full(field)
    asked = [(full, None), *((one, cache) for one in others for cache in caches)]
    indexes = [stack.enter_context(at_hand(reader, store)) for _ in asked]
    beside = [(one, cache) for cache in caches for one in peers(None if cache is None else _limit(cache, whole))]
    for index, (_, cache) in zip(indexes, asked, strict=True):
        if cache is not None:
            index.bound.set_limit(_ALL)  # what takes how much work is noted from the first on
    texts = sized_texts([*trace.lengths, *(trace.lengths[chunk] for chunk in trace.prompts[0])])
    ahead = [[] if _is_taken_from_prompts(one) else [one] for one, _ in asked]
    chunks = filled_alike([*zip(indexes, ahead, strict=True)], [[text] for text in texts], progress)
    found = []
    for index, mine, (one, cache) in zip(indexes, chunks, asked, strict=True):
        runner = (_answering if _is_taken_from_prompts(one) else own)(Engine(reader, index), one, store)
        found.append(_Answerer(replace(runner, remembers=runner.remembers or cache is not None), cache, index, mine))
    found += [_Answerer(other(one), cache, indexes[0], chunks[0]) for one, cache in beside]
    for answerer in found:
        answerer.runner.run(answerer.turn(0, range(len(trace.lengths), len(texts))))
    for peer, _ in beside:
        peer.reset()
    for index, mine, (_, cache) in zip(indexes, chunks, asked, strict=True):
        index.evict([*index.catalog.keys_of_chunks([chunk.id for chunk in mine[len(trace.lengths) :]])])
        if cache is not None:
            index.bound.set_limit(_limit(cache, max(whole, index.store.total_bytes())))  # files have headers
    return found


def _is_taken_from_prompts(one: Contender) -> bool:
    return isinstance(one.method.encode, PromptEncoder)


def _answering(engine: Engine, contender: Contender, store: str) -> Runner:
    """One of our methods that keeps KV of the prompts it has answered, which is done behind the first token."""
    row = contender.method

    def run(turn: Turn) -> Taken:
        if store == "cold":
            drop_pages(Path(engine.index.path))
        told = engine.answer(turn.question, turn.chunks, method=row, recompute=contender.recompute, sampling=_ONE)
        return Taken(told.report.ms.first_token, told.report)

    return replace(own(engine, contender, store), run=run, remembers=True)


def _limit(cache: float, whole: int) -> int:
    """Bytes of a share of the whole."""
    if not cache > 0:
        raise InvalidArgument(f"a cache of {cache:g} of all KV holds nothing; give a share above 0, for example 0.1")
    return int(cache * whole)


def _timed(one: _Answerer, turn: Turn, journal: Journal, where: Sequence[str]) -> float:
    """A turn's milliseconds; one that is known already is only run again by what has to remember it."""
    known, runner = len(journal.known), one.runner
    key = [*where, runner.method, str(runner.recompute), *([] if one.cache is None else [str(one.cache)])]
    ms: float = journal.recall(key, lambda: runner.run(turn).ms)
    if runner.remembers and len(journal.known) == known:
        runner.run(turn)
    return ms


def _replayed(one: _Answerer, held: int, taken: Sequence[float], full: Sequence[float]) -> Replayed:
    ratio = bootstrap_ratio(full, taken)
    p50, p95 = np.percentile(taken, [50, 95]).tolist()
    runner = one.runner
    return Replayed(
        runner.method, runner.recompute, one.cache, held / _MIB, fmean(taken), p50, p95,
        ratio.mean, ratio.low, ratio.high,
    )  # fmt: skip
