"""Readers of office files: bytes to text, a title, and marks for headings, slides and sheets."""

import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time
from io import BytesIO
from typing import TYPE_CHECKING, Any

from ragcache.retrieve.needs import needs
from ragcache.retrieve.parsed import Heading, Parsed, marks_of, reasons_of, starts_of
from ragcache.retrieve.records import render_rows

if TYPE_CHECKING:
    from docx.table import Table

MAX_UNPACKED = 1 << 30  # bytes: an archive of some KiB may unpack to more than there is memory
_GAP = "\n\n"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_STYLE = re.compile(r"heading ([1-9])")


def read_docx(data: bytes) -> Parsed:
    """Paragraphs, tables and text boxes in reading order, without headers, footers and notes; headings by their styles.

    Tracked changes are read as if they had been accepted, and content controls as the text that they hold.
    """
    with needs():
        from docx import Document
        from docx.opc.exceptions import OpcError
        from docx.table import Table
    _check_unpacked(data)
    with reasons_of(OpcError):
        document = Document(BytesIO(data))
        _accept_changes(document.element.body)
        _lift_text_boxes(document.element.body)
        blocks = list(document.iter_inner_content())
        parts = [_table(block) if isinstance(block, Table) else block.text.strip() for block in blocks]
        levels = [None if isinstance(block, Table) else _level(block.style.name) for block in blocks]
        title = document.core_properties.title
    filled = [(part, level) for part, level in zip(parts, levels, strict=True) if part]
    starts = starts_of([part for part, _ in filled], _GAP)
    headings = [
        Heading(start, level, part) for start, (part, level) in zip(starts, filled, strict=True) if level is not None
    ]
    return Parsed(_GAP.join(part for part, _ in filled), title or "", marks_of(headings))


def read_pptx(data: bytes) -> Parsed:
    """Slide after slide: its shapes' texts and tables, then the speaker's notes; a page is a slide."""
    with needs():
        from pptx import Presentation
        from pptx.exc import PythonPptxError
    _check_unpacked(data)
    with reasons_of(PythonPptxError):
        presentation = Presentation(BytesIO(data))
        texts = [_GAP.join(_slide(slide)) for slide in presentation.slides]
        titles = [_text_of(slide.shapes.title) for slide in presentation.slides]
        title = presentation.core_properties.title
    return _paged(texts, titles, title)


def read_xlsx(data: bytes) -> Parsed:
    """Sheet after sheet, a paragraph for each row; formulas by the value that was last stored. A page is a sheet."""
    with needs():
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    _check_unpacked(data)
    with reasons_of(InvalidFileException), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it does not keep when it writes
        book = load_workbook(BytesIO(data), read_only=True, data_only=True)
        names = [sheet.title for sheet in book.worksheets]
        tables = [render_rows(_cells(sheet)) for sheet in book.worksheets]
        title = book.properties.title
    if not any(tables):
        return Parsed("")
    texts = [f"{name}{_GAP}{table}" if table else "" for name, table in zip(names, tables, strict=True)]
    return _paged(texts, names, title)


def _paged(texts: Iterable[str], titles: Iterable[str], title: str | None) -> Parsed:
    """Join slides or sheets; those without any text keep their number."""
    pages = [
        (number, text, " ".join(heading.split()))
        for number, (text, heading) in enumerate(zip(texts, titles, strict=True), start=1)
        if text
    ]
    starts = starts_of([text for _, text, _ in pages], _GAP)
    headings = [Heading(start, 1, heading) for start, (_, _, heading) in zip(starts, pages, strict=True)]
    numbers = [(start, number) for start, (number, _, _) in zip(starts, pages, strict=True)]
    return Parsed(_GAP.join(text for _, text, _ in pages), title or "", marks_of(headings, numbers))


def _accept_changes(body: Any) -> None:
    """Turn tracked changes and content controls into the plain runs and paragraphs that python-docx reads."""
    from docx.oxml.ns import qn

    for gone in list(body.iter(*map(qn, ("w:del", "w:moveFrom", "w:sdtPr", "w:sdtEndPr")))):
        gone.getparent().remove(gone)
    wrappers = ("w:sdtContent", "w:sdt", "w:ins", "w:moveTo", "w:smartTag", "w:customXml")
    for wrapper in list(body.iter(*map(qn, wrappers))):
        parent = wrapper.getparent()
        if parent is not None:
            at = parent.index(wrapper)
            parent[at : at + 1] = list(wrapper)


def _lift_text_boxes(body: Any) -> None:
    """Put what stands in text boxes behind the paragraphs that they hang on; inner boxes first."""
    from docx.oxml.ns import qn

    for copy in list(body.iter(_FALLBACK)):  # the same once more, for older programs
        if copy.getprevious() is not None:
            copy.getparent().remove(copy)
    for box in reversed(body.xpath(".//w:p//w:txbxContent")):
        anchor = next(box.iterancestors(qn("w:p")))
        for block in reversed(list(box)):
            anchor.addnext(block)


def _level(style: str) -> int | None:
    """The level of a paragraph style; 0 for the title of the whole."""
    found = _STYLE.match(style.lower())
    return int(found[1]) if found else 0 if style == "Title" else None


def _table(table: "Table") -> str:
    """A line for each row; a table within a cell follows the cell's text."""
    # The dict keeps a merged cell once: the row lists the same object for each column that it spans.
    return _lines([_cell(cell) for cell in dict.fromkeys(row.cells)] for row in table.rows)


def _cell(cell: Any) -> str:
    from docx.table import Table

    blocks = cell.iter_inner_content()
    return "\n".join(filter(None, (_table(one) if isinstance(one, Table) else one.text.strip() for one in blocks)))


def _lines(rows: Iterable[Sequence[str]]) -> str:
    """Rows that are not empty, with their empty cells, so that each value stays in its column."""
    return "\n".join(" | ".join(row).rstrip() for row in rows if any(row))


def _slide(slide: Any) -> Iterator[str]:
    yield from filter(None, (text for shape in slide.shapes for text in _shape(shape)))
    if slide.has_notes_slide and (notes := _text_of(slide.notes_slide.notes_placeholder)):
        yield f"Notes: {notes}"


def _shape(shape: Any) -> Iterator[str]:
    """The texts of a shape, or of those that are grouped in it."""
    if hasattr(shape, "shapes"):
        for inner in shape.shapes:
            yield from _shape(inner)
    elif getattr(shape, "has_table", False):
        yield _lines([cell.text.strip() for cell in row.cells] for row in shape.table.rows)
    else:
        yield _text_of(shape)


def _text_of(shape: Any) -> str:
    return str(shape.text_frame.text).strip() if shape is not None and shape.has_text_frame else ""


def _cells(sheet: Any) -> Iterator[list[str]]:
    sheet.reset_dimensions()  # some programs store a wrong size, and cells outside of it would be lost
    for row in sheet.iter_rows(values_only=True):
        yield [_shown(value) for value in row]


def _shown(value: object) -> str:
    """A cell as a person would write it: no midnight behind a date, no fraction behind a whole number."""
    if value is None:
        return ""
    if isinstance(value, date | time):
        return value.isoformat().replace("T", " ").removesuffix(" 00:00:00")
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _check_unpacked(data: bytes) -> None:
    with zipfile.ZipFile(BytesIO(data)) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > MAX_UNPACKED:
        raise ValueError(f"it unpacks to {size / (1 << 30):.1f} GiB, more than the limit of {MAX_UNPACKED >> 30} GiB")
