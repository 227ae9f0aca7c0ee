"""The settings of a row worth trying: its choices' own fields, a few values each."""

import ast
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import product
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ragcache.errors import InvalidArgument
from ragcache.method import Method
from ragcache_bench.lending import lendable

Settings = Mapping[str, Any]
CANDIDATES = 8
_ENCODE = "encode"
_NEVER = "seed"  # luck is no setting


@dataclass(frozen=True)
class Candidate:
    """A row with some of its fields changed.

    Attributes
    ----------
    row : str
        The row of the method table.
    settings : mapping of str to object
        What is changed, `{"select.layers": "all"}`; nothing in the row as it is.
    method : Method
        The outcome, under a name of its own.
    """

    row: str
    settings: Settings
    method: Method


def spelled(settings: Settings) -> str:
    """Settings as `--grid` takes them; nothing for a row as it is."""
    return ", ".join(f"{path}={value}" for path, value in settings.items())


def tunable(row: Method) -> dict[str, tuple[Any, ...]]:
    """Values to try for each field of a row's choices, its own value first.

    A field says what to try in its metadata, `field(default=8, metadata={"tune": (4, 8, 16)})`; else a field of a few
    named values takes all of them, a number is halved and doubled, and a share is moved half the way to 0 and to 1.
    The encoder's fields are part of it only where its KV can be made of a question's chunks alone, for that question:
    PSR's throw-away tokens, which are to be tuned with its temperature and scale. Other KV is made at ingestion.
    """
    grid = {path: values for axis in _axes(row) for path, values in _values(axis, getattr(row, axis))}
    return {path: values for path, values in grid.items() if len(values) > 1}


def parse(specs: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Values to try as the command line spells them: `select.layers=last,all,(0.5,0.75)`.

    Raises
    ------
    InvalidArgument
        If one is not of that form.
    """
    grid: dict[str, tuple[Any, ...]] = {}
    for spec in specs:
        path, _, values = spec.partition("=")
        parts = [part.strip() for part in re.split(r",(?![^(]*\))", values) if part.strip()]
        if not path.strip() or not parts:
            raise InvalidArgument(f"--grid {spec!r} names no field and values; write it as select.layers=last,all")
        grid[path.strip()] = tuple(map(_literal, parts))
    return grid


def candidates(
    rows: Sequence[Method], grid: Mapping[str, Sequence[Any]] | None = None, count: int = CANDIDATES, seed: int = 0
) -> dict[str, list[Candidate]]:
    """As many candidates of each row as the row with the fewest has, at most `count`; the row as it is comes first.

    Those that change least come next; among equals the seed decides.

    Parameters
    ----------
    rows : sequence of Method
        To be tuned.
    grid : mapping of str to sequence, optional
        Values by field beside the row's own, for those rows that have it; `tunable` of each row otherwise.
    count : int
        Most candidates of a row.
    seed : int
        Of what is left out where there are more.

    Raises
    ------
    InvalidArgument
        If no row has a field of the grid, or a row has nothing to tune.
    """
    found = {row.name: _of_row(row, grid, seed) for row in rows}
    known = {path for row in rows for path in _fields(row)}
    if lost := sorted(set(grid or ()) - known):
        raise InvalidArgument(f"--grid {lost[0]} is a field of none of {', '.join(found)}; they have {_list(known)}")
    for name, all_of in found.items():
        if len(all_of) < 2:
            raise InvalidArgument(
                f"method {name!r} has nothing to tune; leave it out of --methods, or name a field with --grid"
            )
    fewest = min(count, *map(len, found.values()))
    return {name: all_of[:fewest] for name, all_of in found.items()}


def _of_row(row: Method, grid: Mapping[str, Sequence[Any]] | None, seed: int) -> list[Candidate]:
    """Every combination of values, the row as it is first, then those that change least."""
    own_values = _fields(row)
    wanted = tunable(row) if grid is None else {path: grid[path] for path in grid if path in own_values}
    changes = [
        {path: value for path, value in zip(wanted, values, strict=True) if value != own_values[path]}
        for values in product(*((own_values[path], *tried) for path, tried in wanted.items()))
    ]
    random.Random(seed).shuffle(changes)
    unique = {repr(sorted(settings.items())): settings for settings in ({}, *sorted(changes, key=len))}
    return [Candidate(row.name, settings, _varied(row, settings)) for settings in unique.values()]


def _varied(row: Method, settings: Settings) -> Method:
    name = f"{row.name}[{spelled(settings)}]" if settings else row.name
    for path, value in settings.items():
        row = _put(row, path.split("."), value)
    return replace(row, name=name)


def _put(holder: Any, path: Sequence[str], value: Any) -> Any:
    """The holder with the field at the end of a path replaced."""
    name, *rest = path
    return replace(holder, **{name: _put(getattr(holder, name), rest, value) if rest else value})


def _fields(row: Method) -> dict[str, Any]:
    """Path and value of every field of the choices that are made online, or can be made for a question."""
    return {path: value for axis in _axes(row) for path, value, _, _ in _walk(axis, getattr(row, axis))}


def _axes(row: Method) -> list[str]:
    """The axes whose fields can be varied over one index."""
    return [axis.name for axis in fields(row) if axis.name != _ENCODE or lendable(row)]


def _walk(path: str, holder: Any) -> Iterator[tuple[str, Any, Any, Mapping[Any, Any]]]:
    """Path, value, annotation and metadata of a choice's fields, those of the choices inside it included."""
    if not is_dataclass(holder):
        return
    hints = get_type_hints(type(holder), localns={"Reader": Any})  # named for type checkers only
    for one in fields(holder):
        value, inside = getattr(holder, one.name), f"{path}.{one.name}"
        if is_dataclass(value):
            yield from _walk(inside, value)
        else:
            yield inside, value, hints[one.name], one.metadata


def _values(path: str, holder: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for inside, value, hint, metadata in _walk(path, holder):
        if inside.rpartition(".")[2] != _NEVER:
            tried = metadata.get("tune", _guessed(value, hint))
            yield inside, tuple(dict.fromkeys((value, *tried)))


def _guessed(value: Any, hint: Any) -> tuple[Any, ...]:
    """Values worth trying, by the field's type."""
    if named := _named_values(hint):
        return named
    match value:
        case bool():
            return (not value,)
        case int() if value > 0:
            return (max(1, value // 2), 2 * value)
        case float() if 0 < value < 1:
            return (value / 2, (1 + value) / 2)
        case float() if value >= 1:
            return (value / 2, 2 * value)
    return ()


def _named_values(hint: Any) -> tuple[Any, ...]:
    """The values of a Literal, alone or as part of a union."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return tuple(value for part in get_args(hint) for value in _named_values(part))


def _literal(text: str) -> Any:
    """A number, a tuple, True, None; anything else is a word."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _list(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "no fields"
