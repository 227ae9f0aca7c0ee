"""`ragcache store`: what lies on the disk."""

import typer

from ragcache_cli.options import DEFAULT_INDEX, AsJson, IndexPath
from ragcache_cli.terminal import note, outdated_notes, say, say_json, size, table

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
    for said in outdated_notes(found["outdated"], index):
        note(said)
    for said in found["missing"]:
        note(said)
    say(f"{size(found['bytes'])} of KV; {size(found['free_bytes'])} free on this disk")


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
