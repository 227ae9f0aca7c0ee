"""What is gained, and what thrown away, by prefilling a slow search's provisional chunks while it goes on?

    python bench/studies/speculation.py --out docs/benchmarks/speculation.json

The search is exact, over a table of vectors that is read in four equal steps; behind each it says what it has found so
far. Either the cells nearest to the question come first, as an inverted file probes them, or any rows do. `after` waits
for the last step, `ahead` begins on every list (RAGCache's dynamic speculative pipelining, 2404.12457); both search in
a thread of their own, on the same questions, in turning order. The model has a published shape and random weights, and
every chunk the same KV: times know no meaning.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from ragcache_bench import report
from ragcache_bench.commands.options import split, use_threads, write
from ragcache_bench.commands.speed import shaped
from ragcache_bench.markdown import made_by, table
from ragcache_bench.records import Journal
from ragcache_bench.speed.shapes import question, random_texts
from ragcache_cli.terminal import progress

from ragcache import RagCache, Sampling
from ragcache.encode import Alone, LeftContext
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.model.reader import Reader
from ragcache.report import Progress
from ragcache.retrieve import GivenEmbedder, Vectors

ORDERS = ("nearest", "any")
WAYS = ("after", "ahead")
STEPS = 4
_ONE = Sampling(max_new_tokens=1)
_HEAD = (
    "rows first", "method", "questions", "search ms", "final by step 1, 2, 3", "TTFT ms after", "TTFT ms ahead",
    "after / ahead", "begun", "kept early", "FLOPs thrown away", "time thrown away",
)  # fmt: skip

Rows = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Search:
    """An exact search by inner product, in steps.

    Attributes
    ----------
    rows : ndarray
        (cells, rows, width) fp32: a vector for each chunk, cell by cell.
    questions : mapping of str to ndarray
        (width,) fp32 by question.
    order : str
        Of `ORDERS`: the nearest cells first, or as they stand.
    chunks : mapping of int to Chunk
        By row, those that any question finds at any step.
    """

    rows: Rows
    questions: Mapping[str, NDArray[np.float32]]
    order: str
    chunks: Mapping[int, Chunk]

    def find(self, question: str, count: int) -> Iterator[list[int]]:
        """The best rows so far, best first, behind each step."""
        asked = self.questions[question]
        cells = len(self.rows)
        order = np.argsort(-(self.rows[:, :32].mean(1) @ asked)) if self.order == "nearest" else np.arange(cells)
        scores, found = np.empty(0, np.float32), np.empty(0, np.int64)
        for part in np.array_split(order, STEPS):
            for cell in part:
                scores = np.append(scores, self.rows[cell] @ asked)
                found = np.append(found, cell * self.rows.shape[1] + np.arange(self.rows.shape[1]))
                best = np.argsort(-scores, kind="stable")[:count]
                scores, found = scores[best], found[best]
            yield found.tolist()

    def retrieve(self, question: str, count: int) -> Iterable[Sequence[Chunk]]:
        """The same as chunks: an incremental retriever."""
        for rows in self.find(question, count):
            yield [self.chunks[row] for row in rows]


@dataclass(frozen=True)
class Final:
    """A search that says nothing before its last step."""

    search: Search

    def retrieve(self, question: str, count: int) -> Iterable[Sequence[Chunk]]:
        """One list."""
        *_, last = self.search.retrieve(question, count)
        yield last


def draw_table(cells: int, size: int, width: int, questions: Sequence[str], seed: int = 0) -> Search:
    """A table of vectors around the cells' centres, and questions each beside one of them; no chunks yet."""
    source = np.random.default_rng(seed)
    rows = source.standard_normal((cells, size, width), dtype=np.float32)
    rows += source.standard_normal((cells, 1, width), dtype=np.float32) / 2
    rows /= np.linalg.norm(rows, axis=2, keepdims=True)
    asked = {}
    for one in questions:
        beside = rows[source.integers(cells), source.integers(size)]
        asked[one] = beside + source.standard_normal(width, dtype=np.float32) / width**0.5
    return Search(rows, asked, ORDERS[0], {})


