"""`ragcache bench corpus`: the demo corpus end to end."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from ragcache_cli.options import AsJson
from ragcache_cli.terminal import note, progress

from ragcache_bench.commands.options import Budgets, Methods, Threads, TopK, numbers, show, split, use_threads, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragcache.bundled import CorpusQuestion

_CORPUS = ("kind", "method", "recompute", "n", "recall", "score", "ci_low", "ci_high", "score_found", "score_unseen")


def corpus(
    names: Methods = "full,naive,cacheblend,fusionrag",
    budgets: Budgets = "0.15",
    top_k: TopK = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only so many questions of each kind.")] = None,
    threads: Threads = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="JSON to write.")] = Path("corpus.json"),
    as_json: AsJson = False,
) -> None:
    """Ask the demo corpus end to end: what retrieval finds, and what is then read right, in separate columns."""
    from tempfile import TemporaryDirectory

    from ragcache import bundled
    from ragcache.model.loading import BUNDLED
    from ragcache.rag import RagCache
    from ragcache_bench import report
    from ragcache_bench.contenders import contenders
    from ragcache_bench.endtoend import run

    field = contenders(split(names), numbers(budgets, float), controls=())
    use_threads(threads)
    questions = _first(bundled.questions(), limit)
    with TemporaryDirectory() as place, RagCache.open(place, model=BUNDLED) as rag, progress() as shown:
        rag.ingest(bundled.corpus_path(), methods=split(names), progress=shown)
        rows = run(rag, questions, field, top_k=top_k or rag.top_k, progress=shown)
        about = report.meta(**report.about_reader(rag.reader), chunk_tokens=rag.chunk_tokens)
    content = {"meta": about, "rows": [vars(row) for row in rows]}
    write(out, content)
    show(content, _CORPUS, as_json=as_json)
    note(f"wrote {out}")


def _first(questions: "Sequence[CorpusQuestion]", limit: int | None) -> "list[CorpusQuestion]":
    """The first so many of each kind."""
    kinds = dict.fromkeys(question.kind for question in questions)
    return [q for kind in kinds for q in [q for q in questions if q.kind == kind][:limit]]
