"""`ragcache certify`: how often full prefill confirms what is answered from reused KV, as a file beside the index."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragcache_cli.opening import check_methods, open_index
from ragcache_cli.options import (
    DEFAULT_INDEX,
    Adapter,
    AsJson,
    Device,
    Dtype,
    Embedder,
    IndexPath,
    Model,
    OwnMethod,
    TopK,
)
from ragcache_cli.terminal import note, progress, say, say_json

if TYPE_CHECKING:
    from ragcache.engine.certificate import Certificate


def certify(
    index: IndexPath = DEFAULT_INDEX,
    questions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Questions, a line each; without it some are made from the index's chunks."),
    ] = None,
    count: Annotated[int, typer.Option(min=1, metavar="N", help="How many questions are made, or taken.")] = 50,
    at_least: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="End with exit code 1 where fewer are confirmed.")
    ] = 0.0,
    method: OwnMethod = None,
    top_k: TopK = None,
    model: Model = None,
    adapter: Adapter = None,
    embedder: Embedder = None,
    dtype: Dtype = None,
    device: Device = None,
    as_json: AsJson = False,
) -> None:
    """Answer questions from reused KV and by full prefill of the same prompts, and write down how often they agree.

    The file is in the index's folder, one for each method; `ragcache doctor --index DIR` shows them. Two answers agree
    if they are the same, token by token.
    """
    check_methods([method] if method else None)
    wanted = _read_questions(questions)[:count] if questions else None
    with open_index(index, model=model, adapter=adapter, embedder=embedder, dtype=dtype, device=device) as rag:
        from ragcache.engine.certificate import certify as examine
        from ragcache.engine.certificate import generate_questions
        from ragcache.index.chunks import order_by_document

        asked = generate_questions(rag.index, count) if wanted is None else wanted
        if rag.model_note:
            note(rag.model_note)
        with progress() as bars:
            found = examine(
                rag.engine, asked, lambda question: order_by_document(rag.retrieve(question, top_k=top_k)),
                method or rag.method, progress=bars,
            )  # fmt: skip
        file = found.write(rag.index.path) if rag.index.writable else None
    if as_json:
        say_json({"file": file and str(file), "share": found.share, **asdict(found)})
    else:
        _show(found, file)
    if found.share < at_least:
        note(f"full prefill confirmed {found.share:.0%} of the answers, fewer than {at_least:.0%}")
        raise typer.Exit(1)


def _read_questions(file: Path) -> list[str]:
    from ragcache.errors import InvalidArgument

    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"the questions {file} cannot be read: {error}; give a text file, a line each") from error
    return [line.strip() for line in lines if line.strip()]


def _show(found: "Certificate", file: Path | None) -> None:
    say(
        f"{found.model}, {found.method}, KV written as {found.codec}: full prefill confirmed {found.confirmed} of "
        f"{found.questions} answers ({found.share:.0%}, 95 % interval {found.low:.0%} to {found.high:.0%}); KL of the "
        f"first token {found.first_token_kl:.4f}"
    )
    for one in found.worst:
        say(f"  other: {one['question']} \u2192 {one['answer']} (full prefill: {one['instead'].strip() or 'ends'} …)")
    if file is not None:
        note(f"written to {file}")
