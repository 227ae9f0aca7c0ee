"""RAGCache's tree of exact prefixes over a trace: what is hit, and how soon, by PGDSF, by LRU, and with no tree.

    python bench/studies/prefix_tree.py --out docs/benchmarks/prefix-tree.json
    python bench/studies/prefix_tree.py --data ragpulse:RAGPulse/data --out docs/benchmarks/prefix-tree-ragpulse.json

A tree's nodes depend on the order of chunks and on sizes, not on what the chunks say. So a trace is walked through with
rows in the place of KV, by the functions that the engine evicts and finds paths with, for every limit on the bytes. How
long a prompt takes is measured through the engine, on a shape with random weights, for each number of chunks that a
path may have; a question's time is the median of those with its hits, between two of them by its FLOPs. The first
questions are answered through the engine as well, with KV: `replayed` has both times and both counts of hits. Times are
the processor's, which other programs on the machine leave as they are: with one thread, what a clock says where there
are none.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from time import process_time
from typing import Annotated, Any

import numpy as np
import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import numbers, use_threads, write
from ragcache_bench.commands.speed import shaped
from ragcache_bench.markdown import made_by, table
from ragcache_bench.metrics import bootstrap, bootstrap_ratio
from ragcache_bench.records import Journal
from ragcache_bench.speed.latency import at_hand
from ragcache_bench.speed.shapes import PREFIX, QUESTION, question, random_texts
from ragcache_bench.speed.trace import Requests, Trace, read_trace
from ragcache_cli.terminal import progress

from ragcache import Sampling
from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.index.prefix_tree import choose_leaves, find_longest_path
from ragcache.layout import LongestPath
from ragcache.methods import METHODS
from ragcache.model.cost import ModelDims
from ragcache.model.reader import Reader
from ragcache.report import Progress
from ragcache.store import EncodingRow

POLICIES = ("pgdsf", "lru")
ROW = METHODS["ragcache"]
_ROOT = ("system prefix",)
_ONE = Sampling(max_new_tokens=1)
_HEAD = (
    "order", "eviction", "limit", "MiB held", "nodes", "hits (95 %)", "hits, last fifth", "hits - LRU's (95 %)",
    "FLOPs", "TTFT, processor ms", "sooner (95 %)",
)  # fmt: skip

Prompts = Sequence[Sequence[str]]  # chunk ids of each question


@dataclass
class Tree:
    """A tree of nodes without their KV.

    Attributes
    ----------
    dims : ModelDims
        Of the model, for the cost of a node.
    tokens : mapping of str to int
        Of each chunk.
    token_bytes : int
        KV bytes of a token.
    limit : int
        Most bytes.
    policy : str
        One of `POLICIES`.
    reorder : bool
        Whether the longest path may stand in front, as `LongestPath` has it.
    """

    dims: ModelDims
    tokens: Mapping[str, int]
    token_bytes: int
    limit: int
    policy: str = "pgdsf"
    reorder: bool = False
    nodes: dict[str, EncodingRow] = field(default_factory=dict)
    clock: float = 0.0
    asked: int = 0

    def ask(self, chunks: Sequence[str]) -> tuple[int, float]:
        """Tokens of a prompt's chunks that the tree has, and FLOPs of the rest; its other chunks become nodes."""
        self.asked += 1
        if self.reorder:
            path = find_longest_path(chunks, _ROOT, self._rows)
            chunks = [*path, *(chunk for chunk in chunks if chunk not in path)]
        keys = ["/".join(chunks[: end + 1]) for end in range(len(chunks))]
        hits = next((number for number, key in enumerate(keys) if key not in self.nodes), len(keys))
        reused, context = (sum(self.tokens[chunk] for chunk in part) for part in (chunks[:hits], chunks))
        work = prompt_flops(self.dims, context, reused)
        for number, (chunk, key) in enumerate(zip(chunks, keys, strict=True)):
            if number >= hits:
                about, size = {"cost": work / (context - reused + QUESTION)}, self.tokens[chunk] * self.token_bytes
                self.nodes[key] = EncodingRow(chunk, "tree", key, (*_ROOT, *keys[:number]), size, "", 0.0, 0.0, about)
            self._visit(key)
        self._trim()
        return reused, work

    @property
    def held(self) -> int:
        """Bytes of all nodes."""
        return sum(node.nbytes for node in self.nodes.values())

    def _rows(self, chunk: str) -> list[EncodingRow]:
        return [node for node in self.nodes.values() if node.chunk == chunk]

    def _visit(self, key: str) -> None:
        about = self.nodes[key].about or {}
        uses = about.get("uses", 0) + 1
        worth = self.asked if self.policy == "lru" else self.clock + uses * about["cost"]
        self.nodes[key] = replace(self.nodes[key], about={**about, "uses": uses}, worth=worth)

    def _trim(self) -> None:
        sizes = {key: node.nbytes for key, node in self.nodes.items()}
        for key in choose_leaves(self.nodes.values(), sizes, self.limit):
            self.clock = max(self.clock, self.nodes.pop(key).worth)


