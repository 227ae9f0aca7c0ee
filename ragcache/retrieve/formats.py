"""One reader per file format: bytes to plain text, a title and marks, by a library for each."""

import logging
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ragcache.retrieve.encodings import decode
from ragcache.retrieve.needs import needs
from ragcache.retrieve.office import read_docx, read_pptx, read_xlsx
from ragcache.retrieve.parsed import (
    Heading,
    Parsed,
    markdown_headings,
    marks_of,
    reasons_of,
    rst_headings,
    starts_of,
    take_front_matter,
    title_of,
)
from ragcache.retrieve.records import render_csv, render_json, render_json_lines
from ragcache.retrieve.webpage import show

if TYPE_CHECKING:
    from pypdf import PdfReader

_HEAD = 2048  # bytes in which a web page declares its encoding


def read_text(data: bytes) -> Parsed:
    """Text as it is, comments of YAML and of source code included."""
    return Parsed(decode(data))


def read_markdown(data: bytes) -> Parsed:
    """Keep Markdown as it is, but for its front matter, whose title is the document's."""
    text, title = take_front_matter(decode(data))
    headings = markdown_headings(text)
    return Parsed(text, title or title_of(headings), marks_of(headings))


def read_rst(data: bytes) -> Parsed:
    """Keep reStructuredText as it is."""
    text = decode(data)
    headings = rst_headings(text)
    return Parsed(text, title_of(headings), marks_of(headings))


def read_csv(data: bytes) -> Parsed:
    """A paragraph for each row."""
    return Parsed(render_csv(decode(data)))


def read_json(data: bytes) -> Parsed:
    """A paragraph for each object."""
    return Parsed(render_json(decode(data)))


def read_json_lines(data: bytes) -> Parsed:
    """A paragraph for each line."""
    return Parsed(render_json_lines(decode(data)))


def read_html(data: bytes) -> Parsed:
    """What a browser would show, a line for each block."""
    with needs():
        from bs4 import BeautifulSoup
        from bs4.dammit import EncodingDetector
        from bs4.exceptions import ParserRejectedMarkup
    declared = EncodingDetector.find_declared_encoding(data[:_HEAD], is_html=True)
    with reasons_of(ParserRejectedMarkup), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of XML, and of input that resembles a path: both are read as HTML
        page = BeautifulSoup(decode(data, declared or ""), "lxml", huge_tree=True)
    title = page.title and page.title.get_text(" ", strip=True)
    text, headings = show(page)
    return Parsed(text, title or "", marks_of(headings))


def read_pdf(data: bytes) -> Parsed:
    """The text layer, page after page; headings from the outline, where there is one."""
    with needs():
        from pypdf import PdfReader
        from pypdf.errors import DependencyError, PyPdfError
    with _hushed("pypdf"), reasons_of(PyPdfError, DependencyError):
        document = PdfReader(BytesIO(data))
        if document.is_encrypted and not document.decrypt(""):
            raise ValueError("it is locked with a password")
        pages = [_tidied(page.extract_text()) for page in document.pages]
        title = document.metadata and document.metadata.title
        starts = starts_of(pages, "\n\n")
        try:
            headings = list(_pdf_headings(document, pages, starts))
        except (PyPdfError, *BROKEN):
            headings = []  # a broken outline spoils no text
    if not any(page.strip() for page in pages):
        raise ValueError("it has no text layer, so it needs OCR first")
    numbered = zip(starts, range(1, len(pages) + 1), strict=True)
    return Parsed("\n\n".join(pages), str(title or ""), marks_of(headings, numbered))


def _tidied(page: str) -> str:
    """Drop white space at the ends of lines; make a word whole that is hyphenated over one."""
    page = "\n".join(line.rstrip(" \t") for line in page.split("\n"))
    return re.sub(r"(?<=[^\W\d_])-\n(?=[a-z])", "", page)


def _pdf_headings(document: "PdfReader", pages: Sequence[str], starts: Sequence[int]) -> Iterator[Heading]:
    """The outline's entries, each where its words stand on its page, else right behind the entry before it."""
    behind: dict[int, int] = {}
    for level, entry in _outline(document.outline):
        number = document.get_destination_page_number(entry)
        if number is None or not 0 <= number < len(pages) or not entry.title:
            continue
        words = r"\s+".join(map(re.escape, entry.title.split()))
        found = re.compile(words).search(pages[number], behind.get(number, 0))
        behind[number] = found.start() if found else behind.get(number, 0)
        yield Heading(starts[number] + behind[number], level, entry.title)


def _outline(entries: Sequence[Any], level: int = 1) -> Iterator[tuple[int, Any]]:
    for entry in entries:
        if isinstance(entry, list):
            yield from _outline(entry, level + 1)
        else:
            yield level, entry


@contextmanager
def _hushed(name: str) -> Iterator[None]:
    """Drop what a library logs of every oddity in a file that it reads all the same."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


_CODE = (
    "py pyi js jsx mjs cjs ts tsx vue svelte css scss java kt kts scala groovy go rs c h cc cpp cxx hpp cs fs swift m "
    "rb php pl pm lua r jl dart ex exs erl clj hs ml sh bash zsh fish ps1 bat sql proto graphql tf gradle cmake "
    "toml ini cfg conf properties"
).split()

READERS: Mapping[str, Callable[[bytes], Parsed]] = MappingProxyType(
    {
        ".txt": read_text,
        ".md": read_markdown,
        ".markdown": read_markdown,
        ".rst": read_rst,
        ".html": read_html,
        ".htm": read_html,
        ".pdf": read_pdf,
        ".docx": read_docx,
        ".pptx": read_pptx,
        ".xlsx": read_xlsx,
        ".xlsm": read_xlsx,
        ".csv": read_csv,
        ".tsv": read_csv,
        ".json": read_json,
        ".jsonl": read_json_lines,
        ".ndjson": read_json_lines,
        ".yaml": read_text,
        ".yml": read_text,
        **{f".{suffix}": read_text for suffix in _CODE},
    }
)
"""Reader by suffix, lower case. Each raises what its library raises, `ValueError` with a reason where it knows one."""

SUPPORTED = tuple(READERS)
"""Suffixes that have a reader, lower case, with their dot."""

SUPPORTED_WORDS = f"{', '.join(SUPPORTED[: -len(_CODE)])} and source code"
"""The same for people."""

# What parsers let through on broken input beside their own errors; they have no narrower root.
BROKEN = (
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
