"""Files into documents: which files there are to read, and what they say."""

import hashlib
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ragcache.errors import NoDocuments, UnreadableDocument, UnsupportedDocument
from ragcache.retrieve.formats import READERS

SUPPORTED = tuple(READERS)
"""Suffixes that `load` reads, lower case, with their dot."""

_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd]")
_BINARY = 0.05  # control characters in all: random bytes have 20 %, a coloured terminal log 2 %
# What parsers let through on broken input beside their own errors; they have no narrower root.
_BROKEN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    NotImplementedError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True)
class Document:
    """One file's text.

    Parameters
    ----------
    source : str
        The file's absolute path, its identity between ingestions.
    text : str
        Plain text or Markdown: line feeds only, no byte order mark, no control characters.
    metadata : Mapping[str, str]
        ``format`` (the suffix without its dot), and ``title`` where the file has one.
    digest : str
        SHA-256 of the file's bytes, in hex.
    """

    source: str
    text: str
    metadata: Mapping[str, str]
    digest: str


def find(paths: Iterable[str | Path]) -> list[Path]:
    """Find the files to read.

    Parameters
    ----------
    paths : Iterable[str | Path]
        Files, and folders to look through; hidden entries and symbolic links to folders are left out.

    Returns
    -------
    list[Path]
        Absolute, sorted, each once.

    Raises
    ------
    NoDocuments
        If a path does not exist, or there is no supported file under any of them.
    UnsupportedDocument
        If a file that was named itself is of another type.
    UnreadableDocument
        If a folder may not be listed.
    """
    named = [Path(path) for path in paths]
    for path in named:
        if path.is_file() and path.suffix.lower() not in SUPPORTED:
            raise UnsupportedDocument(f"{path} can't be read: supported are {', '.join(SUPPORTED)}.")
    found = [path for path in _walk(named) if path.suffix.lower() in SUPPORTED]
    if not found:
        where = ", ".join(map(str, named)) or "no path"
        raise NoDocuments(f"no document under {where}; give files or folders with {', '.join(SUPPORTED)}.")
    return found


def skipped(paths: Iterable[str | Path]) -> list[Path]:
    """List the files under `paths` that `find` passes over because no reader takes their suffix, sorted."""
    return [path for path in _walk([Path(path) for path in paths]) if path.suffix.lower() not in SUPPORTED]


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
        If the file can't be opened, is empty, binary, broken or locked; the message says which.
    """
    path = Path(path)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise UnsupportedDocument(f"{path} can't be read: supported are {', '.join(SUPPORTED)}.")
    try:
        data = path.read_bytes()
        text, title = reader(data) if data else ("", None)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except _BROKEN as error:
        raise _unreadable(path, str(error) or type(error).__name__) from error
    metadata = {"format": path.suffix.lower()[1:], "title": " ".join(_plain(title or "").split())}
    return Document(
        source=_absolute(path),
        text=_checked(path, text),
        metadata=MappingProxyType({key: value for key, value in metadata.items() if value}),
        digest=hashlib.sha256(data).hexdigest(),
    )


def _walk(named: Iterable[Path]) -> list[Path]:
    return [Path(path) for path in sorted({_absolute(path) for root in named for path in _files(root)})]


def _files(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    if not root.is_dir():
        raise NoDocuments(f"there is no {root}; give the path of a file or folder.")
    for folder, folders, files in os.walk(root, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(folder, name) for name in files if not name.startswith("."))


def _refuse(error: OSError) -> None:
    raise _unreadable(Path(error.filename), error.strerror or str(error)) from error


def _absolute(path: Path) -> str:
    return os.path.abspath(path)  # as the user named it: links are kept


def _checked(path: Path, text: str) -> str:
    if len(_CONTROLS.findall(text)) > _BINARY * len(text):
        raise _unreadable(path, "it is binary, not text")
    text = _plain(text)
    if not text.strip():
        raise _unreadable(path, "it is empty")
    return text


def _plain(text: str) -> str:
    """Unify line ends, drop control characters and byte order marks, replace what UTF-8 can't hold."""
    text = re.sub(r"\r\n?|[\x0b\x0c]", "\n", text.removeprefix("\ufeff"))
    return _CONTROLS.sub("", text).encode("utf-8", "replace").decode("utf-8")


def _unreadable(path: Path, reason: str) -> UnreadableDocument:
    return UnreadableDocument(f"{path} can't be read: {' '.join(reason.split()).rstrip('.')}; mend it or leave it out.")
