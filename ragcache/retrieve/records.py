"""Rows and records into text that can be read piece by piece: every value beside the name of its column or key."""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from io import StringIO
from typing import Any

_DELIMITERS = ",;\t|"
_SAMPLE = 4096  # characters from which the delimiter is told
_NUMBER = re.compile(r"[-+]?[\d.,]*\d\s?%?")
_YEAR = re.compile(r"(19|20)\d\d")


def render_csv(text: str) -> str:
    """Render comma-separated values as `render_rows` does, whatever the delimiter; as it is where it can't be told.

    A quote within quotes is doubled, as spreadsheets write it; a file's first rows may have none to tell it by.
    """
    delimiter, spaced = ",", False
    with suppress(csv.Error):  # one column, or lines in front of the header
        told = csv.Sniffer().sniff(text[:_SAMPLE].rpartition("\n")[0] or text, _DELIMITERS)
        delimiter, spaced = told.delimiter, told.skipinitialspace
    try:
        rows = csv.reader(StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=spaced)
        return render_rows(rows)
    except csv.Error:
        return text


def render_rows(rows: Iterable[Sequence[str]]) -> str:
    """Render a table: a paragraph for each row, a line ``column: value`` for each cell that is not empty.

    The first row of several cells names the columns, unless it repeats itself or holds a number that is no year; rows
    of a table whose columns have no names are lines ``value | value``.
    """
    table = [[" ".join(cell.split()) for cell in row] for row in rows]
    head = next((number for number, row in enumerate(table) if sum(map(bool, row)) > 1), len(table))
    columns = table[head] if head < len(table) and _names_columns(table[head]) else []
    lead = [" | ".join(filter(None, row)) for row in table[:head]]
    body = [_render_row(row, columns) for row in table[head + bool(columns) :]]
    return "\n\n".join(filter(None, [*lead, *body])) or " | ".join(columns)


def render_json(text: str) -> str:
    """Render a JSON value: lines ``outer.inner: value``, a paragraph for each object and each member of a list.

    What is not valid JSON, for its comments perhaps, is left as it is.
    """
    try:
        return "\n\n".join(filter(None, _paragraphs(_parse(text), "")))
    except (ValueError, RecursionError):
        return text


def render_json_lines(text: str) -> str:
    """Render each line as the member of a list; one that is not valid JSON is left as it is."""
    return "\n\n".join(filter(None, map(_render_line, text.split("\n"))))


def _names_columns(row: Sequence[str]) -> bool:
    names = [cell for cell in row if cell]
    numbers = any(_NUMBER.fullmatch(name) and not _YEAR.fullmatch(name) for name in names)
    return len(set(names)) == len(names) and not numbers


def _render_row(row: Sequence[str], columns: Sequence[str]) -> str:
    if not columns:
        return " | ".join(filter(None, row))
    names = [*columns, *[""] * (len(row) - len(columns))]
    return "\n".join(f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=False) if cell)


def _parse(text: str) -> Any:
    return json.loads(text, parse_int=str, parse_float=str, parse_constant=str)  # numbers as they are written


def _paragraphs(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield "\n".join(_lines({key: one for key, one in value.items() if not _is_nested(one)}, path))
        for key, one in value.items():
            if _is_nested(one):
                yield from _paragraphs(one, _join(path, key))
    elif _is_nested(value):
        yield from ("\n".join(_lines(one, path)) for one in value)
    else:
        yield from _lines(value, path)


def _lines(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _lines(one, _join(path, key))
    elif _is_nested(value):
        for number, one in enumerate(value, start=1):
            yield from _lines(one, f"{path}[{number}]")
    elif value not in ("", []):
        said = ", ".join(map(_scalar, value)) if isinstance(value, list) else _scalar(value)
        yield f"{path}: {said}" if path else said


def _is_nested(value: Any) -> bool:
    """Whether a value holds objects or lists, so that it takes lines of its own."""
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(one, dict | list) for one in value))


def _scalar(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _render_line(line: str) -> str:
    try:
        return "\n".join(_lines(_parse(line), ""))
    except (ValueError, RecursionError):
        return line.strip()
