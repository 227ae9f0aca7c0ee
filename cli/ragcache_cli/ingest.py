"""`ragcache ingest`: documents into an index, every chunk prefilled once."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from ragcache_cli.options import DEFAULT_INDEX, AsJson, IndexPath, Methods, Model
from ragcache_cli.terminal import duration, note, progress, say, say_json, short, size, table

if TYPE_CHECKING:
    from ragcache.breakeven import BreakEven
    from ragcache.rag import RagCache
    from ragcache.report import IngestPlan, IngestReport

_LISTED = 5


def ingest(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Files and folders: txt, md, html, pdf, docx.")
    ],
    index: IndexPath = DEFAULT_INDEX,
    model: Model = None,
    method: Methods = None,
    chunk_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Most tokens of a chunk; the index remembers it.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would cost; write nothing.")] = False,
    calibrate: Annotated[
        bool,
        typer.Option(
            envvar="RAGCACHE_CALIBRATE",
            help="Measure once on this machine from which context length on reuse pays; shorter ones are prefilled.",
        ),
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Read documents, split them, and store each chunk's embedding and KV cache.

    Unchanged documents are left alone, changed ones replaced, deleted ones removed. A run that was stopped resumes.
    """
    from tempfile import TemporaryDirectory

    from ragcache.methods import find

    for name in method or ():
        find(name)  # before minutes are spent on loading a model
    with ExitStack() as stack:
        place = Path(stack.enter_context(TemporaryDirectory())) if dry_run else index
        rag = stack.enter_context(opened(index, model, method, new=place))
        if rag.model_note:
            note(rag.model_note)
        if dry_run:
            with progress() as report:
                plan = rag.plan(paths, methods=method, chunk_tokens=chunk_tokens, progress=report)
            say_json(asdict(plan)) if as_json else _show_plan(plan)
            return
        done = run(rag, paths, method, chunk_tokens)
        found = _break_even(rag, measure=calibrate)
        if as_json:
            tokens = {"break_even_tokens": None if found is None else found.tokens}
            say_json({"index": str(index), "model": rag.reader.name, **asdict(done), **tokens})
            return
        if found is not None and found.tokens:
            note(f"contexts of up to {found.tokens:,} tokens are prefilled, since reuse was slower on this machine")
        show(done, index)


def _break_even(rag: "RagCache", *, measure: bool) -> "BreakEven | None":
    """Where reuse of the index's method begins to pay here; measured now if it never was, or not far enough."""
    from ragcache.breakeven import BreakEven
    from ragcache.calibrate import calibrate
    from ragcache.errors import MissingEncoding

    known = BreakEven.of(rag.index, rag.engine.method)
    if not measure or (known is not None and known.reached):
        return known
    try:
        with progress() as bars:
            return calibrate(rag.engine, bars)
    except MissingEncoding:  # other methods were asked for
        return known


def run(
    rag: "RagCache", paths: Sequence[Path], methods: Sequence[str] | None = None, chunk_tokens: int | None = None
) -> "IngestReport":
    """Ingest with progress bars."""
    return with_progress(
        rag, methods, lambda bars: rag.ingest(paths, methods=methods, chunk_tokens=chunk_tokens, progress=bars)
    )


def with_progress(
    rag: "RagCache", methods: Sequence[str] | None, work: Callable[[Callable[[str, int, int], None]], "IngestReport"]
) -> "IngestReport":
    """Work with progress bars; say what a fused encoding will cost before it starts."""
    with progress() as bars:
        announce = _announcer(rag, methods)

        def report(stage: str, done: int, total: int) -> None:
            announce(stage)
            bars(stage, done, total)

        return work(report)


def opened(
    index: Path, model: str | None, methods: Sequence[str] | None, *, new: Path | None = None
) -> "RagCache":
    """The index, or a `new` one there or elsewhere, whose method is the first named."""
    from ragcache.errors import EmptyIndex
    from ragcache.rag import RagCache

    try:
        return RagCache.open(index, model=model, create=False)
    except EmptyIndex:
        return RagCache.open(new or index, model=model, method=methods[0] if methods else None)


def _announcer(rag: "RagCache", methods: Sequence[str] | None) -> Callable[[str], None]:
    """Prints the plan once, at the first chunk that has to be encoded, if chunks will be fused with others."""
    from ragcache.methods import find

    encoders = [find(name).encode for name in methods or [rag.method]]
    waiting = any(encoder is not None and encoder.before is not None for encoder in encoders)

    def announce(stage: str) -> None:
        nonlocal waiting
        if waiting and stage.startswith("encode"):
            waiting = False
            plan = rag.pending(methods=methods)
            note(
                f"{plan.chunks:,} chunks are to be encoded, then once more behind other chunks: about "
                f"{duration(plan.seconds)} and {size(plan.bytes)} on disk"
            )

    return announce


def _show_plan(plan: "IngestPlan") -> None:
    rows = (
        ("documents", f"{plan.documents:,}"),
        ("chunks", f"{plan.chunks:,}"),
        ("tokens", f"{plan.tokens:,}"),
        ("KV per token", size(plan.bytes_per_token)),
        ("KV per 1,000 pages", f"{plan.gigabytes_per_1000_pages:,.1f} GB (500 tokens a page)"),
        ("KV in all", size(plan.bytes)),
        ("time", f"about {duration(plan.seconds)}, as a few pieces took on this machine"),
        ("pays off after", f"about {plan.break_even_questions:,.0f} questions"),
    )
    table(("would be ingested", ""), rows)
    _show_skipped(plan.skipped)


def show(report: "IngestReport", index: Path, what: str = "documents") -> None:
    """Say what was done, and what to do next."""
    for error in report.errors:
        note(f"not ingested: {error}")
    _show_skipped(report.skipped)
    encoded = ", ".join(f"{count:,} {recipe}" for recipe, count in report.encoded.items()) or "nothing new"
    say(
        f"{what}: {report.added:,} added, {report.changed:,} changed, {report.removed:,} removed, "
        f"{report.unchanged:,} unchanged"
    )
    took = duration(report.seconds)
    say(f"{report.chunks:,} chunks \u00b7 encoded: {encoded} \u00b7 {size(report.bytes)} in all \u00b7 {took}")
    where = "" if index == DEFAULT_INDEX else f" --index {quote(str(index))}"
    note(f'next: ragcache ask "\u2026"{where}')


def _show_skipped(files: Sequence[str]) -> None:
    if files:
        names = ", ".join(short(file) for file in files[:_LISTED])
        more = f", \u2026 ({len(files):,} in all)" if len(files) > _LISTED else ""
        note(f"skipped, since no reader takes them: {names}{more}")
