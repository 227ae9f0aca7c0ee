"""`ragcache`: the commands, and how they fail."""

import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ragcache.errors import RagCacheError
from ragcache_cli import adopt, ask, certify, chat, demo, documents, ingest, methods, refresh, serve, store
from ragcache_cli.terminal import note, note_what_models_say, quiet_libraries, quiet_when_piped

RESUMED = ("ingest", "refresh", "adopt", "bench", "finetune")
RESUMES = "; whatever was stored is kept, and the same command run again resumes there"


class Commands(TyperGroup):
    """What ragcache raises on purpose is one sentence and exit code 2; anything else is a bug and shows."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except RagCacheError as error:
            note(f"ragcache: {' '.join(str(error).split())}")
            raise typer.Exit(2) from error
        except KeyboardInterrupt as error:
            note(f"ragcache: interrupted{RESUMES if ctx.invoked_subcommand in RESUMED else ''}")
            raise typer.Exit(130) from error


app = typer.Typer(cls=Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command("ingest")(ingest.ingest)
app.command("ask")(ask.ask)
app.command("chat")(chat.chat)
app.command("adopt")(adopt.adopt)
app.command("refresh")(refresh.refresh)
app.command("certify")(certify.certify)
app.command("serve", context_settings=serve.TAKES_OTHERS)(serve.serve)
app.command("methods")(methods.methods)
app.command("demo")(demo.demo)
app.add_typer(documents.app, name="documents")
app.add_typer(store.app, name="store")
_OWN = {one.name for one in app.registered_commands} | {one.name for one in app.registered_groups}


def _add(entry: EntryPoint) -> None:
    """A command of another package; it replaces none of these, and one that cannot be loaded stops none of them."""
    if entry.name in _OWN:
        return
    try:
        found = entry.load()
    except ImportError as error:
        note(f"ragcache: the command {entry.name!r} ({entry.value}) cannot be loaded: {error}")
        return
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=entry.name)
    else:
        app.command(entry.name)(found)


for _entry in entry_points(group="ragcache.commands"):  # `bench` and `doctor`, and what other packages add
    _add(_entry)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        from ragcache.errors import DISTRIBUTION

        typer.echo(f"ragcache {version(DISTRIBUTION)}")
        raise typer.Exit


@app.callback()
def ragcache(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Answer questions from documents whose KV cache was made when they were ingested."""
    quiet_when_piped(sys.stdout, sys.stderr)
    quiet_libraries()
    note_what_models_say()
