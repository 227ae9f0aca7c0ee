"""Questions per second: one by one, at once, and at once over one assembled context."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

from ragcache.engine.engine import Engine
from ragcache.engine.prefill import Prefilled, choose_strategy
from ragcache.engine.request import Request, RequestOptions
from ragcache.index.chunks import Chunk
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.report import Progress, ignore_progress
from ragcache_bench.contenders import Contender
from ragcache_bench.speed.latency import at_hand
from ragcache_bench.speed.shapes import CHUNK, filled, question, random_texts, whole

Pair = tuple[str, Sequence[Chunk]]
WAYS = ("one by one", "at once", "one by one, same chunks", "at once, same chunks")


@dataclass(frozen=True)
class Throughput:
    """Questions answered per second in one way, by one method.

    Attributes
    ----------
    method, recompute : str, float or None
        Row of the table, nominal share.
    way : str
        Of `WAYS`.
    questions, context, tokens : int
        Questions at once, tokens of each one's chunks, tokens of each answer.
    per_second, low, high : float
        Median, least and most over the repeats.
    speedup, speedup_low, speedup_high : float
        Against the same questions one by one, pair by pair: median, least, most.
    difference : float or None
        Largest difference of a first token's logit from what the question gives alone.
    """

    method: str
    recompute: float | None
    way: str
    questions: int
    context: int
    tokens: int
    per_second: float
    low: float
    high: float
    speedup: float
    speedup_low: float
    speedup_high: float
    difference: float | None


def measure(
    reader: Reader,
    contender: Contender,
    *,
    questions: int = 8,
    context: int = 2048,
    tokens: int = 32,
    repeats: int = 5,
    store: str = "warm",
    progress: Progress = ignore_progress,
) -> list[Throughput]:
    """Answer the same questions in every way, taking turns, after a warm-up of each.

    Parameters
    ----------
    reader : Reader
        From `random_reader` or `checkpoint_reader`.
    contender : Contender
        Who answers.
    questions : int
        How many at once.
    context : int
        Tokens of each question's chunks; a multiple of `CHUNK`.
    tokens : int
        Tokens of each answer; 1 leaves the first token's time alone.
    repeats : int
        Turns of each way.
    store : str
        As in `ragcache_bench.speed.latency.measure`.
    progress : callable
        Called with stage, done, total.

    Raises
    ------
    InvalidArgument
        If the context is no multiple of the chunk size.
    """
    whole(context, CHUNK)
    each = context // CHUNK
    with at_hand(reader, store) as index:
        chunks = filled(index, [contender], random_texts(questions * each), progress)
        engine = Engine(reader, index)
        texts = [question(index, number) for number in range(questions)]
        apart: list[Pair] = [(text, chunks[i * each : (i + 1) * each]) for i, text in enumerate(texts)]
        alike: list[Pair] = [(text, chunks[:each]) for text in texts]
        how = {"method": contender.method, "recompute": contender.recompute}
        ways = [
            partial(way, engine, pairs, Sampling(max_new_tokens=tokens), how)
            for pairs in (apart, alike)
            for way in (_one_by_one, _at_once)
        ]
        taken = _turns(ways, repeats, progress)
        differences = [None, _difference(engine, apart, how), None, _difference(engine, alike, how)]
    found = []
    for number, way in enumerate(WAYS):
        alone = taken[number - number % 2]
        speedups = [one / mine for one, mine in zip(alone, taken[number], strict=True)]
        rates = [questions / seconds for seconds in taken[number]]
        row = Throughput(
            contender.method.name, contender.recompute, way, questions, context, tokens,
            median(rates), min(rates), max(rates), median(speedups), min(speedups), max(speedups), differences[number],
        )  # fmt: skip
        found.append(row)
    return found


def _one_by_one(engine: Engine, pairs: Sequence[Pair], sampling: Sampling, how: Mapping[str, Any]) -> None:
    for text, chunks in pairs:
        engine.answer(text, chunks, sampling=sampling, **how)


def _at_once(engine: Engine, pairs: Sequence[Pair], sampling: Sampling, how: Mapping[str, Any]) -> None:
    engine.answers(pairs, sampling=sampling, **how)


def _difference(engine: Engine, pairs: Sequence[Pair], how: Mapping[str, Any]) -> float:
    """The largest one between any first token's logits at once and alone."""

    def prefill(build: Callable[[], Request]) -> Prefilled:
        request = build()
        return choose_strategy(request.method).prefill(request, engine.index)

    requests = engine.requests.from_pairs(pairs, RequestOptions(sampling=Sampling(max_new_tokens=1), **how))
    at_once = engine.reader.run_batch([partial(prefill, build) for build in requests])
    alone = [engine.prefill(*pair, **how) for pair in pairs]
    return max(float((a.logits - b.logits).abs().max()) for a, b in zip(at_once, alone, strict=True))


def _turns(ways: Sequence[Callable[[], None]], repeats: int, progress: Progress) -> list[list[float]]:
    """Seconds of every way's turns."""
    taken: list[list[float]] = [[] for _ in ways]
    for turn in range(-1, repeats):  # the turn before the first warms up
        for way, mine in zip(ways, taken, strict=True):
            began = perf_counter()
            way()
            if turn >= 0:
                mine.append(perf_counter() - began)
        progress("measure", turn + 1, repeats)
    return taken
