"""`ragcache ingest`: documents into an index, every chunk prefilled once."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

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
    Methods,
    Model,
    find_paths,
)
from ragcache_cli.terminal import (
    duration,
    note,
    outdated_notes,
    parse_size,
    progress,
    say,
    say_json,
    short,
    size,
    table,
)

if TYPE_CHECKING:
    from ray_ragcache import RayEncoding

    from ragcache.engine.break_even import BreakEven
    from ragcache.rag import RagCache
    from ragcache.report import IngestPlan, IngestReport

Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help="Leave out what matches, as a .gitignore in each folder given would; may be given several times. "
        "One that begins with ! takes back in what a default or an ignore file leaves out.",
    ),
]
NoIgnore = Annotated[bool, typer.Option("--no-ignore", help="Don't obey .gitignore and .ragcacheignore files.")]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Exit with 1 if a file under the paths is not read, unless a pattern leaves it out."),
]
KV = Annotated[
    str | None,
    typer.Option(
        "--kv",
        metavar="CODEC",
        help="How a new index writes KV: raw (default), as the model made it; bf16; int8; k8v4, 8-bit keys and 4-bit "
        "values. `ragcache store stats` says what each would take.",
    ),
]

_LISTED = 5


def ingest(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH...]",
            parser=str,
            callback=find_paths,
            help="Files and folders: txt, md, rst, html, pdf, docx, pptx, xlsx, csv, json, yaml, source code. Without "
            "any, the documents that the index holds.",
        ),
    ] = None,
    index: IndexPath = DEFAULT_INDEX,
    model: Model = None,
    adapter: Adapter = None,
    embedder: Embedder = None,
    dtype: Dtype = None,
    device: Device = None,
    method: Methods = None,
    chunk_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Most tokens of a chunk; the index remembers it.")
    ] = None,
    titles: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Put a line with the document's title and the headings above a chunk into the text that the model "
            "reads, what is embedded, or both: text, embedding, both (a new index's default), none; the index "
            "remembers it.",
        ),
    ] = None,
    kv: KV = None,
    max_size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Most that the index's KV files may take, such as 500MB or 20GiB; the index remembers it. What does "
            "not fit is made when it is asked about, and what saves the least work per byte goes.",
        ),
    ] = None,
    remote: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Keep the KV in an object store, such as s3://bucket/prefix, and publish the rest of the index there "
            "too, so that other machines read it by --index URL; the index remembers it. Then --max-size is for the "
            "files on this machine. Needs the extra `remote`.",
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Make the KV on Ray: local, on this machine; auto, on the cluster that it is a part of; or HOST:PORT. "
            "Every machine needs the model, and the index's folder or --remote. Needs the extra `ray`.",
        ),
    ] = None,
    ray_workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Workers on Ray; one for each GPU of the cluster without it, else for each CPU but one.",
        ),
    ] = None,
    exclude: Exclude = None,
    no_ignore: NoIgnore = False,
    strict: Strict = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove every document whose file is gone, wherever it was, not only here.")
    ] = False,
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

    Unchanged documents are left alone, changed ones replaced, deleted ones removed, even if all of a folder is gone. A
    run that was stopped resumes. `ragcache documents remove` forgets a document whose file stays. With --method and no
    PATH, an index makes what that method loads for every document it holds.
    """
    from tempfile import TemporaryDirectory

    from ragcache.index.opening import check_paths
    from ragcache.retrieve import DEFAULT_TITLES, TITLES, check_choice

    limit = None if max_size is None else _parse_limit(max_size)
    check_methods(method)
    if not paths:
        _check_without_paths(chunk_tokens, titles, exclude, no_ignore=no_ignore)
    check_choice("titles", titles or DEFAULT_TITLES, TITLES)
    if paths:
        check_paths(index, paths, exclude=exclude or (), ignore_files=not no_ignore)
    with ExitStack() as stack:
        place = Path(stack.enter_context(TemporaryDirectory())) if dry_run else index
        open_or_make = partial(opened, methods=method, new=place) if paths else open_index
        rag = stack.enter_context(
            open_or_make(
                index,
                model=model,
                adapter=adapter,
                embedder=embedder,
                dtype=dtype,
                device=device,
                kv=kv,
                remote=None if dry_run else remote,
            )
        )
        if rag.model_note:
            note(rag.model_note)
        if limit is not None and not dry_run:
            _set_limit(rag, limit)
        how: dict[str, Any] = {
            "methods": method, "chunk_tokens": chunk_tokens, "titles": titles, "exclude": exclude or (),
            "ignore_files": not no_ignore, "prune": prune,
        }  # fmt: skip
        if dry_run:
            with progress() as report:
                plan = rag.plan(paths, **how, progress=report) if paths else rag.pending(methods=method, prune=prune)
            say_json(asdict(plan)) if as_json else _show_plan(plan)
            _exit_unless(plan.complete or not strict)
            return
        how["pool"] = stack.enter_context(_on_ray(ray, ray_workers))
        done = with_progress(rag, method, lambda bars: rag.ingest(paths or None, **how, progress=bars))
        found = _break_even(rag, measure=calibrate)
        tokens = None if found is None else found.tokens
        if as_json:
            more = {"break_even_tokens": tokens}
            say_json({"index": str(index), "model": rag.reader.name, **asdict(done), **more})
        else:
            _show_break_even(tokens)
            show(done, index)
            if rag.top_k == 1:
                note(f"{rag.reader.name} reads one chunk a question by default; `ragcache ask --top-k N` gives it more")
        _exit_unless(done.complete or not strict)