def main(
    n: Annotated[int, typer.Option(help="Questions, each a paired measurement.")] = 10,
    cells: Annotated[int, typer.Option(help="Of the table.")] = 2000,
    size: Annotated[int, typer.Option(help="Vectors of a cell.")] = 1000,
    width: Annotated[int, typer.Option(help="Of a vector.")] = 256,
    count: Annotated[int, typer.Option(help="Chunks to retrieve.")] = 5,
    tokens: Annotated[int, typer.Option(help="Of a chunk.")] = 128,
    methods: Annotated[str, typer.Option(help="Rows of the table, separated by commas.")] = "naive,prophetkv,full",
    shape: Annotated[str, typer.Option(help="Sizes of the model.")] = "qwen2.5-0.5b",
    dtype: Annotated[str, typer.Option(help="Of its weights.")] = "bfloat16",
    threads: Annotated[int | None, typer.Option(help="CPU threads, of the model and of the search each.")] = None,
    out: Annotated[Path, typer.Option(help="JSON to write; a table and the times go beside it.")] = Path("ahead.json"),
) -> None:
    """Ask every question both ways, by every method and in both orders of rows."""
    use_threads(threads)
    reader, journal = shaped(shape, dtype, "cpu", threads), Journal(out.with_suffix(".jsonl"))
    rows: list[dict[str, Any]] = []
    sizes: dict[str, Any] = {"cells": cells, "size": size, "width": width, "count": count, "tokens": tokens}
    with progress() as shown, open_empty(reader, 0) as rag:
        asked = [question(rag.index, number) for number in range(n + 1)]  # the first warms up
        drawn = draw_table(cells, size, width, asked)
        for order in ORDERS:
            if order == "any":
                np.random.default_rng(0).shuffle(drawn.rows.reshape(-1, width))  # in place: it is large
            lists = {one: list(replace(drawn, order=order).find(one, count)) for one in asked}
            search = replace(drawn, order=order, chunks=_put(rag.index, order, lists, tokens))
            for method in split(methods):
                key = [reader.fingerprint, str(torch.get_num_threads()), repr(sizes), order, method, str(n)]
                taken = journal.recall(key, partial(_measure, rag, search, method, asked, count, shown))
                rows.append({"order": order, "method": method, **_row(taken, [*lists.values()][1:])})
    about = report.meta(**report.about_reader(reader), questions=n, **sizes)
    write(out, {"meta": about, "rows": rows})
    out.with_suffix(".md").write_text(markdown(rows, about), encoding="utf-8")
    typer.echo(markdown(rows, about))


# -- what is asked ---------------------------------------------------------------------------------------------------
class _NoEmbedder:
    """Nothing is embedded: the search finds by itself."""

    name: str = "none"
    max_tokens: int | None = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.zeros((len(texts), 1), np.float32)


@contextmanager
def open_empty(reader: Reader, memory_bytes: int) -> Iterator[RagCache]:
    """An index with nothing in it, and that much memory for KV, as long as the block runs."""
    with tempfile.TemporaryDirectory(prefix="ragcache-bench-") as folder:
        index, vectors = Index(folder, reader, memory_bytes=memory_bytes), Vectors(Path(folder) / "vectors", "chunks")
        with RagCache(index, vectors, GivenEmbedder(_NoEmbedder()), method="naive", chunk_tokens=512, top_k=1) as rag:
            yield rag


