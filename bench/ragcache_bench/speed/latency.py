"""Time to the first token at a context length, next to what its arithmetic would take at full prefill's speed."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from statistics import median

from ragcache.engine.engine import Engine
from ragcache.errors import InvalidArgument
from ragcache.index.chunks import Chunk
from ragcache.index.index import MEMORY_BYTES, Index
from ragcache.model.reader import Reader
from ragcache.report import Progress, ignore_progress
from ragcache.store import Codec
from ragcache_bench.asking import charged
from ragcache_bench.contenders import Contender
from ragcache_bench.speed.clock import milliseconds
from ragcache_bench.speed.machine import give_back
from ragcache_bench.speed.peers import Peer
from ragcache_bench.speed.runners import STORES, Runner, Taken, Turn, line_up, shuffled, with_full
from ragcache_bench.speed.shapes import CHUNK, filled, question, random_texts, whole

STAGES = ("load", "place", "select", "prefill")
_PROBE = [5]  # any token
_MIB = 1 << 20


@dataclass(frozen=True)
class Latency:
    """Time to the first token of one method, or of a peer, at one context length.

    Attributes
    ----------
    context, chunk : int
        Tokens of all chunks, and of each.
    method, recompute : str, float or None
        Row of the table or a peer's name, nominal share.
    store : str or None
        Where our KV was: of `STORES`; None for a peer.
    charged, charged_flops : float or None
        As in `Record`; the FLOPs are the share of full prefill's time that an ideal machine would need.
    ttft_ms, ttft_low_ms, ttft_high_ms : float
        Median, least and most over the repeats.
    speedup, speedup_low, speedup_high : float
        Full prefill's time over this one's, pair by pair: median, least, most.
    ideal_ms : float or None
        An estimate: the FLOPs at full prefill's own speed, and a pass over the weights for every forward.
    memory_mib : float or None
        Most memory while it answered for the first time, over what the process held before, with what earlier answers
        left behind given back; of the host, where it says so.
    context_mib : float
        K and V of the context.
    load_ms, place_ms, select_ms, prefill_ms : float or None
        Medians of the stages.
    """

    context: int
    chunk: int
    method: str
    recompute: float | None
    store: str | None
    charged: float | None
    charged_flops: float | None
    ttft_ms: float
    ttft_low_ms: float
    ttft_high_ms: float
    speedup: float
    speedup_low: float
    speedup_high: float
    ideal_ms: float | None
    memory_mib: float | None
    context_mib: float
    load_ms: float | None
    place_ms: float | None
    select_ms: float | None
    prefill_ms: float | None


def measure(
    reader: Reader,
    field: Sequence[Contender],
    context: int,
    *,
    chunk: int = CHUNK,
    repeats: int = 5,
    store: str = "warm",
    peers: Sequence[Peer] = (),
    progress: Progress = ignore_progress,
) -> list[Latency]:
    """Time full prefill, every contender and every peer on the same prompts, taking turns, after a warm-up of each.

    Every turn has another question and its chunks in another order, as far as there are others: what answers from the
    beginning of an earlier prompt finds what a first chunk that comes back leaves it, unless its order is always the
    same. Peers begin with nothing. Who follows whom changes from turn to turn.

    Parameters
    ----------
    reader : Reader
        From `random_reader` or `checkpoint_reader`.
    field : sequence of Contender
        Full prefill always takes part.
    context : int
        Tokens of all chunks; a multiple of one chunk's.
    chunk : int
        Tokens of each chunk.
    repeats : int
        Turns of each.
    store : str
        "memory" keeps loaded blobs; "warm" reads files that lie in the page cache; "cold" drops them from it first.
    peers : sequence of Peer
        What people run instead.
    progress : callable
        Called with stage, done, total.

    Raises
    ------
    InvalidArgument
        If the context is no multiple of the chunk size, or the store none of `STORES`.
    """
    whole(context, chunk)
    everyone = with_full(field)
    with at_hand(reader, store) as index:
        chunks = filled(index, everyone, random_texts(context // chunk, chunk, seed=context + chunk), progress)
        for peer in peers:
            peer.reset()
        runners = line_up(Engine(reader, index), everyone, store, peers)
        taken = _turns(index, runners, chunks, repeats, progress)
        weights = weights_ms(reader, repeats)
    full = [turn.ms for turn in taken[0][1:]]
    size = context * reader.bytes_per_token / _MIB
    return [
        _latency(context, chunk, store, one, mine, full, weights, size)
        for one, mine in zip(runners, taken, strict=True)
    ]


@contextmanager
def at_hand(reader: Reader, store: str, codec: Codec | None = None) -> Iterator[Index]:
    """A temporary index whose KV is where the store says, written by a codec."""
    if store not in STORES:
        raise InvalidArgument(f"{store!r} is no store; name one of {', '.join(STORES)}")
    budget = 16 * MEMORY_BYTES if store == "memory" else 0
    with (
        tempfile.TemporaryDirectory(prefix="ragcache-bench-") as folder,
        Index(folder, reader, memory_bytes=budget, codec=codec) as index,
    ):
        yield index


def weights_ms(reader: Reader, repeats: int) -> float:
    """Milliseconds of one pass over the weights: a forward of one token that sees only itself, logits included."""
    taken = [milliseconds(lambda: reader.stock(_PROBE)[0]) for _ in range(repeats + 1)]
    return median(taken[1:])  # the first warms up


def _turns(
    index: Index, runners: Sequence[Runner], chunks: Sequence[Chunk], repeats: int, progress: Progress
) -> list[list[Taken]]:
    """Everybody's turns, in ever other orders; the first one warms up, and is there for its memory only."""
    taken: list[list[Taken]] = [[] for _ in runners]
    everyone = range(len(runners))
    for turn in range(repeats + 1):
        prompt = Turn.of(index, question(index, turn), shuffled(chunks, turn))
        lap, first = divmod(turn - 1, len(runners))  # in a lap each is first once; in the next they stand otherwise
        order = Random(lap).sample(everyone, len(runners))
        for number in order[first:] + order[:first]:
            if turn == 0:
                give_back()
            taken[number].append(runners[number].run(prompt))
        progress("measure", turn, repeats)
    return taken


def _latency(
    context: int,
    chunk: int,
    store: str,
    one: Runner,
    turns: Sequence[Taken],
    full: Sequence[float],
    weights: float,
    size: float,
) -> Latency:
    first, *taken = turns
    times = [turn.ms for turn in taken]
    speedups = [other / mine for other, mine in zip(full, times, strict=True)]
    reports = [turn.report for turn in taken if turn.report is not None]
    report = reports[0] if reports else None
    passes = taken[0].passes
    stages = [median(getattr(each.ms, stage) for each in reports) if reports else None for stage in STAGES]
    flops = report.charged_flops if report else None
    ideal = None
    if flops is not None and passes is not None:  # full prefill's own time has its pass over the weights in it
        ideal = median(full) if one.method == "full" else flops * median(full) + passes * weights
    return Latency(
        context, chunk, one.method, one.recompute, store if report else None,
        charged(report) if report else None, flops,
        median(times), min(times), max(times), median(speedups), min(speedups), max(speedups), ideal,
        None if first.peak is None else first.peak / _MIB, size, *stages,
    )  # fmt: skip
