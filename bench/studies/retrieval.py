"""What is retrieval worth, part by part? Title lines, and words beside meaning, on four sets of documents.

    python bench/studies/retrieval.py --data FOLDER --out docs/benchmarks/retrieval.json
    python bench/studies/retrieval.py --sets corpus,drawn --titles both --out docs/benchmarks/retrieval-corpus.json

The demo corpus is asked end to end: `recall` is the share of questions whose evidence was all retrieved, `auto`,
`auto at 0` (nothing recomputed) and `full` are the shares answered right, by the bundled reader. So is `drawn`, three
corpora written by the same rules with other names, facts and questions, on which nothing was ever tried out. Of
XQuAD's articles, and of the passages of NQ-open, each a document under its title, only `recall` is measured: whether a
retrieved chunk of the question's own document holds an accepted answer. Every row asks the same questions; `gain` is
against the first row of a set, question by question.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import split, use_threads, write
from ragcache_bench.datasets.item import Item, holds
from ragcache_bench.datasets.table import find
from ragcache_bench.metrics import bootstrap, exact_match
from reader_training.corpus import write_documents

from ragcache import RagCache, Sampling, bundled
from ragcache.bundled import CorpusQuestion
from ragcache.index.chunks import Chunk, order_by_document
from ragcache.retrieve import DEFAULT_TITLES, RETRIEVERS, TITLES, check_choice

#: By which methods questions are answered, and the share recomputed, where it is not the method's own.
METHODS: Mapping[str, tuple[str, float | None]] = {
    "auto": ("auto", None), "auto at 0": ("auto", 0.0), "full": ("full", None)
}  # fmt: skip
CORPUS, DRAWN = "corpus", "drawn"
SEEDS = (301, 302, 303)
FILES = {"xquad": "xquad/xquad.en.json", "nq-open": "nq-open-oracle/nq-open-oracle.jsonl.gz"}
SETS = (CORPUS, DRAWN, *FILES)

#: What was measured of each question, by row: set, kind, titles, retriever and measure.
Scores = dict[tuple[str, str, str, str, str], list[float]]


def main(
    data: Annotated[Path, typer.Option(help="Folder of the public files, see docs/reader.md.")] = Path("data"),
    sets: Annotated[str, typer.Option(help="Which sets of documents, separated by commas.")] = ",".join(
        (CORPUS, *FILES)
    ),
    titles: Annotated[str, typer.Option(help="Where titles stand, in turn, separated by commas.")] = ",".join(TITLES),
    top_k: Annotated[int, typer.Option(help="Chunks to retrieve.")] = 8,
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    out: Annotated[Path, typer.Option(help="JSON to write.")] = Path("retrieval.json"),
) -> None:
    """Ingest each set once for every place of the titles, and ask it by each retriever."""
    use_threads(threads)
    scores: Scores = {}
    asked = [check_choice("sets", name, SETS) for name in split(sets)]
    for place in [check_choice("titles", place, TITLES) for place in split(titles)]:
        if CORPUS in asked:
            _ask_corpus(scores, CORPUS, bundled.corpus_path(), bundled.questions(), place, top_k)
        for seed in SEEDS if DRAWN in asked else ():
            with tempfile.TemporaryDirectory() as folder:
                _ask_corpus(scores, DRAWN, Path(folder), write_documents(Path(folder), seed), place, top_k)
        for name, items in _public(data, asked).items():
            _ask_public(scores, name, items, place, top_k)
        typer.echo(f"titles {place}: {sets}")
    rows = list(_rows(scores))
    write(out, {"meta": report.meta(device=torch.device("cpu"), top_k=top_k), "rows": rows})
    for row in rows:
        typer.echo(" ".join(f"{name} {value}" for name, value in row.items()))


def _retrievers(titles: str) -> Sequence[str]:
    """How chunks are found, with titles in that place; a second search only where the first does best."""
    return RETRIEVERS if titles == DEFAULT_TITLES else ("dense", "hybrid")


def _rows(scores: Scores) -> Iterator[dict[str, Any]]:
    """A row per measure, with its interval and what it gained over the first row of its set."""
    first: dict[tuple[str, str, str], list[float]] = {}
    for (name, kind, titles, retriever, measure), values in scores.items():
        share = bootstrap(values)
        plain = first.setdefault((name, kind, measure), values)
        gain = bootstrap([a - b for a, b in zip(values, plain, strict=True)])
        yield {
            "set": name, "kind": kind, "titles": titles, "retriever": retriever, "measure": measure, "n": len(values),
            "share": share.mean, "low": share.low, "high": share.high, "gain": asdict(gain),
        }  # fmt: skip


# -- the demo corpus, and others like it ----------------------------------------------------------------------------
def _ask_corpus(
    scores: Scores, name: str, files: Path, questions: Sequence[CorpusQuestion], titles: str, top_k: int
) -> None:
    with tempfile.TemporaryDirectory() as place:
        for retriever in _retrievers(titles):
            with RagCache.open(place, model="bundled", retriever=retriever) as rag:
                rag.ingest(files, titles=titles)
                for asked in questions:
                    chunks = rag.retrieve(asked.question, top_k=top_k)
                    where = (name, asked.kind, titles, retriever)
                    found = all(any(one in chunk.text for chunk in chunks) for one in asked.evidence)
                    scores.setdefault((*where, "recall"), []).append(float(found))
                    for method in METHODS:
                        said = _said(rag, asked.question, chunks, *METHODS[method])
                        scores.setdefault((*where, method), []).append(exact_match(said, asked.accepted))


def _said(rag: RagCache, question: str, chunks: Sequence[Chunk], method: str, recompute: float | None) -> str:
    read, short = order_by_document(chunks), Sampling(max_new_tokens=24)
    return rag.engine.answer(question, read, method=method, recompute=recompute, sampling=short).text


# -- public documents -----------------------------------------------------------------------------------------------
def _public(data: Path, names: Sequence[str]) -> Mapping[str, Sequence[Item]]:
    return {name: list(find(name).items(data / file)) for name, file in FILES.items() if name in names}


def _ask_public(scores: Scores, name: str, items: Sequence[Item], titles: str, top_k: int) -> None:
    with tempfile.TemporaryDirectory() as files, tempfile.TemporaryDirectory() as index:
        asked = list(_write(items, Path(files)))
        for retriever in _retrievers(titles):
            with RagCache.open(index, model="bundled", retriever=retriever) as rag:
                rag.ingest(files, titles=titles, methods=["full"])
                for one, file in asked:
                    chunks = rag.retrieve(one.question, top_k=top_k)
                    own = [chunk for chunk in chunks if Path(chunk.source).name == file]
                    found = any(holds(chunk.text, one.answers) for chunk in own)
                    scores.setdefault((name, "", titles, retriever, "recall"), []).append(float(found))


def _write(items: Sequence[Item], folder: Path) -> Iterator[tuple[Item, str]]:
    """Each item, and the name of a Markdown file that its own document is written to, under its title."""
    files: dict[tuple[str, ...], str] = {}
    for item in items:
        texts = item.passages if item.starts else tuple(item.passages[i] for i in item.gold)
        if texts not in files:
            files[texts] = f"{len(files):04}.md"
            title = item.titles[0] if item.titles else ""
            (folder / files[texts]).write_text(f"# {title}\n\n" + "\n\n".join(texts) + "\n", encoding="utf-8")
        yield item, files[texts]


if __name__ == "__main__":
    typer.run(main)
