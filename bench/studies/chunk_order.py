"""In which order should retrieved chunks be read? As they rank, the best last, the best at both ends, or by document.

    python bench/studies/chunk_order.py --out docs/benchmarks/chunk-order.json
    python bench/studies/chunk_order.py --data xquad-examined.json --model smollm2-tuned --out order-xquad.json

Documents are ingested, chunks retrieved once for each question, and read in every order, by every method. Without
`--data` documents and questions are drawn as the demo corpus is, with a seed of their own. An answer is right if it
is an accepted one, or, over `--data`, holds one; `gain` is against the first order, question by question.
"""

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from own_documents import write_articles
from ragcache_bench import report
from ragcache_bench.commands.options import use_threads, write
from ragcache_bench.datasets.item import holds
from ragcache_bench.markdown import made_by, table
from ragcache_bench.metrics import bootstrap, exact_match
from ragcache_bench.records import Journal
from ragcache_cli.terminal import progress
from reader_training.corpus import write_documents

from ragcache import Chunk, RagCache, Sampling
from ragcache.index.chunks import order_by_document
from ragcache.report import Progress

METHODS = ("full", "naive", "auto")
ORDERS: Mapping[str, Callable[[Sequence[Chunk]], Sequence[Chunk]]] = {
    "as ranked": list,
    "best last": lambda chunks: chunks[::-1],
    "best at both ends": lambda chunks: [*chunks[::2], *chunks[1::2][::-1]],
    "by document": order_by_document,
}


@dataclass(frozen=True)
class Asked:
    """A question, its kind, its accepted answers, and how an answer is compared with them."""

    question: str
    kind: str
    answers: tuple[str, ...]
    right: Callable[[str, Sequence[str]], float]


def main(
    data: Annotated[Path | None, typer.Option(help="A file of SQuAD's format; without it documents are drawn.")] = None,
    model: Annotated[str, typer.Option(help="A model, as `ragcache ingest --model` takes it.")] = "bundled",
    dtype: Annotated[str, typer.Option(help="Of its weights.")] = "float32",
    n: Annotated[int, typer.Option(help="Questions of `--data`.")] = 150,
    top_k: Annotated[int, typer.Option(help="Chunks to retrieve.")] = 8,
    seed: Annotated[int, typer.Option(help="Of the documents that are drawn, or of the questions.")] = 109,
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    out: Annotated[Path, typer.Option(help="JSON to write; a table goes beside it.")] = Path("chunk-order.json"),
) -> None:
    """Ask every question in every order."""
    use_threads(threads)
    journal = Journal(out.with_suffix(".jsonl"))
    with tempfile.TemporaryDirectory() as files, tempfile.TemporaryDirectory() as index, progress(fold=True) as shown:
        asked = _draw(Path(files), seed) if data is None else _write_articles(data, Path(files), n, seed)
        with RagCache.open(index, model=model, dtype=dtype) as rag:
            rag.ingest(files, methods=METHODS, progress=shown)
            about = report.meta(**report.about_reader(rag.reader), questions=len(asked), top_k=top_k, seed=seed)
            scores = _ask(rag, asked, top_k, journal, shown)
    rows = list(_rows(scores))
    write(out, {"meta": about, "rows": rows})
    out.with_suffix(".md").write_text(markdown(rows, about), encoding="utf-8")
    typer.echo(markdown(rows, about))


Scores = dict[tuple[str, str, str], list[float]]


def _ask(rag: RagCache, asked: Sequence[Asked], top_k: int, journal: Journal, shown: Progress) -> Scores:
    """Whether each answer is right, by kind of question, method and order."""
    scores: Scores = {}
    for done, one in enumerate(asked):
        shown("questions", done, len(asked))
        chunks = rag.retrieve(one.question, top_k=top_k)
        for method in METHODS:
            for order, arrange in ORDERS.items():
                read = arrange(chunks)
                key = [rag.reader.identity, one.question, method, *(chunk.text for chunk in read)]
                said = journal.recall(key, partial(_say, rag, one.question, read, method))
                scores.setdefault((one.kind, method, order), []).append(float(one.right(said, one.answers)))
    shown("questions", len(asked), len(asked))
    return scores


def _say(rag: RagCache, question: str, chunks: Sequence[Chunk], method: str) -> str:
    return rag.engine.answer(question, chunks, method=method, sampling=Sampling(max_new_tokens=32)).text


def _rows(scores: Scores) -> Iterator[dict[str, Any]]:
    """A row per kind, method and order, with what it gains over the first order."""
    for (kind, method, order), right in scores.items():
        first = scores[kind, method, next(iter(ORDERS))]
        gain = bootstrap([a - b for a, b in zip(right, first, strict=True)])
        yield {
            "kind": kind, "method": method, "order": order, "n": len(right), "right": asdict(bootstrap(right)),
            "gain": asdict(gain),
        }  # fmt: skip


# -- documents and questions ------------------------------------------------------------------------------------------
def _draw(place: Path, seed: int) -> list[Asked]:
    return [Asked(one.question, one.kind, one.accepted, exact_match) for one in write_documents(place, seed)]


def _write_articles(data: Path, place: Path, n: int, seed: int) -> list[Asked]:
    asked = write_articles(data, place)
    drawn = random.Random(seed).sample(asked, min(n, len(asked)))
    return [Asked(one.question, data.stem, one.answers, holds) for one in drawn]


def markdown(rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> str:
    """The same for people."""
    heads = ("questions", "n", "method", "order", "right (95 %)", "gain over the first (95 %)")
    cells = [
        [row["kind"], row["n"], row["method"], row["order"], _span(row["right"]), _span(row["gain"])] for row in rows
    ]
    return "\n".join([made_by(about), table(heads, cells)])


def _span(one: Mapping[str, float]) -> str:
    return f"{one['mean']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"


if __name__ == "__main__":
    typer.run(main)
