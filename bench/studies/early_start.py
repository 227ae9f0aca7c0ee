"""Is the first token there as soon as the search is over and the question forwarded, if `ask` begins before that?

    python bench/studies/early_start.py --threads 1 --out docs/benchmarks/early-start.json

A search of four steps that waits elsewhere, 100 ms each, and gives a list behind each: the final list from its first
step on, from its second, third or fourth; before that one chunk is another in every list, or all are. Chunks are read
from files that lie in the page cache. Beside each question stands the goal, in turning order: the search alone, and the
question's own forward with all KV in memory and nothing recomputed. The model has a published shape and random weights,
and every chunk the same KV: times know no meaning.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from ragcache_bench import report
from ragcache_bench.commands.options import use_threads, write
from ragcache_bench.commands.speed import shaped
from ragcache_bench.markdown import made_by, table
from ragcache_bench.speed.shapes import question, random_texts
from ragcache_cli.terminal import progress
from speculation import open_empty, spread

from ragcache import RagCache, Sampling
from ragcache.encode import LeftContext
from ragcache.index.chunks import Chunk
from ragcache.index.index import MEMORY_BYTES, Index
from ragcache.methods import METHODS
from ragcache.report import Timings

STEPS, STEP_MS, GOAL = 4, 100.0, 1.15
METHOD_SHARES: tuple[tuple[str, float | None], ...] = (("naive", None), ("auto", 0.0), ("auto", 0.05))
#: From which step on the list is the final one, and how many of its chunks are others before.
CASES = ((1, "none"), (2, "one"), (3, "one"), (4, "one"), (4, "all"))
_ONE = Sampling(max_new_tokens=1)
_HEAD = (
    "method", "recomputed", "final from step", "chunks that change", "search ms", "question's forward ms",
    "own stages ms", "TTFT ms", "TTFT / (search + forward)", f"within {GOAL - 1:.0%}",
)  # fmt: skip


@dataclass(frozen=True)
class Search:
    """An incremental retriever that waits, and then gives what is written down.

    Attributes
    ----------
    lists : sequence of sequence of Chunk
        One for each step.
    """

    lists: Sequence[Sequence[Chunk]]

    def retrieve(self, question: str, count: int) -> Iterator[Sequence[Chunk]]:
        """Each list once its step is over."""
        for chunks in self.lists:
            time.sleep(STEP_MS / 1e3)
            yield chunks


def write_lists(chunks: Sequence[Chunk], count: int, settled: int, changing: str) -> list[Sequence[Chunk]]:
    """The lists of a search: `count` chunks each, the first ones from step `settled` on.

    Parameters
    ----------
    chunks : sequence of Chunk
        At least `STEPS * count`.
    count : int
        Of a list.
    settled : int
        From 1.
    changing : {"none", "one", "all"}
        Which chunks are others in each list before that, and others in each.
    """
    final = chunks[:count]
    kept = count - 1 if changing == "one" else 0
    early = [(*final[:kept], *chunks[step * count : step * count + count - kept]) for step in range(1, settled)]
    return [*early, *[final] * (STEPS - settled + 1)]


def main(
    n: Annotated[int, typer.Option(help="Questions, each a paired measurement.")] = 7,
    count: Annotated[int, typer.Option(help="Chunks to retrieve.")] = 4,
    tokens: Annotated[int, typer.Option(help="Of a chunk.")] = 512,
    shape: Annotated[str, typer.Option(help="Sizes of the model.")] = "qwen2.5-0.5b",
    dtype: Annotated[str, typer.Option(help="Of its weights.")] = "float32",
    threads: Annotated[int | None, typer.Option(help="CPU threads of the model.")] = None,
    out: Annotated[Path, typer.Option(help="JSON to write, and a table beside it.")] = Path("early.json"),
) -> None:
    """Ask every question by each method over each kind of search, with the goal beside it."""
    use_threads(threads)
    reader = shaped(shape, dtype, "cpu", threads)
    taken: dict[tuple[Any, ...], list[dict[str, float]]] = {}
    with progress() as shown, open_empty(reader, MEMORY_BYTES) as rag:
        chunks = _put(rag.index, STEPS * count, tokens)
        for number in range(n + 1):  # the first warms up
            asked = question(rag.index, number)
            for method, share in METHOD_SHARES:
                for settled, changing in CASES[:: 1 if number % 2 else -1]:
                    search = Search(write_lists(chunks, count, settled, changing))
                    found = _measure(rag, search, asked, method, share, first=number % 2 == 0)
                    taken.setdefault((method, share, settled, changing), []).append(found)
            shown("questions", number + 1, n + 1)
    rows = [_row(key, taken[key][1:]) for key in sorted(taken, key=lambda key: (key[0] != "naive", key[1:]))]
    about = report.meta(
        **report.about_reader(reader), questions=n, chunks=count, tokens=tokens, steps=STEPS, step_ms=STEP_MS, goal=GOAL
    )
    write(out, {"meta": about, "rows": rows})
    out.with_suffix(".md").write_text(markdown(rows, about), encoding="utf-8")
    typer.echo(markdown(rows, about))


# -- what is asked ---------------------------------------------------------------------------------------------------
def _put(index: Index, count: int, tokens: int) -> list[Chunk]:
    """Chunks with KV for every method that is asked."""
    texts = random_texts(count, tokens)
    index.put("random words", "", [(text, 0, len(text)) for text in texts], {})
    chunks = index.chunks([row.id for row in index.catalog.all_chunks()])
    kv = index.reader.encode(chunks[0].segment.token_ids)
    for encoder in filter(None, {METHODS[method].encode for method, _ in METHOD_SHARES}):
        for chunk in chunks:
            index.save(chunk.id, encoder, replace(kv, token_ids=chunk.segment.token_ids), LeftContext())
    return chunks


def _measure(
    rag: RagCache, search: Search, asked: str, method: str, share: float | None, *, first: bool
) -> dict[str, float]:
    """A question with a search, and the goal before it or behind it."""
    goal = _goal(rag, search, asked, method, share) if first else {}
    rag.index.release()  # KV comes from files
    told = rag.ask(asked, top_k=1, method=method, recompute=share, retriever=search, sampling=_ONE).report
    ms = told.ms
    found = {"ms": ms.first_token, "stages_ms": ms.load + ms.place + ms.select + ms.prefill}
    return {**found, **(goal or _goal(rag, search, asked, method, share))}


def _goal(rag: RagCache, search: Search, asked: str, method: str, share: float | None) -> dict[str, float]:
    """The search alone, and the question's forward alone over KV that is in memory by the second time."""
    began = time.perf_counter()
    *_, final = search.retrieve(asked, len(search.lists[-1]))
    search_ms = (time.perf_counter() - began) * 1e3

    def ask() -> Timings:
        nothing = None if share is None else 0.0
        return rag.engine.answer(asked, final, method=method, recompute=nothing, sampling=_ONE).report.ms

    ask()
    return {"search_ms": search_ms, "forward_ms": ask().prefill}