def prompt_flops(dims: ModelDims, context: int, reused: int = 0) -> float:
    """FLOPs of a prompt with so many tokens of chunks, the first of which are loaded, as the prefix is."""
    new = torch.arange(PREFIX + reused, PREFIX + context + QUESTION)
    return dims.forward(new, range(dims.layers), logits=True)


def main(
    n: Annotated[int, typer.Option(help="Questions.")] = 500,
    chunks: Annotated[int, typer.Option(help="Chunks of a question.")] = 5,
    tokens: Annotated[int, typer.Option(help="Tokens of a chunk.")] = 128,
    pool: Annotated[int, typer.Option(help="Chunks there are.")] = 200,
    data: Annotated[str | None, typer.Option(help="A recorded trace, ragpulse:FOLDER, in its order.")] = None,
    limits: Annotated[str, typer.Option(help="Of the tree, in KV of all chunks once.")] = "0.1,0.25,0.5,1,2,4",
    shape: Annotated[str, typer.Option(help="Sizes of the model that is timed.")] = "qwen2.5-0.5b",
    dtype: Annotated[str, typer.Option(help="Of its weights.")] = "bfloat16",
    repeats: Annotated[int, typer.Option(help="Measurements for each number of chunks on a path; 0 for none.")] = 5,
    replay: Annotated[int, typer.Option(help="Questions that are answered through the engine, too.")] = 30,
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    out: Annotated[Path, typer.Option(help="JSON to write; a table and the times go beside it.")] = Path("tree.json"),
) -> None:
    """Walk the trace for every limit, and time prompts by the chunks that are hit."""
    use_threads(threads)
    trace = Trace(n, chunks, tokens, pool)
    asked = read_trace(data, n).only_asked() if data else trace
    prompts, lengths = named(asked)
    reader, journal = shaped(shape, dtype, "cpu", threads), Journal(out.with_suffix(".jsonl"))
    where = [reader.fingerprint, str(torch.get_num_threads()), repr(trace)]
    tree = partial(Tree, reader.dims, lengths, reader.bytes_per_token)
    whole = sum(lengths.values()) * reader.bytes_per_token
    with progress() as shown:
        parts = [*where, "times", str(repeats)]
        times = journal.recall(parts, lambda: _time(reader, trace, repeats, shown)) if repeats else None
        rows = list(_rows(partial(_walk, tree, prompts, lengths), whole, numbers(limits, float), times))
        parts = [*where, "replay", str(replay)]
        told = (
            []
            if data or times is None
            else journal.recall(parts, lambda: _replay(reader, trace, replay, tree, times, shown))
        )
    given: dict[str, Any] = {"trace": asked.about, "questions": len(prompts), "chunks": len(lengths)}
    about = report.meta(**report.about_reader(reader), **given, times=times, replayed=told)
    write(out, {"meta": about, "rows": rows})
    out.with_suffix(".md").write_text(markdown(rows, about), encoding="utf-8")
    typer.echo(markdown(rows, about))


# -- what is asked ---------------------------------------------------------------------------------------------------
def named(trace: Requests) -> tuple[Prompts, dict[str, int]]:
    """The chunk ids of each question, and the tokens of all chunks."""
    prompts = [[str(chunk) for chunk in row] for row in trace.prompts]
    return prompts, {str(chunk): tokens for chunk, tokens in enumerate(trace.lengths)}