def _put(index: Index, order: str, lists: Mapping[str, Sequence[Sequence[int]]], tokens: int) -> dict[int, Chunk]:
    """Chunks with KV for all rows of some lists."""
    rows = sorted({row for found in lists.values() for one in found for row in one})
    texts = random_texts(len(rows), tokens, seed=ORDERS.index(order))
    index.put(order, "", [(text, 0, len(text)) for text in texts], {})
    document = index.catalog.document_by_source(order)
    chunks = index.chunks([row.id for row in index.catalog.chunks_of(document.id if document else "")])
    kv = index.reader.encode(chunks[0].segment.token_ids)
    for chunk in chunks:
        index.save(chunk.id, Alone(), replace(kv, token_ids=chunk.segment.token_ids), LeftContext())
    return dict(zip(rows, chunks, strict=True))


def _measure(
    rag: RagCache, search: Search, method: str, asked: Sequence[str], count: int, shown: Progress
) -> list[dict[str, Any]]:
    """Every question both ways, who is first in turn; then its search alone."""
    taken = []
    for number, one in enumerate(asked):
        found: dict[str, Any] = {}
        for way in WAYS if number % 2 else WAYS[::-1]:
            retriever = search if way == "ahead" else Final(search)
            said = rag.ask(one, top_k=count, method=method, retriever=retriever, sampling=_ONE)
            told = said.report
            stages = told.ms.load + told.ms.place + told.ms.select + told.ms.prefill
            found[way] = {"ms": told.ms.first_token, "work_ms": stages, "flops": told.charged_flops,
                          "token": said.token_ids[0], **(told.as_dict()["speculation"] or {})}  # fmt: skip
        began = perf_counter()
        list(search.find(one, count))
        taken.append({**found, "search_ms": (perf_counter() - began) * 1e3})
        shown(f"{search.order}, {method}", number + 1, len(asked))
    return taken[1:]


# -- what is said of it ---------------------------------------------------------------------------------------------
def _row(taken: Sequence[Mapping[str, Any]], lists: Sequence[Sequence[Sequence[int]]]) -> dict[str, Any]:
    """Medians over the questions, with the least and the most, and means of what was thrown away."""
    ahead = [one["ahead"] for one in taken]
    ratios = [one["after"]["ms"] / one["ahead"]["ms"] for one in taken]
    wasted = [(one["wasted_flops"], one["flops"], one["wasted_ms"], one["work_ms"]) for one in ahead]
    flops, kept, lost, work = (sum(column) for column in zip(*wasted, strict=True))
    return {
        "questions": len(taken), "search_ms": median(one["search_ms"] for one in taken),
        "settled": [fmean(found[step] == found[-1] for found in lists) for step in range(STEPS - 1)],
        **{way: spread([one[way]["ms"] for one in taken]) for way in WAYS}, "sooner": spread(ratios),
        "started": fmean(one["started"] for one in ahead), "kept_early": fmean(one["kept_early"] for one in ahead),
        "wasted_flops": flops / (flops + kept), "wasted_ms": lost / (lost + work),
        "alike": fmean(one["after"]["token"] == one["ahead"]["token"] for one in taken),
    }  # fmt: skip


def spread(values: Sequence[float]) -> dict[str, float]:
    """Their median, the least and the most."""
    return {"median": median(values), "least": min(values), "most": max(values)}


def markdown(rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> str:
    """The same for people."""
    return f"{made_by(about)}\n{table(_HEAD, [_cells(row) for row in rows])}"


def _cells(row: Mapping[str, Any]) -> list[Any]:
    times = ["{median:,.0f} [{least:,.0f}, {most:,.0f}]".format(**row[way]) for way in WAYS]
    settled = ", ".join(f"{share:.0%}" for share in row["settled"])
    return [
        row["order"], row["method"], row["questions"], f"{row['search_ms']:,.0f}", settled, *times,
        "{median:.2f} [{least:.2f}, {most:.2f}]".format(**row["sooner"]), f"{row['started']:.1f}",
        *(f"{row[name]:.0%}" for name in ("kept_early", "wasted_flops", "wasted_ms")),
    ]  # fmt: skip


if __name__ == "__main__":
    typer.run(main)