# -- what is said of it ---------------------------------------------------------------------------------------------
def _row(key: Sequence[Any], taken: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Medians over the questions, with the least and the most."""
    method, share, settled, changing = key
    ratios = [one["ms"] / (one["search_ms"] + one["forward_ms"]) for one in taken]
    return {
        "method": method, "recompute": share, "settled": settled, "changing": changing,
        **{name: median(one[name] for one in taken) for name in ("search_ms", "forward_ms", "stages_ms")},
        "ttft": spread([one["ms"] for one in taken]), "ratio": spread(ratios), "within": median(ratios) <= GOAL,
    }  # fmt: skip


def markdown(rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> str:
    """The same for people."""
    return f"{made_by(about)}\n{table(_HEAD, [_cells(row) for row in rows])}"


def _cells(row: Mapping[str, Any]) -> list[Any]:
    share = "-" if row["recompute"] is None else f"{row['recompute']:.0%}"
    times = (f"{row[name]:,.0f}" for name in ("search_ms", "forward_ms", "stages_ms"))
    ttft = "{median:,.0f} [{least:,.0f}, {most:,.0f}]".format(**row["ttft"])
    ratio = "{median:.2f} [{least:.2f}, {most:.2f}]".format(**row["ratio"])
    within = "yes" if row["within"] else "no"
    return [row["method"], share, row["settled"], row["changing"], *times, ttft, ratio, within]


if __name__ == "__main__":
    typer.run(main)