# -- what is hit -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Walked:
    """Of each question the tokens of its chunks, those of them that were hit, its FLOPs, full prefill's; the tree."""

    context: list[int]
    reused: list[int]
    flops: list[float]
    full: list[float]
    tree: Tree

    @property
    def hits(self) -> list[float]:
        """Shares of the chunks' tokens."""
        return [reused / context for reused, context in zip(self.reused, self.context, strict=True)]


def _walk(
    tree: Callable[..., Tree], prompts: Prompts, lengths: Mapping[str, int], limit: int, policy: str, reorder: bool
) -> Walked:
    grown = tree(limit, policy, reorder)
    context = [sum(lengths[chunk] for chunk in prompt) for prompt in prompts]
    reused, flops = zip(*map(grown.ask, prompts), strict=True)
    return Walked(context, [*reused], [*flops], [prompt_flops(grown.dims, tokens) for tokens in context], grown)


def _rows(
    walk: Callable[..., Walked], whole: int, shares: Sequence[float], times: Mapping[str, Any] | None
) -> Iterator[dict[str, Any]]:
    """A row for every order, limit and policy; without a limit nothing is evicted."""
    for reorder in (False, True):
        for share in (*shares, None):
            limit = sys.maxsize if share is None else int(share * whole)
            found = {policy: walk(limit, policy, reorder) for policy in (POLICIES if share is not None else ("lru",))}
            for policy, one in found.items():
                gain = bootstrap([a - b for a, b in zip(one.hits, found["lru"].hits, strict=True)])
                yield {
                    "reorder": reorder, "policy": None if share is None else policy, "limit": share,
                    "nodes": len(one.tree.nodes), "bytes": one.tree.held,
                    "hits": asdict(bootstrap_ratio(one.reused, one.context)),
                    "over_time": [fmean(part) for part in _fifths(one.hits)], "gain": asdict(gain),
                    "flops": sum(one.flops) / sum(one.full), **(_ttft(one, times) if times else {}),
                }  # fmt: skip


