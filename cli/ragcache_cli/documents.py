"""`ragcache documents`: what an index knows, and how it forgets."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragcache_cli.options import DEFAULT_INDEX, AsJson, IndexPath
from ragcache_cli.terminal import note, say, say_json, short, size, table

if TYPE_CHECKING:
    from ragcache.index.documents import Documents, KnownDocument

app = typer.Typer(no_args_is_help=True, help="See which documents an index knows, and forget some.")

_LISTED = 10


@app.command("list")
def list_documents(index: IndexPath = DEFAULT_INDEX, as_json: AsJson = False) -> None:
    """List the documents of an index with their size and when they came; loads no model."""
    from ragcache.index.documents import Documents

    with Documents.opened(index) as documents:
        known = documents.known()
    if as_json:
        say_json([_shown(one) for one in known])
        return
    rows = [(short(one.source), one.collection, one.chunks, one.tokens, size(one.bytes), _when(one)) for one in known]
    table(("document", "vector store", "chunks", "tokens", "KV", "added"), rows)
    say(_counted(len(known), "document"))


@app.command()
def remove(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH...]",
            help="Files, folders, or patterns in quotes: * and ? stand for part of a name, ** for any folders; without "
            "a slash a pattern is a file's name in any folder.",
        ),
    ] = None,
    index: IndexPath = DEFAULT_INDEX,
    collection: Annotated[
        str | None, typer.Option(metavar="NAME", help="Remove all that another program's vector store brought.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask first.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Forget documents: their text, their vectors, their KV, and all KV that was made with theirs; loads no model.

    The files themselves stay where they are; while they do, the next `ragcache ingest` of their folder adds them again.
    """
    from ragcache.index.documents import Documents

    with Documents.opened(index) as documents:
        found = _chosen(documents, paths or [], collection)
        if not dry_run and not yes:
            _confirm(found)
        others = 0 if dry_run else documents.remove(one.id for one in found)
    if as_json:
        say_json({"dry_run": dry_run, "removed": [_shown(one) for one in found], "kv_of_other_documents": others})
        return
    say(f"{'would be removed' if dry_run else 'removed'}: {_named(found)}")
    if others:
        note(f"{others:,} KV of other documents were made with theirs and are gone, too; `ragcache ingest` of those "
             "documents makes them again")  # fmt: skip


def _chosen(documents: "Documents", paths: Sequence[str], collection: str | None) -> "list[KnownDocument]":
    from ragcache.errors import InvalidArgument

    if bool(paths) == bool(collection):
        raise InvalidArgument(
            "name either paths or a --collection to remove; `ragcache documents list` shows what there is"
        )
    return documents.of_collection(collection) if collection else documents.find(*paths)


def _confirm(found: "Sequence[KnownDocument]") -> None:
    """Ask, where somebody is there to answer."""
    from ragcache.errors import InvalidArgument

    if not _somebody_there():
        raise InvalidArgument(
            f"nothing was removed: nobody is there to confirm {_named(found)}; repeat with --yes, or see with --dry-run"
        )
    if not typer.confirm(f"Remove {_named(found)}?", err=True):
        note("nothing was removed")
        raise typer.Exit(1)


def _somebody_there() -> bool:
    return sys.stdin.isatty()


def _named(found: "Sequence[KnownDocument]") -> str:
    names = ", ".join(short(one.source) for one in found[:_LISTED])
    more = ", \u2026" if len(found) > _LISTED else ""
    chunks, nbytes = sum(one.chunks for one in found), sum(one.bytes for one in found)
    return f"{_counted(len(found), 'document')}, {_counted(chunks, 'chunk')}, {size(nbytes)} of KV ({names}{more})"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _shown(one: "KnownDocument") -> dict[str, Any]:
    return asdict(one) | {"added": None if one.added is None else one.added.isoformat(timespec="seconds")}


def _when(one: "KnownDocument") -> str | None:
    return None if one.added is None else f"{one.added.astimezone():%Y-%m-%d %H:%M}"
