"""Reading JSON and text that others wrote: what is missing or of another kind is named with its file and place."""

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ragcache.errors import InvalidArgument


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

    def wrong(self, expected: str) -> InvalidArgument:
        """Return the error that something else was expected here."""
        shown = json.dumps(self.value, ensure_ascii=False)
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


def _parsed(text: str, path: Path, line: int) -> Node:
    try:
        return Node(json.loads(text), str(path) if line == 1 and "\n" in text.strip() else f"{path}, line {line}")
    except json.JSONDecodeError as error:
        place = f"{path}, line {line + error.lineno - 1}"
        raise InvalidArgument(f"{place}: expected JSON, found something else: {error.msg}") from error
    except RecursionError as error:
        raise InvalidArgument(f"{path}, line {line}: expected questions, found JSON too deep to read") from error
