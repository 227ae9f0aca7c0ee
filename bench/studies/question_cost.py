"""What does a question cost, and from how many questions on does a chunk's prefill pay?

    python bench/studies/question_cost.py --threads 1 --out docs/benchmarks/question-cost.json

One document is ingested twice, its chunks prefilled alone and behind one another. A question over all of them, in
another order and read from files that lie in the page cache, is answered by full prefill, by naive reuse, and by the
default at its shares. In turns; times are the processor's, since a machine may be busy. A prefill pays once the
questions over a chunk have saved as much of the processor's time as its ingestion took. The model has a published shape
and random weights: times know no meaning.
"""

import math
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from statistics import median
from time import process_time
from typing import Annotated, Any

import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import use_threads, write
from ragcache_bench.commands.speed import shaped
from ragcache_bench.markdown import made_by, table
from ragcache_bench.speed.shapes import question, random_texts
from ragcache_cli.terminal import progress
from speculation import spread

from ragcache import Sampling
from ragcache.encode import Alone, Encoder, InDocument
from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.model.reader import Reader

ENCODERS: Mapping[str, Encoder] = {"alone": Alone(), "in its document": InDocument()}
#: Method, share, and which of the `ENCODERS` it reads.
ROWS = (
    ("full", None, None),
    ("naive", None, "alone"),
    ("auto", 0.0, "in its document"),
    ("auto", 0.05, "in its document"),
)
SPREAD_OVER = (1, 10, 100)
_ONE = Sampling(max_new_tokens=1)
_HEAD = (
    "method", "recomputed", "chunks prefilled", "TFLOPs", "of full prefill's", "MB read", "s a question",
    "s a chunk at ingestion", *(f"s a question, ingestion spread over {count}" for count in SPREAD_OVER), "pays from",
)  # fmt: skip


def main(
    repeats: Annotated[int, typer.Option(help="Turns of each.")] = 5,
    count: Annotated[int, typer.Option(help="Chunks of the document.")] = 8,
    tokens: Annotated[int, typer.Option(help="Of a chunk.")] = 256,
    shape: Annotated[str, typer.Option(help="Sizes of the model.")] = "qwen2.5-0.5b",
    dtype: Annotated[str, typer.Option(help="Of its weights.")] = "float32",
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    out: Annotated[Path, typer.Option(help="JSON to write, and a table beside it.")] = Path("cost.json"),
) -> None:
    """Ingest and ask in turns, a warm-up first."""
    use_threads(threads)
    reader, texts = shaped(shape, dtype, "cpu", threads), random_texts(count, tokens)
    ingested: dict[str, list[float]] = {name: [] for name in ENCODERS}
    asked: list[list[dict[str, float]]] = [[] for _ in ROWS]
    with progress() as shown:
        for turn in range(repeats + 1):
            with ExitStack() as stack:
                opened = {name: _ingest(stack, reader, texts, encoder) for name, encoder in ENCODERS.items()}
                for name, (*_, seconds) in opened.items() if turn else ():
                    ingested[name].append(seconds)
                for row, found in zip(ROWS, asked, strict=True):
                    engine, chunks, _ = opened[row[2] or "alone"]
                    found.append(_ask(engine, chunks[::-1], row, turn))
            shown("turns", turn + 1, repeats + 1)
    rows = [make_row(row, found[1:], asked[0][1:], ingested, count) for row, found in zip(ROWS, asked, strict=True)]
    about = report.meta(**report.about_reader(reader), repeats=repeats, chunks=count, tokens=tokens)
    write(out, {"meta": about, "rows": rows})
    out.with_suffix(".md").write_text(markdown(rows, about), encoding="utf-8")
    typer.echo(markdown(rows, about))


