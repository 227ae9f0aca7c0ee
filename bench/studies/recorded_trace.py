"""A recorded trace, all of it: what each cache finds of every question, and how soon the first token comes then.

    python bench/studies/recorded_trace.py --data ragpulse:RAGPulse/data --shape MODEL --dtype float32 \
        --out docs/benchmarks/recorded-trace.json

What a cache finds depends on sizes and on what was asked before, not on what the chunks say. So the whole trace is
walked through with sizes in the place of KV: exact prefix caches (least recently used goes first) with chunks in the
retrieved order, sorted, and in ContextPilot's, and our store of chunks, filled at ingestion as far as it goes, by the
function that an index evicts with. All have the same number of bytes: a share of the KV of all chunks there are.

Then questions at equal distances over the trace are answered, each cache holding of a question's chunks what the walk
says, by everybody in turns. So these times are those of caches that have seen all that was asked before. They are the
processor's, which other programs leave as they are: with one thread, what a clock says where there are none. A prefix
cache takes what it finds, or prefills everything, whichever is sooner. ContextPilot is told what its cache lets go of;
its ordering is timed in the walk and counted. Each chunk is a document; one that lacks is made, and written to the
store, within the time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean
from time import process_time
from typing import Annotated, Any

import numpy as np
import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import numbers, use_threads, write
from ragcache_bench.commands.speed import shaped
from ragcache_bench.contenders import Contender
from ragcache_bench.markdown import made_by, table
from ragcache_bench.metrics import bootstrap_ratio
from ragcache_bench.records import Journal
from ragcache_bench.speed.latency import at_hand
from ragcache_bench.speed.peers import PrefixCache
from ragcache_bench.speed.peers.contextpilot import ContextPilotOrder
from ragcache_bench.speed.runners import Turn
from ragcache_bench.speed.shapes import PREFIX, filled_alike, question, sized_texts
from ragcache_bench.speed.simulation import SimulatedPrefixCache, SimulatedStore, Sized
from ragcache_bench.speed.trace import Recorded, read_trace
from ragcache_cli.terminal import progress

from ragcache.engine.engine import Engine
from ragcache.errors import InvalidArgument
from ragcache.methods import METHODS
from ragcache.model.reader import Reader
from ragcache.report import Progress, ignore_progress

FULL = Contender(METHODS["full"])
ROWS = (Contender(METHODS["naive"]), Contender(METHODS["auto"], 0.05), Contender(METHODS["fusionrag"], 0.15))
CHUNKS = "chunks"  # the cache that all our rows have
PREFIXES = ("prefix cache", "prefix cache, sorted", "prefix cache, ContextPilot's order")
_MIB = 1 << 20


@dataclass(frozen=True)
class State:
    """Of one question in one cache.

    Attributes
    ----------
    order : tuple of int
        Its chunks, as they stand in the prompt.
    found : tuple of int
        Those that are there, in that order.
    order_ms : float
        Of the processor, for ordering them.
    """

    order: tuple[int, ...]
    found: tuple[int, ...]
    order_ms: float = 0.0


@dataclass(frozen=True)
class Walked:
    """A cache that was walked through the trace: its name and size, its states, and the most bytes that it held."""

    cache: str
    size: float | None
    states: Sequence[State]
    most: int


def main(
    data: Annotated[str, typer.Option(help="The trace, ragpulse:FOLDER.")],
    sizes: Annotated[
        str, typer.Option(help="Of each cache, in shares of the KV of all chunks.")
    ] = "0.01,0.03,0.1,0.3,1",
    timed: Annotated[int, typer.Option(help="Questions that are answered.")] = 24,
    timed_sizes: Annotated[str, typer.Option(help="Of the sizes, those that are timed.")] = "0.01,0.1,1",
    shape: Annotated[str, typer.Option(help="Sizes of the model that is timed, or a checkpoint.")] = "qwen2.5-0.5b",
    dtype: Annotated[str, typer.Option(help="Of its weights.")] = "bfloat16",
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    out: Annotated[Path, typer.Option(help="JSON to write; a table and the times go beside it.")] = Path("trace.json"),
) -> None:
    """Walk through the trace with every cache of every size, and time some of its questions."""
    use_threads(threads)
    trace, reader = read_trace(data), shaped(shape, dtype, "cpu", threads)
    with progress() as shown:
        shares, wanted = numbers(sizes, float), numbers(timed_sizes, float)
        if unknown := [*set(wanted) - set(shares), *(share for share in shares if not share > 0)]:
            raise InvalidArgument(
                f"{unknown[0]:g} cannot be timed; give --sizes above 0, and --timed-sizes out of them"
            )
        walked = list(walk(trace, reader, shares, ContextPilotOrder, shown))
        chosen = [one for one in walked if one.size in wanted]
        asked = np.linspace(0, len(trace.prompts) - 1, timed).round().astype(int).tolist() if timed else []
        times = time_states(reader, trace, chosen, asked, Journal(out.with_suffix(".jsonl")), shown)
    rows = [row for one in walked for row in tell(trace, one, times)]
    about = report.meta(**report.about_reader(reader), shape=shape, trace=trace.about, timed=len(asked))
    write(out, {"meta": about, "rows": rows})
    out.with_suffix(".md").write_text(markdown(rows, about), encoding="utf-8")
    typer.echo(markdown(rows, about))


# -- what is found ---------------------------------------------------------------------------------------------------
def walk(
    trace: Recorded,
    reader: Reader,
    sizes: Sequence[float],
    pilot: Callable[[], ContextPilotOrder],
    shown: Progress = ignore_progress,
) -> Iterator[Walked]:
    """Every cache of every size, through the whole trace; prefix caches also without a limit."""
    nbytes = {str(chunk): tokens * reader.bytes_per_token for chunk, tokens in enumerate(trace.lengths)}
    whole = sum(nbytes.values())
    dims, total = reader.dims, (len(sizes) + 1) * len(PREFIXES) + len(sizes)
    known: list[Sized] = [
        (
            str(chunk),
            nbytes[str(chunk)],
            dims.forward(torch.arange(PREFIX, PREFIX + tokens), range(dims.layers), logits=False),
        )
        for chunk, tokens in enumerate(trace.lengths)
    ]
    done = 0
    for size in (*sizes, None):
        limit = int((len(trace.prompts) if size is None else size) * whole)
        for name in PREFIXES:
            prefixes = SimulatedPrefixCache(limit, nbytes)
            states = list(_found_of_prompts(trace, name, prefixes, pilot))
            yield Walked(name, size, states, prefixes.most)
            shown("walk", done := done + 1, total)
        if size is not None:
            store, states = SimulatedStore(limit), list[State]()
            store.fill(known)
            for number, prompt in enumerate(trace.prompts, 1):
                there = store.ask([known[chunk] for chunk in prompt], number)
                states.append(State(tuple(prompt), tuple(chunk for chunk in prompt if str(chunk) in there)))
            yield Walked(CHUNKS, size, states, store.most)
            shown("walk", done := done + 1, total)


def _found_of_prompts(
    trace: Recorded, name: str, prefixes: SimulatedPrefixCache, pilot: Callable[[], ContextPilotOrder]
) -> Iterator[State]:
    """What a prefix cache finds of each question, with its chunks in the order that it has them in."""
    order = pilot() if name == PREFIXES[2] else None
    for prompt in trace.prompts:
        placed, ms = tuple(sorted(prompt) if name == PREFIXES[1] else prompt), 0.0
        if order is not None:
            began = process_time()
            placed = tuple(map(int, order([str(chunk) for chunk in prompt])))
            ms = (process_time() - began) * 1e3
        found = prefixes.ask([str(chunk) for chunk in placed])
        if order is not None:
            for gone in prefixes.gone:
                order.forget(gone)
        yield State(placed, placed[:found], ms)


# -- how long it takes -----------------------------------------------------------------------------------------------
Times = Mapping[tuple[str, float | None], Mapping[int, float]]  # of who and size: question, ms


def time_states(
    reader: Reader,
    trace: Recorded,
    walked: Sequence[Walked],
    asked: Sequence[int],
    journal: Journal,
    shown: Progress = ignore_progress,
) -> Times:
    """Milliseconds to the first token of some questions, by everybody with every cache; equal states are timed once."""
    times: dict[tuple[str, float | None], dict[int, float]] = {}
    rows = [f"{row.name} {row.recompute}" for row in ROWS]
    key = [reader.fingerprint, str(torch.get_num_threads()), repr(trace), *rows]
    for which in asked[:1]:
        _time(reader, trace, which, _wanted(trace, walked, which))  # warms up
    for number, which in enumerate(asked, 1):
        states = _wanted(trace, walked, which)
        parts = [*key, str(which), *sorted(_named(*state) for state in states.values())]
        found: dict[str, float] = journal.recall(parts, partial(_time, reader, trace, which, states))
        for who, (name, state) in states.items():
            ms = found[_named(name, state)]
            if name == PREFIXES[0]:
                ms = min(ms, found[name])  # what is found may cost more than it saves
            times.setdefault(who, {})[which] = ms + state.order_ms
        shown("measure", number, len(asked))
    return times


def _wanted(trace: Recorded, walked: Sequence[Walked], which: int) -> dict[tuple[str, float | None], tuple[str, State]]:
    """Who answers a question with what size of cache, by which name they are timed, and in which state."""
    prompt = tuple(trace.prompts[which])
    wanted: dict[tuple[str, float | None], tuple[str, State]] = {
        ("full", None): ("full", State(prompt, ())), (PREFIXES[0], 0.0): (PREFIXES[0], State(prompt, ())),
    }  # fmt: skip
    for one in walked:
        state = one.states[which]
        if one.cache == CHUNKS:
            wanted |= {(row.name, one.size): (row.name, state) for row in ROWS}
        else:
            wanted[one.cache, one.size] = PREFIXES[0], state
    return wanted


def _named(name: str, state: State) -> str:
    """States that take the same time have the same name."""
    if name == PREFIXES[0]:
        return f"{name}: {state.order}, {len(state.found)}" if state.found else name
    return f"{name}: {state.found}" if name != "full" else name


def _time(
    reader: Reader, trace: Recorded, which: int, states: Mapping[tuple[str, float | None], tuple[str, State]]
) -> dict[str, float]:
    """Milliseconds of each state of a question, one after the other in an order of its own."""
    wanted = {_named(name, state): (name, state) for name, state in states.values()}
    places = {chunk: place for place, chunk in enumerate(trace.prompts[which])}
    rows = {one.name: one for one in (FULL, *ROWS)}
    fields = {label: rows.get(name, FULL) for label, (name, _) in wanted.items()}
    documents = [[text] for text in sized_texts([trace.lengths[chunk] for chunk in places], seed=which)]
    taken = {}
    with ExitStack() as stack:
        indexes = {label: stack.enter_context(at_hand(reader, "warm")) for label in wanted}
        filling = [(indexes[label], [fields[label]]) for label in wanted]
        chunks = dict(zip(wanted, filled_alike(filling, documents, ignore_progress), strict=True))
        for label in Random(which).sample([*wanted], len(wanted)):
            (name, state), index, row = wanted[label], indexes[label], fields[label]
            index.prefix()  # which all have before the first question
            turn = Turn.of(index, question(index, which), [chunks[label][places[chunk]] for chunk in state.order])
            if name == PREFIXES[0]:
                taken[label] = _time_prefixes(reader, turn, len(state.found))
                continue
            missing = [chunks[label][places[chunk]].id for chunk in state.order if chunk not in state.found]
            index.evict([*index.catalog.keys_of_chunks(missing)])
            answer = partial(Engine(reader, index).prefill, turn.question, turn.chunks, method=row.method)
            taken[label] = _processor_ms(partial(answer, recompute=row.recompute))
    return taken


def _time_prefixes(reader: Reader, turn: Turn, found: int) -> float:
    """Milliseconds of a prefix cache that knows the system prefix, and so many of a prompt's chunks."""
    peer = PrefixCache(reader, least=0.0)
    if found:
        peer.first_token([*turn.parts[: 1 + found], []])
    return _processor_ms(partial(peer.first_token, turn.parts))


