"""Which model answers people's own documents? Articles of XQuAD, ingested as files, through the whole pipeline.

    python bench/studies/own_documents.py --data xquad-examined.json --out docs/benchmarks/own-documents.json

Each article becomes a Markdown file; the articles are ingested, chunks retrieved, and the questions answered, by
every model, by the default and by full prefill of the same chunks. Answers are counted where an accepted one stands
within them; `found` is the share of questions for which a retrieved chunk holds an accepted answer.
"""

import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import split, use_threads, write
from ragcache_bench.datasets.formats import squad
from ragcache_bench.datasets.item import holds
from ragcache_bench.metrics import Interval, bootstrap, exact_match

from ragcache import RagCache, Sampling
from ragcache.index.chunks import order_by_document

METHODS = ("auto", "full")


@dataclass(frozen=True)
class Asked:
    """A question, its accepted answers, and its file."""

    question: str
    answers: tuple[str, ...]
    file: str


def main(
    data: Annotated[Path, typer.Option(help="A file of SQuAD's format: its articles are ingested.")],
    models: Annotated[str, typer.Option(help="Names, between commas.")] = "bundled,smollm2,smollm2-tuned",
    dtype: Annotated[str, typer.Option(help="Of all models.")] = "bfloat16",
    n: Annotated[int, typer.Option(help="Questions.")] = 150,
    seed: Annotated[int, typer.Option(help="Of the questions.")] = 0,
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    out: Annotated[Path, typer.Option(help="JSON to write.")] = Path("own-documents.json"),
) -> None:
    """Ask every model the same questions about the same files."""
    use_threads(threads)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        asked = _write_articles(data, Path(place))
        drawn = random.Random(seed).sample(asked, min(n, len(asked)))
        scores: dict[tuple[str, str], list[float]] = {}
        for model in split(models):
            for row, right in _answers(model, dtype, Path(place), drawn):
                rows.append(row)
                scores[model, row["method"]] = right
        *others, last = split(models)
        about = report.meta(
            device=torch.device("cpu"), questions=len(drawn), articles=len({one.file for one in asked}), seed=seed
        )
        gains = [
            {
                "model": last,
                "method": method,
                "than": model,
                **asdict(_difference(scores, (last, method), (model, method))),
            }
            for model in others
            for method in METHODS
        ]
    write(out, {"meta": about, "rows": rows, "gains": gains})
    for row in rows:
        typer.echo(" ".join(f"{name} {value}" for name, value in row.items()))


def _difference(scores: dict[tuple[str, str], list[float]], ours: tuple[str, str], theirs: tuple[str, str]) -> Interval:
    return bootstrap([a - b for a, b in zip(scores[ours], scores[theirs], strict=True)])


def _write_articles(data: Path, place: Path) -> list[Asked]:
    """Every article as a Markdown file under its title; the questions about them."""
    asked = []
    for item in squad(data):
        file = place / f"{item.titles[0]}.md"
        if not file.exists():
            file.write_text(f"# {item.titles[0]}\n\n" + "\n\n".join(item.passages) + "\n", encoding="utf-8")
        asked.append(Asked(item.question, item.answers, file.name))
    return asked


def _answers(
    model: str, dtype: str, place: Path, asked: Sequence[Asked]
) -> Iterator[tuple[dict[str, Any], list[float]]]:
    """A row per method, and which of its answers hold an accepted one."""
    with tempfile.TemporaryDirectory() as index, RagCache.open(index, model=model, dtype=dtype) as rag:
        rag.ingest([place])
        retrieved = [order_by_document(rag.retrieve(one.question)) for one in asked]
        found = [any(holds(chunk.text, one.answers) for chunk in of) for one, of in zip(asked, retrieved, strict=True)]
        for method in METHODS:
            said = [
                rag.engine.answer(one.question, chunks, method=method, sampling=Sampling(max_new_tokens=40)).text
                for one, chunks in zip(asked, retrieved, strict=True)
            ]
            right = [float(holds(text, one.answers)) for text, one in zip(said, asked, strict=True)]
            share = bootstrap(right)
            yield {
                "model": model, "method": method, "n": len(asked), "top_k": rag.top_k, "found": fmean(found),
                "sub_em": share.mean, "low": share.low, "high": share.high,
                "em": fmean(exact_match(text, one.answers) for text, one in zip(said, asked, strict=True)),
                "words": fmean(len(text.split()) for text in said),
            }, right  # fmt: skip


if __name__ == "__main__":
    typer.run(main)
