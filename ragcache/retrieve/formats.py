"""One reader per file format: bytes to plain text and a title, by a library for each."""

import codecs
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from types import MappingProxyType
from typing import TYPE_CHECKING

from ragcache.retrieve.needs import needs
from ragcache.retrieve.webpage import show

if TYPE_CHECKING:
    from docx.table import Table

Parsed = tuple[str, str | None]  # text, title

_BOMS = (  # the longer first: UTF-32's begins with UTF-16's
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def read_text(data: bytes) -> Parsed:
    """Plain text in any encoding: a byte order mark, UTF-8, or what charset-normalizer finds."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data.decode(encoding), None
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError:
        return _guess(data), None


def _guess(data: bytes) -> str:
    with needs():
        from charset_normalizer import from_bytes
    best = from_bytes(data).best()
    if best is None:
        raise ValueError("it is not text in any known encoding")
    return str(best)


def read_markdown(data: bytes) -> Parsed:
    """Markdown stays as it is; its first heading is the title."""
    text, _ = read_text(data)
    heading = re.search(r"^#{1,6}[ \t]+(\S.*)", text, re.MULTILINE)
    return text, (heading and heading[1].rstrip(" \t\r#")) or None


def read_html(data: bytes) -> Parsed:
    """What a browser would show, a line for each block."""
    with needs():
        from bs4 import BeautifulSoup
        from bs4.exceptions import ParserRejectedMarkup
    with _reason(ParserRejectedMarkup), _hushed("bs4.dammit"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of XML, and of input that resembles a path: both are read as HTML
        page = BeautifulSoup(data, "html.parser")
    title = page.title and page.title.get_text(" ", strip=True)
    return show(page), title or None


def read_pdf(data: bytes) -> Parsed:
    """The text layer, page after page; a word that is hyphenated over a line end is made whole."""
    with needs():
        from pypdf import PdfReader
        from pypdf.errors import DependencyError, PyPdfError
    with _hushed("pypdf"), _reason(PyPdfError, DependencyError):
        document = PdfReader(BytesIO(data))
        if document.is_encrypted and not document.decrypt(""):
            raise ValueError("it is locked with a password")
        text = "\n\n".join(page.extract_text() for page in document.pages)
        title = document.metadata and document.metadata.title
    if not text.strip():
        raise ValueError("it has no text layer, so it needs OCR first")
    text = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
    return re.sub(r"(?<=[^\W\d_])-\n(?=[a-z])", "", text), title or None


@contextmanager
def _reason(*kinds: type[Exception]) -> Iterator[None]:
    """Hand a library's own errors on as the one that readers raise."""
    try:
        yield
    except kinds as error:
        raise ValueError(str(error) or type(error).__name__) from error


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


def read_docx(data: bytes) -> Parsed:
    """Paragraphs and tables in reading order, without headers and footers."""
    with needs():
        from docx import Document
        from docx.opc.exceptions import OpcError
        from docx.table import Table
    with _reason(OpcError):
        document = Document(BytesIO(data))
        content = document.iter_inner_content()
        parts = [_rows(part) if isinstance(part, Table) else part.text.strip() for part in content]
        return "\n\n".join(part for part in parts if part), document.core_properties.title or None


def _rows(table: "Table") -> str:
    # The dict keeps a merged cell once: the row lists the same object for each column that it spans.
    rows = ([cell.text.strip() for cell in dict.fromkeys(row.cells)] for row in table.rows)
    return "\n".join(" | ".join(cell for cell in row if cell) for row in rows)


READERS: Mapping[str, Callable[[bytes], Parsed]] = MappingProxyType(
    {
        ".txt": read_text,
        ".md": read_markdown,
        ".markdown": read_markdown,
        ".html": read_html,
        ".htm": read_html,
        ".pdf": read_pdf,
        ".docx": read_docx,
    }
)
"""Reader by suffix, lower case. Each raises what its library raises, `ValueError` with a reason where it knows one."""
