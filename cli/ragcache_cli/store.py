"""`ragcache store`: what lies on the disk."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragcache_cli.options import DEFAULT_INDEX, AsJson, IndexPath, path_argument
from ragcache_cli.terminal import note, outdated_notes, progress, say, say_json, size, table

if TYPE_CHECKING:
    from ragcache.index.archive import Transfer
    from ragcache.index.verify import StoreReport

_NAMED = 5

app = typer.Typer(no_args_is_help=True, help="Look after stored KV.")


@app.callback()
def _store() -> None:
    """Look after stored KV."""


@app.command()
def stats(index: IndexPath = DEFAULT_INDEX, as_json: AsJson = False) -> None:
    """Count documents, chunks, and the bytes of every encoding."""
    from ragcache.index.settings import stats

    found = stats(index)
    if as_json:
        say_json(found)
        return
    model = found["model"] + (f" with the adapter {found['adapter']}" if found["adapter"] else "")
    say(f"{found['path']}: {found['documents']:,} documents, {found['chunks']:,} chunks, model {model}")
    encodings = found["encodings"].items()
    table(("encoding", "chunks", "bytes"), [(name, row["chunks"], size(row["bytes"])) for name, row in encodings])
    if found["codecs"]:
        own = found["codecs"][found["kv"]]
        rows = [
            (name + (" (this index)" if name == found["kv"] else ""), size(taken), f"{own / taken:.2f}", _summary(name))
            for name, taken in found["codecs"].items()
        ]
        table(("written as (--kv)", "it would take", "times smaller", ""), rows)
    for said in outdated_notes(found["outdated"], index):
        note(said)
    for said in found["missing"]:
        note(said)
    say(f"{size(found['bytes'])} of KV; {size(found['free_bytes'])} free on this disk")


def _summary(codec: str) -> str:
    from ragcache.store import CODECS

    return CODECS[codec].summary


@app.command()
def gc(index: IndexPath = DEFAULT_INDEX, as_json: AsJson = False) -> None:
    """Delete what killed runs left and what removed vectors take; run it while nothing else uses the index.

    Loads no model. Nothing that a document has is deleted.
    """
    from ragcache.index.upkeep import collect_garbage

    freed = collect_garbage(index)
    if as_json:
        say_json({"path": str(index), "freed_bytes": freed})
    else:
        say(f"{index}: {size(max(freed, 0))} freed")


@app.command()
def verify(index: IndexPath = DEFAULT_INDEX, as_json: AsJson = False) -> None:
    """Check every row of the catalogue, every KV file and every vector, and say what to run next; loads no model.

    KV files that fail their checks are moved aside, so that they are made anew and never loaded. Ends with exit code 1
    if anything was wrong. Run it while nothing ingests.
    """
    from dataclasses import asdict

    from ragcache.index.verify import verify

    with progress() as bars:
        found = verify(index, progress=bars)
    if as_json:
        say_json({**asdict(found), "sound": found.sound})
    else:
        show_verified(found)
    if not found.sound:
        raise typer.Exit(1)


def show_verified(found: "StoreReport") -> None:
    """Say what was found, and what to do about it."""
    apart = found.differences
    say(
        f"{found.path}: {found.documents:,} documents, {found.chunks:,} chunks, {found.blobs:,} KV files "
        f"({size(found.bytes)}), {found.vectors:,} vectors"
    )
    counted = (
        ("damaged rows of the catalogue", found.damaged_rows),
        ("KV files that fail their checks", [f"{one.key[:12]} ({one.reason})" for one in found.bad_blobs]),
        ("KV files that are gone", [key[:12] for key in apart.missing_blobs]),
        ("KV files that nothing names", [key[:12] for key in apart.orphan_blobs]),
        ("damaged vectors", found.bad_vectors),
        ("chunks without a vector", apart.missing_vectors),
        ("vectors without a chunk", apart.stray_vectors),
        ("damage of a file as a whole", found.files),
    )
    for what, names in counted:
        if names:
            more = f", \u2026 ({len(names):,} in all)" if len(names) > _NAMED else ""
            say(f"{what}: {', '.join(names[:_NAMED])}{more}")
    if found.sound:
        say("nothing is wrong")
    for said in found.next:
        note(said)


@app.command("export")
def export_(
    archive: Annotated[Path, path_argument("ARCHIVE", "What to make: a file if its name ends in .tar, else a folder.")],
    index: IndexPath = DEFAULT_INDEX,
    as_json: AsJson = False,
) -> None:
    """Write the index into one file or folder, as it is at one moment; others may use it meanwhile. Loads no model.

    It holds texts, KV, vectors and the secret: keep it as you keep the documents. An encrypted index stays encrypted.
    """
    from ragcache.index.archive import export_index

    with progress() as bars:
        done = export_index(index, archive, bars)
    _show_transfer(done, f"{done.path} exported to {done.archive}", as_json)


@app.command("import")
def import_(
    archive: Annotated[Path, path_argument("ARCHIVE", "What `ragcache store export` made.")],
    index: IndexPath = DEFAULT_INDEX,
    as_json: AsJson = False,
) -> None:
    """Make an index of what `ragcache store export` made, all of which is checked before any of it is there.

    The folder must not exist, or be empty. Loads no model.
    """
    from ragcache.index.archive import import_index

    with progress() as bars:
        done = import_index(archive, index, bars)
    _show_transfer(done, f"{done.archive} imported to {done.path}", as_json)


def _show_transfer(done: "Transfer", words: str, as_json: bool) -> None:
    from dataclasses import asdict

    if as_json:
        say_json(asdict(done))
        return
    say(
        f"{words}: {done.documents:,} documents, {done.chunks:,} chunks, {done.blobs:,} KV files, "
        f"{done.vectors:,} vectors, {size(done.bytes)}"
    )
    if done.missing:
        note(f"{done.missing:,} KV files were gone; the next `ragcache ingest` makes them anew")


@app.command()
def move(
    to: Annotated[Path, path_argument("TO", "The folder to make; it must not exist, or be empty.")],
    index: IndexPath = DEFAULT_INDEX,
    as_json: AsJson = False,
) -> None:
    """Move the index to another folder, on this disk or another one, while nothing else has it open. Loads no model."""
    from ragcache.index.move import move_index

    moved = move_index(index, to)
    if as_json:
        say_json({"path": str(index), "to": str(moved)})
    else:
        say(f"{index} is now {moved}; name it with --index")
