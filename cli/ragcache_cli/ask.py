"""`ragcache ask`: one question, answered from cached chunks."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ragcache_cli.opening import chosen_method, open_index
from ragcache_cli.options import (
    DEFAULT_INDEX,
    Adapter,
    AsJson,
    Auxiliary,
    Device,
    Dtype,
    Embedder,
    IndexPath,
    MaxNewTokens,
    Model,
    OwnMethod,
    Recompute,
    Rerank,
    Retrieve,
    TopK,
)
from ragcache_cli.terminal import note, say, say_json, say_piece, short, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragcache.engine.answer import Answer
    from ragcache.rag import RagCache


def ask(
    question: Annotated[str, typer.Argument(help="The question, in quotes.")],
    index: IndexPath = DEFAULT_INDEX,
    top_k: TopK = None,
    retrieve: Retrieve = None,
    rerank: Rerank = None,
    method: OwnMethod = None,
    auxiliary: Auxiliary = None,
    recompute: Recompute = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Measure a stock full prefill of the same prompt too.")
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say what happened to each chunk.")] = False,
    max_new_tokens: MaxNewTokens = None,
    model: Model = None,
    adapter: Adapter = None,
    embedder: Embedder = None,
    dtype: Dtype = None,
    device: Device = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question; print the answer, its sources, and what was reused.

    With `--compare` the answer is not streamed, since both ways are measured after a warm-up of each.
    """
    from ragcache.index.opening import check_question
    from ragcache.model.decode import Sampling

    row = chosen_method(index, method, auxiliary)
    check_question(index, question, top_k=top_k, method=row, recompute=recompute)
    sampling = None if max_new_tokens is None else Sampling(max_new_tokens=max_new_tokens)
    with open_index(
        index,
        asked=row,
        model=model,
        adapter=adapter,
        embedder=embedder,
        dtype=dtype,
        device=device,
        retriever=retrieve,
        reranker=rerank,
    ) as rag:
        if as_json or compare:
            answer = rag.ask(question, top_k=top_k, method=row, recompute=recompute, compare=compare, sampling=sampling)
        else:
            stream = rag.stream(question, top_k=top_k, method=row, recompute=recompute, sampling=sampling)
            print_pieces(stream)
            answer = stream.answer
        gone = _files_gone(rag, answer)
    if as_json:
        say_json(answer.as_dict())
        if rag.model_note:
            note(rag.model_note)
        return
    if compare:
        say(answer.text)
    _show(answer, gone, explain=explain)


def print_pieces(pieces: "Iterable[str]") -> None:
    """Print as they come."""
    from ragcache.engine.stream import strip_leading_space

    for piece in strip_leading_space(pieces):
        say_piece(piece)
    say("")


def _show(answer: "Answer", gone: "Sequence[str]", *, explain: bool) -> None:
    from ragcache.report import make_printable

    say("\nSources")
    for number, source in enumerate(answer.sources, start=1):
        similarity = "    " if source.score is None else f"{source.score:.2f}"
        say(f"  {number}  {similarity}  {replace(source, source=short(source.source)).citation}")
        if source.excerpt:
            say(f"           {make_printable(source.excerpt)}")
    for file in gone:
        note(f"{short(file)} is gone; `ragcache documents remove PATH` forgets it, and so does the next ingestion")
    if explain:
        _explain(answer)
    say(f"\n{answer.report.line(answer.comparison)}")
    if answer.comparison and not answer.comparison.same_answer:
        say(f"full prefill answers otherwise: {answer.comparison.full_prefill_answer}")
    for degradation in answer.report.notes:
        note(degradation)


def _files_gone(rag: "RagCache", answer: "Answer") -> list[str]:
    """Files that were ingested and are there no more; what another program brought under a path is no file of ours."""
    from ragcache.retrieve.vanished import absent
    from ragcache.store import COLLECTION

    quoted = sorted({source.source for source in answer.sources if absent(source.source)})
    found = ((source, rag.index.catalog.document_by_source(source)) for source in quoted)
    return [source for source, row in found if row is not None and COLLECTION not in row.metadata]


def _explain(answer: "Answer") -> None:
    rows = [
        (n, short(c.source), c.cache, c.reason, c.left or None, c.tokens, c.recomputed, round(c.ms, 1))
        for n, c in enumerate(answer.report.chunks, start=1)
    ]
    table(("#", "source", "state", "KV, or the reason for none", "made behind", "tokens", "recomputed", "ms"), rows)
