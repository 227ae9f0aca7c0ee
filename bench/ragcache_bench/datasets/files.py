"""Reading JSON and text that others wrote: what is missing or of another kind is named with its file and place."""

import csv
import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ragcache.errors import InvalidArgument
from ragcache.retrieve.needs import needs

_PART = re.compile(r"(.+)-\d{5}-of-\d{5}(\..+)")  # of a table that a dataset hub cut into several files


@dataclass(frozen=True)
class Node:
    """A JSON value that knows where it stands.

    Attributes
    ----------
    value : object
        As `json` gives it.
    where : str
        File, line or record, and the path inside of it.
    """

    value: object
    where: str

    def __getitem__(self, key: str) -> "Node":
        """Return what stands under `key`; InvalidArgument where nothing does."""
        if not isinstance(self.value, dict) or key not in self.value:
            raise self.wrong(f"an object with {key!r}")
        return Node(self.value[key], f"{self.where}, {key}")

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def __iter__(self) -> Iterator["Node"]:
        """Yield a list's entries; InvalidArgument if this is no list."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return iter([Node(entry, f"{self.where}[{i}]") for i, entry in enumerate(self.value)])

    def items(self) -> Iterator[tuple[str, "Node"]]:
        """Yield what stands under each key; InvalidArgument if this is no object."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return iter([(key, self[key]) for key in self.value])

    def pair(self) -> tuple["Node", "Node"]:
        """Return a list's two entries."""
        entries = list(self) if isinstance(self.value, list) else []
        if len(entries) != 2:
            raise self.wrong("a list of two")
        return entries[0], entries[1]

    def text(self) -> str:
        """Return a string without the white space around it."""
        if not isinstance(self.value, str):
            raise self.wrong("a text")
        return self.value.strip()

    def filled(self) -> str:
        """Return a string which is not blank."""
        return self.text() or self._blank()

    def label(self) -> str:
        """Return a string or a number, to name something by."""
        if isinstance(self.value, bool) or not isinstance(self.value, str | int):
            raise self.wrong("a text or a number")
        return str(self.value)

    def flag(self, key: str, default: bool = False) -> bool:
        """Return what stands under `key`, or `default` where nothing does."""
        found = self[key].value if key in self else default
        if not isinstance(found, bool):
            raise self[key].wrong("true or false")
        return found

    def texts(self) -> tuple[str, ...]:
        """Return a list's strings, each once; at least one that is not blank."""
        return tuple(dict.fromkeys(text for entry in self if (text := entry.text()))) or (self._blank(),)

    def some(self) -> tuple[str, ...]:
        """Return a text, a number, or a list of texts, each once; nothing where it is null or blank."""
        if isinstance(self.value, list):
            return tuple(dict.fromkeys(text for entry in self if (text := entry.text())))
        text = "" if self.value is None else self.label().strip()
        return (text,) if text else ()

    def wrong(self, expected: str) -> InvalidArgument:
        """Return the error that something else was expected here."""
        shown = json.dumps(self.value, ensure_ascii=False, default=str)
        return InvalidArgument(f"{self.where}: expected {expected}, found {shown[:60]}{'…' * (len(shown) > 60)}")

    def _blank(self) -> str:
        raise self.wrong("something that is not blank")


def content(path: Path) -> str:
    """Return a file's text, unpacked if it ends in .gz.

    Raises
    ------
    InvalidArgument
        If it cannot be read, is damaged, is not UTF-8, or is blank.
    """
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = raw.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{path}: expected a file of UTF-8 text, plain or .gz, found: {error}") from error
    if not text.strip():
        raise InvalidArgument(f"{path}: expected questions, found a blank file; download it again")
    return text


def document(path: Path) -> Node:
    """Return a file that is one JSON value."""
    return _parsed(content(path), path, 1)


def records(path: Path) -> Iterator[Node]:
    """Yield the records of a JSON list, or of JSON lines."""
    text = content(path)
    if text.lstrip().startswith("["):
        for number, entry in enumerate(_parsed(text, path, 1), 1):
            yield Node(entry.value, f"{path}, record {number}")
        return
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines: U+2028 may stand within a string
        if line.strip():
            yield _parsed(line, path, number)


def table(path: Path) -> Iterator[Node]:
    """Yield the rows of a table: Parquet, CSV with a header, JSON lines or a JSON list, in one file or several parts.

    Raises
    ------
    InvalidArgument
        If a file cannot be read.
    MissingExtra
        If it is Parquet, and pyarrow is not installed.
    """
    for part in parts(path):
        if part.suffix == ".parquet":
            yield from _parquet(part)
        elif part.suffix == ".csv":
            yield from _csv(part)
        else:
            yield from records(part)


def parts(path: Path) -> list[Path]:
    """Return all files of a table of which one is named: "test-00000-of-00002.parquet" has a second."""
    named = _PART.fullmatch(path.name)
    return sorted(path.parent.glob(f"{named[1]}-*-of-*{named[2]}")) if named else [path]


def _csv(path: Path) -> Iterator[Node]:
    before = csv.field_size_limit(sys.maxsize)  # the whole process's, and others count on it
    try:
        rows = list(csv.DictReader(io.StringIO(content(path), newline="")))
    finally:
        csv.field_size_limit(before)
    return (Node(dict(row), f"{path}, row {number}") for number, row in enumerate(rows, 1))


def _parquet(path: Path) -> Iterator[Node]:
    with needs("bench"):
        from pyarrow import parquet
    try:
        rows = parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"{path}: expected a file of Parquet, found: {error}") from error
    return (Node(row, f"{path}, row {number}") for number, row in enumerate(rows, 1))


def _parsed(text: str, path: Path, line: int) -> Node:
    try:
        return Node(json.loads(text), str(path) if line == 1 and "\n" in text.strip() else f"{path}, line {line}")
    except json.JSONDecodeError as error:
        place = f"{path}, line {line + error.lineno - 1}"
        raise InvalidArgument(f"{place}: expected JSON, found something else: {error.msg}") from error
    except RecursionError as error:
        raise InvalidArgument(f"{path}, line {line}: expected questions, found JSON too deep to read") from error