# -- what is measured ------------------------------------------------------------------------------------------------
def _ingest(
    stack: ExitStack, reader: Reader, texts: Sequence[str], encoder: Encoder
) -> tuple[Engine, list[Chunk], float]:
    """One document in an index of its own, and the seconds that its prefill and storing took."""
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ragcache-bench-"))
    index = stack.enter_context(Index(folder, reader))
    index.prefix()  # the same for every document
    ends = [end - 1 for end in accumulate(len(text) + 1 for text in texts)]  # a space between two
    spans = [(text, end - len(text), end) for text, end in zip(texts, ends, strict=True)]
    index.put("document", "", spans, {})
    began = process_time()
    list(index.encode(encoder))
    seconds = process_time() - began
    return Engine(reader, index), index.chunks([row.id for row in index.catalog.all_chunks()]), seconds


def _ask(engine: Engine, chunks: Sequence[Chunk], row: Sequence[Any], turn: int) -> dict[str, float]:
    """A question up to its first token: the processor's seconds, FLOPs, and the bytes of the files that it reads."""
    method, share, encoding = row
    catalog, recipe = engine.index.catalog, ENCODERS[encoding].recipe if encoding else ""
    sizes = [one.nbytes for chunk in chunks for one in catalog.encodings(chunk.id, recipe)]
    engine.index.release()  # KV comes from files
    began = process_time()
    told = engine.answer(question(engine.index, turn), chunks, method=method, recompute=share, sampling=_ONE).report
    seconds, dims = process_time() - began, engine.reader.dims
    slots = torch.arange(told.tokens.context + told.tokens.question)
    flops = told.charged_flops * dims.forward(slots, range(dims.layers), logits=True)
    return {"seconds": seconds, "flops": flops, "flops_share": told.charged_flops, "bytes": float(sum(sizes))}


# -- what is said of it ---------------------------------------------------------------------------------------------
def make_row(
    row: Sequence[Any],
    found: Sequence[Mapping[str, float]],
    full: Sequence[Mapping[str, float]],
    ingested: Mapping[str, Sequence[float]],
    count: int,
) -> dict[str, Any]:
    """Medians over the turns, and from how many questions over a chunk on its prefill pays.

    Parameters
    ----------
    row : tuple
        Of `ROWS`.
    found, full : sequence of mapping
        What `_ask` measured of it, and of full prefill in the same turns.
    ingested : mapping of str to sequence of float
        Seconds of each of the `ENCODERS` in the same turns.
    count : int
        Chunks of the document, and of every question.
    """
    method, share, encoding = row
    made = ingested[encoding] if encoding else [0.0] * len(found)
    saved = [whole["seconds"] - one["seconds"] for whole, one in zip(full, found, strict=True)]
    breaks = [one / less if less > 0 else math.inf for one, less in zip(made, saved, strict=True)] if encoding else []
    seconds, once = median(one["seconds"] for one in found), median(made)
    return {
        "method": method, "recompute": share, "encoding": encoding,
        **{name: median(one[name] for one in found) for name in ("flops", "flops_share", "bytes")},
        "seconds": spread([one["seconds"] for one in found]),
        "ingestion_seconds_per_chunk": once / count,
        "spread": {str(questions): seconds + once / questions for questions in SPREAD_OVER},
        "break_even": spread(breaks) if breaks else None,
        "pays_from": math.ceil(median(breaks)) if breaks and math.isfinite(median(breaks)) else None,
    }  # fmt: skip


def markdown(rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> str:
    """The same for people."""
    return f"{made_by(about)}\n{table(_HEAD, [_cells(row) for row in rows])}"


def _cells(row: Mapping[str, Any]) -> list[Any]:
    share = "-" if row["recompute"] is None else f"{row['recompute']:.0%}"
    pays, seconds = row["break_even"], "{median:.2f} [{least:.2f}, {most:.2f}]".format(**row["seconds"])
    even = "{median:.2f} [{least:.2f}, {most:.2f}] questions".format(**pays) if pays else None
    return [
        row["method"], share, row["encoding"], f"{row['flops'] / 1e12:.2f}", f"{row['flops_share']:.1%}",
        f"{row['bytes'] / 1e6:.1f}", seconds,
        f"{row['ingestion_seconds_per_chunk']:.2f}", *(f"{value:.2f}" for value in row["spread"].values()), even,
    ]  # fmt: skip


if __name__ == "__main__":
    typer.run(main)
