"""Files into documents: what they say, and where in it their pages and headings begin."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from types import MappingProxyType

from ragcache.errors import EmptyDocument, UnsupportedDocument
from ragcache.retrieve.discover import kind_of, place_of, unreadable
from ragcache.retrieve.formats import BROKEN, READERS, SUPPORTED_WORDS
from ragcache.retrieve.parsed import Parsed
from ragcache.retrieve.places import Mark
from ragcache.retrieve.subprocess_parser import ISOLATED, PARSER

MAX_BYTES = 1 << 29
"""Larger files are refused: their KV would take terabytes, and their text several times its size in memory."""

_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd]")
_BINARY = 0.05  # control characters in all: random bytes have 20 %, a coloured terminal log 2 %
_SAMPLE = 1 << 16  # characters that are looked at first: hundreds of MiB without any text would take minutes


class _Blank(ValueError):
    """There is no text."""


@dataclass(frozen=True)
class Document:
    """One file's text.

    Parameters
    ----------
    source : str
        The file's path without links to its folder, its identity between ingestions.
    text : str
        Plain text or Markdown: line feeds only, no byte order mark, no control characters.
    metadata : Mapping[str, str]
        ``format`` (the suffix without its dot), and ``title`` where the file has one.
    digest : str
        SHA-256 of the file's bytes, in hex.
    marks : tuple of Mark
        Where in the text its pages, slides or sheets begin, and its headings.
    """

    source: str
    text: str
    metadata: Mapping[str, str]
    digest: str
    marks: tuple[Mark, ...] = ()


def load(path: str | Path) -> Document:
    """Read one file.

    Parameters
    ----------
    path : str | Path
        A file with a suffix in `SUPPORTED`.

    Returns
    -------
    Document
        Never with a blank text.

    Raises
    ------
    UnsupportedDocument
        If the suffix is another.
    UnreadableDocument
        If the file can't be opened, is binary, broken or locked; the message says which.
    EmptyDocument
        If there is no text in it.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise UnsupportedDocument(f"{path} can't be read: supported are {SUPPORTED_WORDS}.")
    try:
        data = _bytes_of(path)
        parsed = _cleaned(_parse(suffix, data) if data else Parsed(""))
    except OSError as error:
        raise unreadable(path, error.strerror or str(error)) from error
    except MemoryError as error:
        raise unreadable(path, "it takes more memory than there is") from error
    except _Blank as error:
        raise EmptyDocument(str(unreadable(path, str(error)))) from error
    except BROKEN as error:
        raise unreadable(path, str(error) or type(error).__name__) from error
    metadata = {"format": suffix[1:], "title": " ".join(_plain(parsed.title).split())}
    return Document(
        source=place_of(path),
        text=parsed.text,
        metadata=MappingProxyType({key: value for key, value in metadata.items() if value}),
        digest=hashlib.sha256(data).hexdigest(),
        marks=parsed.marks,
    )


def _parse(suffix: str, data: bytes) -> Parsed:
    return PARSER.parse(suffix, data) if suffix in ISOLATED else READERS[suffix](data)


def _bytes_of(path: Path) -> bytes:
    about = path.stat()
    if kind := kind_of(about.st_mode):
        raise ValueError(f"it is {kind}, not a file")  # reading a pipe would wait for ever
    if about.st_size > MAX_BYTES:
        raise ValueError(f"it has {about.st_size >> 20:,} MiB, more than the limit of {MAX_BYTES >> 20:,}")
    return path.read_bytes()


def _cleaned(parsed: Parsed) -> Parsed:
    """Clean the text between one mark and the next, so that marks stay where they belong."""
    text = parsed.text.removeprefix("\ufeff")
    if _is_binary(text[:_SAMPLE]) or _is_binary(text):
        raise ValueError("it is binary, not text")
    shift = len(parsed.text) - len(text)
    cuts = [max(mark.offset - shift, 0) for mark in parsed.marks]
    parts = [_plain(text[start:end]) for start, end in pairwise([0, *cuts, len(text)])]
    cleaned = "".join(parts)
    if not cleaned.strip():
        raise _Blank("it is empty")
    marks = zip(parsed.marks, accumulate(map(len, parts)), strict=False)
    return Parsed(
        cleaned,
        parsed.title,
        tuple(Mark(offset, mark.page, _plain(mark.heading)) for mark, offset in marks),
    )


def _is_binary(text: str) -> bool:
    return len(text) - len(_CONTROLS.sub("", text)) > _BINARY * len(text)


def _plain(text: str) -> str:
    """Unify line ends, drop control characters, replace what UTF-8 can't hold."""
    text = re.sub(r"\r\n?|[\x0b\x0c]", "\n", text)
    return _CONTROLS.sub("", text).encode("utf-8", "replace").decode("utf-8")