def _check_without_paths(
    chunk_tokens: int | None, titles: str | None, exclude: Sequence[str] | None, *, no_ignore: bool
) -> None:
    """Refuse what says how files are read, where none are."""
    from ragcache.errors import InvalidArgument

    for option, given, does in (
        ("--chunk-tokens", chunk_tokens is not None, "splits documents anew"),
        ("--titles", titles is not None, "splits documents anew"),
        ("--exclude", bool(exclude), "leaves documents out"),
        ("--no-ignore", no_ignore, "takes documents in"),
    ):
        if given:
            raise InvalidArgument(f"{option} {does}; name their PATH too")


@contextmanager
def _on_ray(address: str | None, workers: int | None) -> "Iterator[RayEncoding | None]":
    """What makes KV on Ray, if that is asked for."""
    if address is None:
        yield None
        return
    from ray_ragcache import RayEncoding, RayPool

    with closing(RayPool(address, workers)) as pool:
        yield RayEncoding(pool)


def _parse_limit(size: str) -> int:
    """Bytes, refused before anything is made."""
    from ragcache.errors import InvalidArgument

    if (nbytes := parse_size(size)) < 1:
        raise InvalidArgument(f"the KV of an index is limited to one byte or more, not to {size}; leave --max-size out")
    return nbytes


def _set_limit(rag: "RagCache", nbytes: int) -> None:
    """Limit the KV of an index, or what of it is on this machine if an object store has it."""
    from ragcache.index.publication import limit_copies

    if rag.index.store.shared:
        limit_copies(rag.index, nbytes)
    else:
        rag.index.bound.set_limit(nbytes)


def _break_even(rag: "RagCache", *, measure: bool) -> "BreakEven | None":
    """Where reuse of the index's method begins to pay here; measured now if it never was, or not far enough."""
    from ragcache.engine.break_even import BreakEven
    from ragcache.engine.calibrate import calibrate, offers_longer
    from ragcache.errors import MissingEncoding

    known = BreakEven.of(rag.index, rag.engine.method)
    if not measure or (known is not None and (known.reached or not offers_longer(rag.engine, known))):
        return known
    try:
        with progress() as bars:
            return calibrate(rag.engine, bars)
    except MissingEncoding:  # other methods were asked for
        return known


def _show_break_even(tokens: int | None) -> None:
    if tokens:
        note(f"contexts of up to {tokens:,} tokens are prefilled, since reuse was slower on this machine")


def _exit_unless(well: bool) -> None:
    if not well:
        raise typer.Exit(1)


def run(rag: "RagCache", paths: Sequence[Path]) -> "IngestReport":
    """Ingest with progress bars."""
    return with_progress(rag, None, lambda bars: rag.ingest(paths, progress=bars))


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


def opened(index: Path, *, methods: Sequence[str] | None, new: Path | None = None, **how: Any) -> "RagCache":
    """The index, or a `new` one there or elsewhere, whose method is the first named."""
    from ragcache.index.settings import settings_of

    if settings_of(index):
        return open_index(index, **how)
    return open_index(new or index, method=methods[0] if methods else None, create=True, **how)


def _announcer(rag: "RagCache", methods: Sequence[str] | None) -> Callable[[str], None]:
    """Prints the plan once, at the first chunk that has to be encoded, if chunks will be fused with others."""
    from ragcache.methods import find_method

    encoders = [find_method(name).encode for name in methods or [rag.method]]
    waiting = any(encoder is not None and encoder.base_encoding is not None for encoder in encoders)

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
    )
    effort = (
        ("time", f"about {duration(plan.seconds)}, as a few pieces took on this machine"),
        ("pays off after", f"about {plan.break_even_questions:,.0f} questions"),
    )
    table(("would be ingested", ""), rows + effort if plan.chunks else rows)
    _show_left_out(plan)
    _show_files("would be removed, since they are gone", plan.forgotten)


def show(report: "IngestReport", index: Path, what: str = "documents") -> None:
    """Say what was done, and what to do next."""
    _show_left_out(report)
    _show_files("removed, since they are gone", report.forgotten)
    encoded = ", ".join(f"{count:,} {recipe}" for recipe, count in report.encoded.items()) or "nothing new"
    say(
        f"{what}: {report.added:,} added, {report.changed:,} changed, {report.removed:,} removed, "
        f"{report.unchanged:,} unchanged"
    )
    for said in outdated_notes(report.outdated, index):
        note(said)
    took = duration(report.seconds)
    say(f"{report.chunks:,} chunks \u00b7 encoded: {encoded} \u00b7 {size(report.bytes)} in all \u00b7 {took}")
    where = "" if index == DEFAULT_INDEX else f" --index {quote(str(index))}"
    if report.chunks:
        note(f'next: ragcache ask "\u2026"{where}')


def _show_left_out(report: "IngestPlan | IngestReport") -> None:
    """Name what is not in the index, the first few of each kind, and what was not done as asked."""
    for error in report.errors[:_LISTED]:
        note(f"not ingested: {error}")
    if len(report.errors) > _LISTED:
        note(f"\u2026 and {len(report.errors) - _LISTED:,} more that can't be read; `--json` names them all")
    _show_files("skipped, since no reader takes them", report.skipped)
    _show_files("ignored, since a pattern leaves them out", report.ignored)
    for said in report.notes:
        note(said)


def _show_files(what: str, files: Sequence[str]) -> None:
    if files:
        names = ", ".join(short(file).rstrip("/") + "/" * file.endswith("/") for file in files[:_LISTED])
        more = f", \u2026 ({len(files):,} in all)" if len(files) > _LISTED else ""
        note(f"{what}: {names}{more}")