def _fifths(values: Sequence[float]) -> list[Sequence[float]]:
    edges = [len(values) * part // 5 for part in range(6)]
    return [values[first:end] for first, end in pairwise(edges)]


def _ttft(walked: Walked, times: Mapping[str, Any]) -> dict[str, Any]:
    """Mean time to the first token, and how much sooner than with no tree, over the questions."""
    taken = milliseconds(walked.flops, times["flops"], [median(each) for each in times["tree"]])
    full = milliseconds(walked.full, [0.0, max(times["flops"])], [0.0, median(times["full"])])
    return {"ttft_ms": fmean(taken), "full_ms": fmean(full), "sooner": asdict(bootstrap_ratio(full, taken))}


def milliseconds(flops: Sequence[float], known: Sequence[float], ms: Sequence[float]) -> list[float]:
    """Times between those that are known, by FLOPs; more FLOPs than any of these take in proportion longer."""
    points = sorted(zip(known, ms, strict=True))
    most, longest = points[-1]
    between = np.interp(flops, [one for one, _ in points], [one for _, one in points])
    return [float(one) if work <= most else longest * work / most for one, work in zip(between, flops, strict=True)]


# -- how long it takes ----------------------------------------------------------------------------------------------
@contextmanager
def _filled(reader: Reader, trace: Trace) -> Iterator[tuple[Engine, list[Chunk]]]:
    """An engine over an index of random chunks, and those."""
    with at_hand(reader, "warm") as index:
        texts = random_texts(trace.pool + 2 * trace.chunks, trace.tokens)
        index.put("random words", "", [(text, 0, len(text)) for text in texts], {})
        yield Engine(reader, index), index.chunks([row.id for row in index.catalog.all_chunks()])


def _time(reader: Reader, trace: Trace, repeats: int, shown: Progress) -> dict[str, Any]:
    """The processor's ms with no tree, and with a path of 0, 1, … chunks, in turning order, after a warm-up of each."""
    taken: list[list[float]] = [[] for _ in range(trace.chunks + 2)]  # the last is full prefill
    flops = [0.0] * (trace.chunks + 1)
    with _filled(reader, trace) as (engine, chunks):
        path, others = chunks[: trace.chunks], chunks[trace.chunks : 2 * trace.chunks]
        engine.answer(question(engine.index), path, method=ROW, sampling=_ONE)  # makes the path
        for turn in range(repeats + 1):
            for place in range(turn, turn + len(taken)):
                which = place % len(taken)
                prompt = path if which > trace.chunks else [*path[:which], *others[which:]]
                row = METHODS["full"] if which > trace.chunks else ROW
                asked, began = question(engine.index, turn), process_time()
                engine.prefill(asked, prompt, method=row)
                taken[which].append((process_time() - began) * 1e3)
                if which <= trace.chunks:
                    flops[which] = prompt_flops(reader.dims, trace.chunks * trace.tokens, which * trace.tokens)
            shown("measure", turn, repeats)
    kept = [each[1:] for each in taken]
    return {"flops": flops, "tree": kept[:-1], "full": kept[-1]}


def _replay(
    reader: Reader, trace: Trace, count: int, tree: Callable[..., Tree], times: Mapping[str, Any], shown: Progress
) -> list[dict[str, Any]]:
    """The first questions answered through the engine, and what was worked out for them."""
    prompts, found = trace.prompts[:count], list[dict[str, Any]]()
    everything, lengths = named(trace)
    asked = everything[:count]
    for reorder in (False, True):
        walked = _walk(tree, asked, lengths, sys.maxsize, "pgdsf", reorder)
        own, taken = _answer(reader, trace, prompts, reorder, shown)
        found.append({
            "reorder": reorder, "questions": count, "hits": sum(own), "hits_worked_out": sum(walked.reused),
            "alike": own == walked.reused, "ttft_ms": fmean(taken), "ttft_worked_out": _ttft(walked, times)["ttft_ms"],
        })  # fmt: skip
    return found


def _answer(
    reader: Reader, trace: Trace, prompts: Sequence[Sequence[int]], reorder: bool, shown: Progress
) -> tuple[list[int], list[float]]:
    """Each question's tokens that were hit and its time to the first token, by the engine."""
    row, own, taken = replace(ROW, layout=LongestPath(reorder=reorder)), list[int](), list[float]()
    with _filled(reader, trace) as (engine, chunks):
        engine.answer(question(engine.index), chunks[-trace.chunks :], method=ROW, sampling=_ONE)  # warms up
        for number, prompt in enumerate(prompts, 1):
            asked = [chunks[i] for i in prompt]
            began = process_time()
            stream = engine.stream(question(engine.index, number), asked, method=row, sampling=_ONE)
            taken.append((process_time() - began) * 1e3)
            own.append(sum(chunk.tokens for chunk in stream.answer.report.chunks if chunk.cache == "exact"))
            shown("replay", number, len(prompts))
    return own, taken


# -- what is said of it ---------------------------------------------------------------------------------------------
def markdown(rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> str:
    """The same for people."""
    lines = [_times(about["times"])] if about["times"] else ["No times were measured.\n"]
    lines += [
        f"Answered through the engine, {one['questions']} questions{', reordered' if one['reorder'] else ''}: "
        f"{one['hits']:,} tokens hit ({one['hits_worked_out']:,} worked out), first token after {one['ttft_ms']:,.0f} "
        f"ms ({one['ttft_worked_out']:,.0f} worked out).\n"
        for one in about["replayed"] or ()
    ]
    return "\n".join([made_by(about), *lines, table(_HEAD, [_cells(row) for row in rows])])


def _times(times: Mapping[str, Any]) -> str:
    full, *tree = (f"{median(each):,.0f}" for each in (times["full"], *times["tree"]))
    return (
        f"Processor time: full prefill {full} ms; through the tree, by chunks hit from 0 on: {', '.join(tree)} ms "
        "(medians).\n"
    )


def _cells(row: Mapping[str, Any]) -> list[Any]:
    hits, gain, sooner = (
        "{mean:.3f} [{low:.3f}, {high:.3f}]".format(**row[name]) if name in row else None
        for name in ("hits", "gain", "sooner")
    )
    ttft = f"{row['ttft_ms']:,.0f}" if "ttft_ms" in row else None
    limit = "none" if row["limit"] is None else f"{row['limit']:g}"
    return ["longest path first" if row["reorder"] else "as retrieved", row["policy"], limit,
            f"{row['bytes'] / 2**20:.0f}", row["nodes"], hits, row["over_time"][-1], gain, f"{row['flops']:.2f}",
            ttft, sooner]  # fmt: skip


if __name__ == "__main__":
    typer.run(main)