def _processor_ms(work: Callable[[], object]) -> float:
    began = process_time()
    work()
    return (process_time() - began) * 1e3


# -- what is said of it ----------------------------------------------------------------------------------------------
def tell(trace: Recorded, walked: Walked, times: Times) -> Iterator[dict[str, Any]]:
    """A row for a prefix cache; for our store one for each of our methods."""
    whole = [sum(trace.lengths[chunk] for chunk in state.order) for state in walked.states]
    found = [sum(trace.lengths[chunk] for chunk in state.found) for state in walked.states]
    fifths = np.array_split(np.array([found, whole]), 5, axis=1)
    same: dict[str, Any] = {
        "cache": walked.size, "most_bytes": walked.most, "found": asdict(bootstrap_ratio(found, whole)),
        "over_time": [float(part[0].sum() / part[1].sum()) for part in fifths],
    }  # fmt: skip
    for row in ROWS if walked.cache == CHUNKS else (None,):
        name = row.name if row else walked.cache
        told = {"method": name, "recompute": row.recompute if row else None, **same}
        if (name, walked.size) in times:
            told |= _taken(times, name, walked.size)
        yield told


def _taken(times: Times, name: str, size: float | None) -> dict[str, Any]:
    mine = times[name, size]
    ms = [mine[which] for which in mine]
    told: dict[str, Any] = {"mean_ms": fmean(ms), "p95_ms": float(np.percentile(ms, 95))}
    others = {"full": ("full", None), **{one: (one, size) for one in PREFIXES}}
    told["sooner"] = {
        one: asdict(bootstrap_ratio([times[key][which] for which in mine], ms)) for one, key in others.items()
    }
    return told


