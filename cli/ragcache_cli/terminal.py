"""What a terminal is shown: results on stdout, everything else on stderr, and a machine's JSON untouched by either."""

import json
import logging
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TextIO

import typer

if TYPE_CHECKING:
    from rich.console import Console

_TALKATIVE = ("chromadb", "filelock", "httpx", "sentence_transformers", "torch")
_PIPED_WIDTH = 200  # columns of a table that no terminal limits


def say(text: str) -> None:
    """Print a result."""
    from ragcache.report import make_printable

    typer.echo(make_printable(text, lines=True))


def say_piece(text: str) -> None:
    """Print a part of a result."""
    from ragcache.report import make_printable

    typer.echo(make_printable(text, lines=True), nl=False)


def note(text: str) -> None:
    """Tell the user something that is no part of the result."""
    from ragcache.report import make_printable

    typer.echo(make_printable(text, lines=True), err=True)


def say_json(value: object) -> None:
    """Print a result for machines; an infinite number is null, since JSON has no word for it."""
    typer.echo(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: object) -> object:
    match value:
        case dict():
            return {key: _finite(one) for key, one in value.items()}
        case list() | tuple():
            return [_finite(one) for one in value]
        case float() if not math.isfinite(value):
            return None
    return value


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under headings; numbers stand to the right."""
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=SIMPLE, pad_edge=False)
    for number, name in enumerate(columns):
        numeric = all(row[number] is None or isinstance(row[number], int | float) for row in rows)
        shown.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(Text(_cell(value)) for value in row))
    _console(stderr=False).print(shown)


@contextmanager
def progress(*, fold: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """Progress bars on stderr, one per stage: `report(stage, done, total)`; `fold` hides those that are full."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    clock = TimeRemainingColumn(elapsed_when_finished=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), clock)
    with Progress(*columns, console=_console(stderr=True)) as bars:
        tasks: dict[str, Any] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total, visible=done < total or not fold)

        yield report
        for task in bars.tasks:
            bars.update(task.id, completed=task.total)


def size(nbytes: float) -> str:
    """Bytes as people read them."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if nbytes < 1024:
            return f"{nbytes:,.0f} {unit}" if unit == "B" else f"{nbytes:,.1f} {unit}"
        nbytes /= 1024
    return f"{nbytes:,.1f} TiB"


def parse_size(text: str) -> int:
    """Bytes that a user names, such as 500MB, 1.5 GiB or 4096.

    Raises
    ------
    InvalidArgument
        If that is no size.
    """
    from ragcache.errors import InvalidArgument

    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(i?)(b?)\s*", text.lower())
    if found is None or (found[3] and not found[2]):
        raise InvalidArgument(f"{text!r} is no size; write it as 500MB, 1.5GiB or a number of bytes")
    return int(float(found[1]) * (1024 if found[3] else 1000) ** " kmgt".index(found[2] or " "))


def duration(seconds: float) -> str:
    """Seconds as people read them."""
    if seconds < 90:
        return f"{seconds:,.1f} s" if seconds < 10 else f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 5400 else f"{seconds / 3600:,.1f} h"


def short(path: str) -> str:
    """A path as seen from here, where that is shorter, on one line."""
    from ragcache.report import make_printable

    here = Path.cwd()
    return make_printable(str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path)


def quiet_when_piped(stdout: TextIO, stderr: TextIO) -> None:
    """Keep libraries' own bars out of logs, and let no terminal's encoding end a command."""
    if not stderr.isatty():
        for variable in ("HF_HUB_DISABLE_PROGRESS_BARS", "TQDM_DISABLE"):
            os.environ.setdefault(variable, "1")
    for stream in (stdout, stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")


def quiet_libraries() -> None:
    """Keep what libraries log and warn of off the terminal, unless Python was told to show warnings."""
    for variable in ("TRANSFORMERS_VERBOSITY", "HF_HUB_VERBOSITY"):
        os.environ.setdefault(variable, "error")
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.ERROR)
    if not sys.warnoptions and sys.stderr is sys.__stderr__:
        warnings.simplefilter("ignore")


def outdated_notes(outdated: Mapping[str, int], index: Path) -> list[str]:
    """What to say of chunks whose neighbours are others by now, counted by encoding."""
    return [
        f"{chunks:,} chunks of {recipe} were fused before their neighbours of today came; run "
        f"`ragcache refresh --index {quote(str(index))}`"
        for recipe, chunks in outdated.items()
    ]


@contextmanager
def without_loading_bars() -> Iterator[None]:
    """Keep transformers' own bars off the terminal; those of downloads stay."""
    from transformers.utils import logging as models

    before = models.set_tqdm_hook(lambda bar, values, options: bar(*values, **{**options, "disable": True}))
    try:
        yield
    finally:
        models.set_tqdm_hook(before)


class _Notes(logging.Handler):
    """Notes what is logged."""

    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


def note_what_models_say() -> None:
    """Note what is logged while a model is made ready, but for the test model's words, which commands say."""
    logger = logging.getLogger("ragcache.model")
    if not any(isinstance(handler, _Notes) for handler in logger.handlers):
        logger.addHandler(_Notes())
    logger.setLevel(logging.INFO)
    logging.getLogger("ragcache.model.notice").setLevel(logging.CRITICAL)


def _cell(value: object) -> str:
    from ragcache.report import make_printable

    if value is None:
        return "-"
    if isinstance(value, str):
        return make_printable(value)
    return f"{value:,.3g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _console(*, stderr: bool) -> "Console":
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = _PIPED_WIDTH
    return console
