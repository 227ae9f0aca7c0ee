"""Options, and what is done with them, that the `bench` commands share."""

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

import typer

from ragcache_cli.terminal import say_json, table

Number = TypeVar("Number", int, float)

Methods = Annotated[str, typer.Option("--methods", "--method", metavar="A,B", help="Rows of `ragcache methods`.")]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, metavar="T", help="CPU threads; without it torch's own number.")
]


def show(content: dict[str, Any], columns: Sequence[str], *, as_json: bool) -> None:
    """Print a result: JSON, or a table of some of its rows' columns."""
    if as_json:
        say_json(content)
    else:
        table(columns, [[row[name] for name in columns] for row in content["rows"]])


def split(text: str) -> list[str]:
    """What stands between the commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def numbers(text: str, kind: type[Number]) -> list[Number]:
    """The numbers between the commas."""
    from ragcache.errors import InvalidArgument

    try:
        return [kind(part) for part in split(text)]
    except ValueError as error:
        raise InvalidArgument(f"{text!r} is no list of numbers; separate them by commas, for example 1,2") from error


def known(name: str, choices: Any) -> Any:
    """The choice of that name."""
    from ragcache.errors import InvalidArgument

    if name not in choices:
        raise InvalidArgument(f"{name!r} is not one of {', '.join(choices)}; name one of these")
    return choices[name]


def use_threads(threads: int | None) -> None:
    """Have torch use so many threads."""
    import torch

    if threads is not None:
        torch.set_num_threads(threads)