_HEAD = (
    "method", "recompute", "cache, of all KV", "MiB held", "found (95 %)", "in fifths", "TTFT ms", "p95 ms",
    "sooner than full prefill (95 %)", "than the prefix cache", "sorted", "in ContextPilot's order",
)  # fmt: skip


def markdown(rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> str:
    """The same for people."""
    trace = about["trace"]
    head = (
        f"{trace['name']}: {trace['questions']:,} questions with {trace['tokens']:,.0f} tokens of chunks each, out of "
        f"{trace['pool']:,} chunks. {trace['seen_before']:.1%} of these tokens were asked for before, "
        f"{trace['begin_alike']:.1%} as the beginning of a prompt. {about['timed']} questions were timed.\n"
    )
    return "\n".join([made_by(about), head, table(_HEAD, [_cells(row) for row in rows])])


def _cells(row: Mapping[str, Any]) -> list[Any]:
    sooner = ["{mean:.2f} [{low:.2f}, {high:.2f}]".format(**one) for one in row.get("sooner", {}).values()]
    return [
        row["method"], row["recompute"], "no limit" if row["cache"] is None else f"{row['cache']:g}",
        f"{row['most_bytes'] / _MIB:,.0f}", "{mean:.3f} [{low:.3f}, {high:.3f}]".format(**row["found"]),
        ", ".join(f"{share:.2f}" for share in row["over_time"]),
        *((f"{row['mean_ms']:,.0f}", f"{row['p95_ms']:,.0f}", *sooner) if sooner else [None] * 6),
    ]  # fmt: skip


if __name__ == "__main__":
    typer.run(main)
