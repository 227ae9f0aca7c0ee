import csv
import hashlib
import logging
import os
import random
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragcache.errors import UnreadableDocument, UnsupportedDocument
from ragcache.retrieve import Document, load
from ragcache.retrieve.formats import READERS
from ragcache.retrieve.places import mark_at

SENTENCE = "Ada Lovelace leads the Tide project from the harbour office. "


def make_pdf(path: Path, paragraphs: list[str], **kwargs: object) -> Path:
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate

    style = getSampleStyleSheet()["BodyText"]
    SimpleDocTemplate(str(path), **kwargs).build([Paragraph(text, style) for text in paragraphs])
    return path


def make_docx(path: Path) -> Path:
    import docx

    document = docx.Document()
    document.core_properties.title = "Tide handbook"
    document.add_heading("People")
    document.add_paragraph(SENTENCE)
    table = document.add_table(2, 2)
    table.cell(0, 0).text = table.cell(0, 1).text = "same"
    table.cell(1, 0).merge(table.cell(1, 1)).text = "merged"
    document.add_paragraph("The end.")
    document.save(str(path))
    return path


def write(path: Path, data: str | bytes) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def test_a_relative_and_an_absolute_name_are_the_same_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.txt", "x")
    monkeypatch.chdir(tmp_path)
    assert load("a.txt") == load(tmp_path / "a.txt")


def test_a_file_of_another_type_is_refused_with_the_supported_ones(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedDocument, match=r"x\.png.*\.txt, \.md.*\.pdf, \.docx.* and source code"):
        load(write(tmp_path / "x.png", "x"))


def test_text_carries_its_path_and_the_digest_of_its_bytes(tmp_path: Path) -> None:
    document = load(write(tmp_path / "a.txt", "Grüße"))
    assert (document.text, document.source) == ("Grüße", str(tmp_path / "a.txt"))
    assert document.digest == hashlib.sha256("Grüße".encode()).hexdigest()
    assert document.metadata == {"format": "txt"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_marks_are_read_and_dropped(tmp_path: Path, encoding: str) -> None:
    assert load(write(tmp_path / "a.txt", "Grüße, 漢字".encode(encoding))).text == "Grüße, 漢字"


def test_a_legacy_encoding_is_found(tmp_path: Path) -> None:
    text = "Die Größe der Brücke überrascht die Gäste; schöne Grüße aus Köln und für später. " * 5
    assert load(write(tmp_path / "a.txt", text.encode("latin-1"))).text == text


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Mooring costs £12 – “cash only” at the gate’s"),
        ("cp1252", "Price: €5. The “Otter” — a boat"),
        ("cp1252", "Die Öffnungszeiten des Hafens"),
        ("cp1252", "El niño"),
        ("cp1252", "José"),
        ("cp1252", "Båten går på lördag."),
        ("cp1252", "A tripulação não chegou à estação; amanhã é feriado."),
        ("cp1252", "Zoë, José, Müller, Søren and François: 5 µm, ½ cup, 20 °C, m³"),
        ("cp1250", "Łódź przypływa w niedzielę. Opłata wynosi czterdzieści złotych."),
        ("cp1250", "Příliš žluťoučký kůň"),
        ("cp1254", "Gemi pazar günü geliyor; çocuklar için giriş ücretsizdir, şimdi açık."),
        ("cp1257", "Laivas atplaukia sekmadienį. Mokestis už švartavimąsi mokamas grynaisiais."),
        ("cp1251", "Пароход приходит в воскресенье."),
        ("cp1253", "Το πλοίο φτάνει την Κυριακή. Τα τέλη πληρώνονται με μετρητά."),
        ("cp1255", "הספינה מגיעה ביום ראשון. התשלום במזומן בשער."),
        ("shift_jis", "船は日曜日に到着します。係留料は門で現金で支払います。"),
        ("gbk", "船星期天到达。停泊费在门口用现金支付。"),
        ("euc_kr", "배는 일요일에 도착합니다. 정박료는 정문에서 현금으로 지불합니다."),
    ],
)
def test_a_line_in_a_legacy_encoding_is_read_as_its_language_is_written(
    tmp_path: Path, encoding: str, text: str
) -> None:
    assert load(write(tmp_path / "a.txt", text.encode(encoding))).text == text
    assert load(write(tmp_path / "a.html", f"<p>{text}".encode(encoding))).text == text


def test_line_ends_are_unified_and_stray_control_characters_dropped(tmp_path: Path) -> None:
    data = b"one\r\ntwo\rthree\x0cfour " + b"and more words " * 10 + b"a\x00b\x1b"
    assert load(write(tmp_path / "a.md", data)).text == "one\ntwo\nthree\nfour " + "and more words " * 10 + "ab"


@pytest.mark.parametrize("data", [b"", b"  \n\t\r\n", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("suffix", ["txt", "md", "html"])
def test_an_empty_file_is_unreadable_and_says_so(tmp_path: Path, data: bytes, suffix: str) -> None:
    with pytest.raises(UnreadableDocument, match="empty"):
        load(write(tmp_path / f"a.{suffix}", data))


@pytest.mark.parametrize(
    "suffix", ["txt", "md", "html", "pdf", "docx", "pptx", "xlsx", "csv", "json", "jsonl", "yaml", "rst", "py"]
)
def test_binary_junk_is_unreadable_in_every_format(tmp_path: Path, suffix: str) -> None:
    junk = random.Random(0)
    for data in (junk.randbytes(4000), bytes(4000), b"\x7fELF" + junk.randbytes(200)):
        with pytest.raises(UnreadableDocument, match=rf"a\.{suffix} can't be read: \w"):
            load(write(tmp_path / f"a.{suffix}", data))


def test_a_folder_with_a_document_suffix_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "a.txt").mkdir()
    with pytest.raises(UnreadableDocument, match="directory"):
        load(tmp_path / "a.txt")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_unreadable(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "x")
    path.chmod(0)
    with pytest.raises(UnreadableDocument, match="denied"):
        load(path)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("intro\n\n# The *Tide* #\n\ntext\n\n## Later\n", "The *Tide*"),
        ("## Opening hours\n\nnine\n\n## Fees\n\nten\n", ""),
        ("## Fees\n\nten\n\n# Berths\n\ntwo\n", ""),
        ("no heading", ""),
    ],
)
def test_markdown_is_kept_and_a_heading_above_all_others_is_the_title(tmp_path: Path, text: str, title: str) -> None:
    document = load(write(tmp_path / "a.md", text))
    assert (document.text, document.metadata.get("title", "")) == (text, title)


@pytest.mark.parametrize(
    ("front", "title"),
    [
        ("title: Harbour guide of Bergen\ndate: 2024-05-01\ntags:\n- sea\n  - port\n", "Harbour guide of Bergen"),
        ("layout: page\ntitle: 'Harbour: a guide' # for guests\n\n", "Harbour: a guide"),
        ("title: Harbour guide # for guests\n", "Harbour guide"),
        ("title: >\n  Harbour guide\n", ""),
        ("subtitle: Harbour guide\n", ""),
    ],
)
def test_front_matter_gives_its_title_and_no_text(tmp_path: Path, front: str, title: str) -> None:
    text = f"---\n{front}---\n\n## Opening hours\n\nnine\n\n## Fees\n\nten\n"
    document = load(write(tmp_path / "a.md", text))
    assert document.metadata.get("title", "") == title
    assert len(document.text) == len(text)
    assert document.text.index("ten") == text.index("ten")
    assert place(document, "ten") == (None, "Fees")
    assert document.text.lstrip().startswith("## Opening hours")


@pytest.mark.parametrize(
    "text", ["---\nThe tide is high.\n---\n\nMore.\n", "---\ntitle: Tide\n---\n", "---\na: b\n# c: d\n"]
)
def test_what_is_no_front_matter_stays(tmp_path: Path, text: str) -> None:
    assert load(write(tmp_path / "a.md", text)).text == text


def test_html_reads_as_a_browser_shows_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    page = """<!doctype html><html><head><title>Tide
      handbook</title><style>a{}</style></head><body><!-- secret --><script>x()</script><h1>Head</h1>
      <p>A <b>bold</b>
      word.<br>Line<ul><li>one<li>two</ul><table><tr><td>a</td><td>b</td></tr></table><pre>f:
    x</pre></body></html>"""
    document = load(write(tmp_path / "a.html", page))
    assert document.metadata["title"] == "Tide handbook"
    assert document.text == "Head\n\nA bold word.\nLine\n\none\ntwo\n\na | b\n\nf:\n    x"
    assert not caplog.records


def test_html_that_looks_like_a_path_or_xml_warns_nobody(tmp_path: Path) -> None:
    assert load(write(tmp_path / "a.htm", "notes.txt")).text == "notes.txt"
    assert load(write(tmp_path / "b.htm", "<?xml version='1.0'?><p>x</p>")).text == "x"


def test_pdf_pages_and_title_are_read(tmp_path: Path) -> None:
    document = load(make_pdf(tmp_path / "a.pdf", [SENTENCE * 10] * 30, title="Tide handbook"))
    assert document.metadata == {"format": "pdf", "title": "Tide handbook"}
    assert " ".join(document.text.split()) == " ".join((SENTENCE * 300).split())


def test_a_word_hyphenated_over_a_line_end_is_made_whole_and_a_name_is_not(tmp_path: Path) -> None:
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(tmp_path / "a.pdf"))
    for row, line in enumerate(["The har-", "bour of Saint-", "Malo"]):
        canvas.drawString(72, 700 - 14 * row, line)
    canvas.save()
    assert load(tmp_path / "a.pdf").text == "The harbour of Saint-\nMalo\n"


def test_a_pdf_without_text_says_that_it_needs_ocr(tmp_path: Path) -> None:
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(tmp_path / "scan.pdf"))
    canvas.rect(10, 10, 50, 50)
    canvas.save()
    with pytest.raises(UnreadableDocument, match="OCR"):
        load(tmp_path / "scan.pdf")


def test_a_locked_pdf_says_so(tmp_path: Path) -> None:
    from pypdf import PdfWriter

    writer = PdfWriter(clone_from=make_pdf(tmp_path / "a.pdf", [SENTENCE]))
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(tmp_path / "locked.pdf")
    with pytest.raises(UnreadableDocument, match="password"):
        load(tmp_path / "locked.pdf")


def test_docx_paragraphs_and_tables_are_read_in_order(tmp_path: Path) -> None:
    document = load(make_docx(tmp_path / "a.docx"))
    assert document.text == f"People\n\n{SENTENCE.strip()}\n\nsame | same\nmerged\n\nThe end."
    assert document.metadata["title"] == "Tide handbook"


def test_docx_changes_are_read_as_accepted_and_controls_as_their_text(tmp_path: Path) -> None:
    import docx
    from docx.oxml import parse_xml
    from docx.oxml.ns import nsdecls

    def put(parent: Any, tag: str, within: str, at: int | None = None) -> None:
        element = parse_xml(f"<w:{tag} {nsdecls('w')}>{within}</w:{tag}>")
        parent.insert(len(parent) if at is None else at, element)

    document = docx.Document()
    fee = document.add_paragraph("The fee is ")
    put(fee._p, "ins", "<w:r><w:t>forty crowns</w:t></w:r>")
    put(fee._p, "del", "<w:r><w:delText>ninety crowns</w:delText></w:r>")
    put(fee._p, "moveFrom", "<w:r><w:t>once</w:t></w:r>")
    fee.add_run(" a day.")
    client = document.add_paragraph("Client: ")
    put(client._p, "sdt", "<w:sdtPr/><w:sdtContent><w:ins><w:r><w:t>Kelmar</w:t></w:r></w:ins></w:sdtContent>")
    put(
        document.element.body,
        "sdt",
        "<w:sdtContent><w:p><w:r><w:t>In a control.</w:t></w:r></w:p></w:sdtContent>",
        at=1,
    )
    document.save(str(tmp_path / "a.docx"))
    assert load(tmp_path / "a.docx").text == "The fee is forty crowns a day.\n\nIn a control.\n\nClient: Kelmar"


def test_docx_empty_cells_tables_in_cells_and_text_boxes_are_read(tmp_path: Path) -> None:
    import docx
    from docx.oxml import parse_xml
    from docx.oxml.ns import nsdecls

    def box(said: str, within: str = "") -> str:
        return f"<w:pict><w:txbxContent><w:p><w:r><w:t>{said}</w:t>{within}</w:r></w:p></w:txbxContent></w:pict>"

    compatibility = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    document = docx.Document()
    anchor = document.add_paragraph("The harbour.")
    newer, older = box("Closed in May.", box("Or not.")), box("Closed in May.")
    twice = f"<mc:Choice>{newer}</mc:Choice><mc:Fallback>{older}</mc:Fallback>"
    xml = f"<w:r {nsdecls('w')} {compatibility}><mc:AlternateContent>{twice}</mc:AlternateContent></w:r>"
    anchor._p.append(parse_xml(xml))
    table = document.add_table(2, 3)
    for number, text in ((0, "A"), (2, "15")):
        table.cell(0, number).text = text
    table.cell(1, 1).text = "Fees"
    inner = table.cell(1, 1).add_table(1, 2)
    inner.cell(0, 0).text, inner.cell(0, 1).text = "boat", "12"
    document.save(str(tmp_path / "a.docx"))
    assert load(tmp_path / "a.docx").text == (
        "The harbour.\n\nClosed in May.\n\nOr not.\n\nA |  | 15\n | Fees\nboat | 12 |"
    )


@pytest.mark.parametrize("suffix", ["pdf", "docx", "pptx", "xlsx"])
def test_a_damaged_file_reads_or_is_unreadable_and_nothing_else(
    tmp_path: Path, suffix: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / f"a.{suffix}"
    make = {"docx": make_docx, "pptx": make_pptx, "xlsx": make_xlsx}
    make_outlined_pdf(path) if suffix == "pdf" else make[suffix](path)
    whole, level = path.read_bytes(), logging.getLogger("pypdf").level
    for seed in range(60):
        damage = random.Random(seed)
        data = bytearray(whole if seed % 2 else whole[: damage.randrange(len(whole))])
        for _ in range(20):
            data[damage.randrange(len(data))] = damage.randrange(256)
        write(path, data)
        with suppress(UnreadableDocument):
            assert load(path).text.strip()
    assert logging.getLogger("pypdf").level == level
    assert not caplog.records


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\ufffd\ufeff")))
def test_any_unicode_text_survives_loading(tmp_path: Path, text: str) -> None:
    assert load(write(tmp_path / "a.txt", "x" + text)).text == "x" + text


def place(document: Document, words: str) -> tuple[int | None, str]:
    """Page and headings of where some words stand."""
    mark = mark_at(document.marks, document.text.index(words))
    return mark.page, mark.heading


def make_outlined_pdf(path: Path) -> Path:
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(path))
    pages = [
        [("Results", 0), ("", "The tide was measured for a year."), ("Costs", 1), ("", "It cost 4,200 euros.")],
        [("", "The money came from the harbour office.")],
        [("Outlook", 0), ("", "Next year it goes on.")],
    ]
    for lines in pages:
        for row, (title, level) in enumerate(lines):
            canvas.drawString(72, 700 - 40 * row, title or str(level))
            if title:
                canvas.bookmarkPage(title)
                canvas.addOutlineEntry(title, title, level=level)
        canvas.showPage()
    canvas.save()
    return path


def test_pdf_pages_and_outline_are_marked_where_they_begin(tmp_path: Path) -> None:
    document = load(make_outlined_pdf(tmp_path / "a.pdf"))
    assert place(document, "for a year") == (1, "Results")
    assert place(document, "4,200") == (1, "Results › Costs")
    assert place(document, "The money") == (2, "Results › Costs")
    assert place(document, "Next year") == (3, "Outlook")


def test_every_sentence_of_a_long_pdf_stands_on_the_page_that_a_viewer_shows(tmp_path: Path) -> None:
    from pypdf import PdfReader

    path = make_pdf(tmp_path / "a.pdf", [f"Sentence {number} is here. " + SENTENCE * 5 for number in range(60)])
    document, pages = load(path), [page.extract_text() for page in PdfReader(path).pages]
    assert len(pages) > 3
    for number in range(60):
        [page] = [n for n, text in enumerate(pages, start=1) if f"Sentence {number} is" in text]
        assert place(document, f"Sentence {number} is") == (page, "")


def test_a_broken_outline_spoils_no_text(tmp_path: Path) -> None:
    path = make_outlined_pdf(tmp_path / "a.pdf")
    path.write_bytes(path.read_bytes().replace(b"/Dest [", b"/Dest <"))
    assert "4,200" in load(path).text


def test_markdown_headings_are_marked_and_those_in_code_are_not(tmp_path: Path) -> None:
    text = (
        "---\ntitle: x\n---\n# Tide\r\n\r\nintro\n\n```\n# no heading\n```\n\n"
        "Costs\n-----\n\n4,200\n\n## Staff\n\nten\n\n# End\nbye\n"
    )
    document = load(write(tmp_path / "a.md", "\ufeff" + text))
    assert document.metadata["title"] == "x"
    assert place(document, "intro") == place(document, "# no heading") == (None, "Tide")
    assert place(document, "4,200") == (None, "Tide › Costs")
    assert place(document, "ten") == (None, "Tide › Staff")
    assert place(document, "bye") == (None, "End")


def test_marks_stay_where_they_belong_when_control_characters_go(tmp_path: Path) -> None:
    text = "a\x00\x1b" + "intro " * 50 + "\n\n# One\x07\n\n" + "first " * 50 + "\n\n# Two\n\nsecond"
    document = load(write(tmp_path / "a.md", text))
    assert [document.text[mark.offset :].partition("\n")[0] for mark in document.marks] == ["# One", "# Two"]
    assert place(document, "second") == (None, "Two")


def test_rst_headings_are_marked_by_the_order_of_their_adornments(tmp_path: Path) -> None:
    text = (
        "====\nTide\n====\n\nintro\n\nCosts\n=====\n\n4,200\n\nStaff\n~~~~~\n\nten\n\nEnd\n===\n\nbye\n\n"
        "::\n\n    Not\n    ===\n\n=====  =====\nA      B\n=====  =====\n1      2\n=====  =====\n"
    )
    document = load(write(tmp_path / "a.rst", text))
    assert (document.text, document.metadata["title"]) == (text, "Tide")
    assert place(document, "4,200") == (None, "Tide › Costs")
    assert place(document, "ten") == (None, "Tide › Costs › Staff")
    assert place(document, "bye") == place(document, "1      2") == (None, "Tide › End")


def test_html_headings_are_marked_and_leave_no_trace_in_the_text(tmp_path: Path) -> None:
    page = """<h1> Tide <a href=x>now</a></h1><p>intro</p><div><h2><div>Costs</div></h2>4,200</div>
      <h2></h2><p>more</p><section><h2>Staff</h2><h3>Ten</h3>people</section>"""
    document = load(write(tmp_path / "a.html", page))
    assert document.text.startswith("Tide now\n\nintro\n\nCosts\n")
    assert document.text.isprintable() or not set(document.text) & {"\x02", "\x03"}
    assert place(document, "intro") == (None, "Tide now")
    assert place(document, "4,200") == place(document, "more") == (None, "Tide now › Costs")
    assert place(document, "people") == (None, "Tide now › Staff › Ten")


def test_docx_headings_are_marked_by_their_styles(tmp_path: Path) -> None:
    import docx

    file = docx.Document()
    file.add_heading("Tide", 0)
    file.add_paragraph("intro")
    for level, words in ((1, "Results"), (2, "Costs")):
        file.add_heading(words, level)
    file.add_table(1, 2).cell(0, 0).text = "4,200"
    file.add_heading("Outlook", 1)
    file.add_paragraph("bye")
    file.save(str(tmp_path / "a.docx"))
    document = load(tmp_path / "a.docx")
    assert place(document, "intro") == (None, "Tide")
    assert place(document, "4,200") == (None, "Tide › Results › Costs")
    assert place(document, "bye") == (None, "Tide › Outlook")


def make_pptx(path: Path) -> Path:
    from pptx import Presentation
    from pptx.util import Inches

    deck = Presentation()
    deck.core_properties.title = "Tide deck"
    first = deck.slides.add_slide(deck.slide_layouts[1])
    first.shapes.title.text = "Results"
    first.placeholders[1].text = "The tide was measured.\nFor a year."
    first.notes_slide.notes_text_frame.text = "Say it slowly."
    deck.slides.add_slide(deck.slide_layouts[6])  # empty
    third = deck.slides.add_slide(deck.slide_layouts[6])
    cells = third.shapes.add_table(2, 2, Inches(1), Inches(1), Inches(4), Inches(1)).table
    for row, column, text in ((0, 0, "year"), (0, 1, "euros"), (1, 0, "2024"), (1, 1, "4,200")):
        cells.cell(row, column).text = text
    group = third.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = "Inside a group."
    deck.save(str(path))
    return path


def test_pptx_slides_tables_groups_and_notes_are_read_and_slides_counted(tmp_path: Path) -> None:
    document = load(make_pptx(tmp_path / "a.pptx"))
    assert document.metadata == {"format": "pptx", "title": "Tide deck"}
    assert document.text == (
        "Results\n\nThe tide was measured.\nFor a year.\n\nNotes: Say it slowly.\n\n"
        "year | euros\n2024 | 4,200\n\nInside a group."
    )
    assert place(document, "measured") == (1, "Results")
    assert place(document, "4,200") == (3, "")


def make_xlsx(path: Path) -> Path:
    from openpyxl import Workbook

    book = Workbook()
    book.properties.title = "Tide books"
    book.active.title = "Staff"
    rows = [["name", "since", "share"], ["Ada", date(2024, 5, 1), 2.0], ["Bob", None, 0.5]]
    for row in [["Staff of the harbour"], [], *rows]:
        book.active.append(row)
    book.create_sheet("Empty")
    costs = book.create_sheet("Costs")
    costs.append(["region", 2023, 2024])
    costs.append(["north", 10, 20])
    book.save(path)
    return path


def test_xlsx_rows_carry_their_columns_and_sheets_are_pages(tmp_path: Path) -> None:
    document = load(make_xlsx(tmp_path / "a.xlsx"))
    assert document.metadata == {"format": "xlsx", "title": "Tide books"}
    assert document.text == (
        "Staff\n\nStaff of the harbour\n\nname: Ada\nsince: 2024-05-01\nshare: 2\n\nname: Bob\nshare: 0.5\n\n"
        "Costs\n\nregion: north\n2023: 10\n2024: 20"
    )
    assert place(document, "Bob") == (1, "Staff")
    assert place(document, "north") == (3, "Costs")


@pytest.mark.parametrize("suffix", ["docx", "pptx", "xlsx"])
def test_an_archive_that_unpacks_to_more_than_the_limit_is_unreadable(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = {"docx": make_docx, "pptx": make_pptx, "xlsx": make_xlsx}[suffix]
    monkeypatch.setattr("ragcache.retrieve.office.MAX_UNPACKED", 1000)
    with pytest.raises(ValueError, match="unpacks to"):
        READERS[f".{suffix}"](make(tmp_path / f"a.{suffix}").read_bytes())


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_rows_carry_their_columns_whatever_the_delimiter(tmp_path: Path, delimiter: str) -> None:
    rows = [["name", "city", "note"], ["Ada", "Kel mar", "a, b; c"], ["Bob", "", "two\nlines"], ["Eve", "", "x", "y"]]
    with (tmp_path / "a.csv").open("w", newline="", encoding="cp1252") as file:
        csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL).writerows(rows)
    assert load(tmp_path / "a.csv").text == (
        "name: Ada\ncity: Kel mar\nnote: a, b; c\n\nname: Bob\nnote: two lines\n\nname: Eve\nnote: x\ny"
    )


def test_csv_keeps_quotes_and_odd_line_ends_within_their_cells(tmp_path: Path) -> None:
    text = 'name,quote,town\nBob,"yes, no",Rom\nAda,"He said ""hi, you"" then, left",Kelmar\nBo,X\u2028Y,Rye\n'
    assert load(write(tmp_path / "a.csv", text)).text == (
        'name: Bob\nquote: yes, no\ntown: Rom\n\nname: Ada\nquote: He said "hi, you" then, left\ntown: Kelmar\n\n'
        "name: Bo\nquote: X Y\ntown: Rye"
    )


def test_csv_without_names_of_columns_keeps_its_rows(tmp_path: Path) -> None:
    assert load(write(tmp_path / "a.csv", "Ada,4200\nBob,17\n")).text == "Ada | 4200\n\nBob | 17"
    assert load(write(tmp_path / "b.csv", "name\nAda\nBob\n")).text == "name\n\nAda\n\nBob"
    assert load(write(tmp_path / "c.csv", "name,city\n")).text == "name | city"


def test_csv_with_a_cell_longer_than_the_parser_takes_is_read_as_it_is(tmp_path: Path) -> None:
    text = 'name,story\nAda,"' + "tide " * 40_000 + '"\n'
    assert load(write(tmp_path / "a.csv", text)).text == text


def test_json_values_carry_their_keys_and_numbers_stay_as_written(tmp_path: Path) -> None:
    value = """{"made": "2024", "on": true, "none": null, "server": {"host": "kelmar", "port": 8080},
      "people": [{"name": "Ada", "pay": 1.50, "tags": ["a", "b"], "jobs": [{"at": "mill"}, {"at": "sea"}]},
                 {"name": "Bob", "pay": 12345678901234567890, "tags": []}]}"""
    assert load(write(tmp_path / "a.json", value)).text == (
        "made: 2024\non: true\nnone: null\n\nserver.host: kelmar\nserver.port: 8080\n\n"
        "people.name: Ada\npeople.pay: 1.50\npeople.tags: a, b\npeople.jobs[1].at: mill\npeople.jobs[2].at: sea\n\n"
        "people.name: Bob\npeople.pay: 12345678901234567890"
    )


def test_json_that_is_not_valid_or_too_deep_is_read_as_it_is(tmp_path: Path) -> None:
    for text in ('{"a": 1, // why\n "b": 2}', "[" * 100_000 + "]" * 100_000):
        assert load(write(tmp_path / "a.json", text)).text == text


def test_json_lines_are_read_one_by_one(tmp_path: Path) -> None:
    text = '{"name": "Ada", "at": {"city": "Rye"}}\nbroken {\n\n["x", "y"]\n'
    assert load(write(tmp_path / "a.jsonl", text)).text == "name: Ada\nat.city: Rye\n\nbroken {\n\nx, y"


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.yml", "# why\nname: Ada  # who\nlist:\n  - 1\n"), ("a.py", 'def f():\n    """Say."""\n    return 1  # one\n')],
)
def test_yaml_and_source_code_keep_comments_and_indents(tmp_path: Path, name: str, text: str) -> None:
    assert load(write(tmp_path / name, text)).text == text


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.txt")
    with pytest.raises(UnreadableDocument, match="a pipe"):
        load(tmp_path / "a.txt")


def test_a_file_over_the_size_limit_is_unreadable_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "a.txt").open("wb") as file:
        file.truncate(1 << 40)  # a terabyte of nothing
    with pytest.raises(UnreadableDocument, match=r"1,048,576 MiB, more than the limit of 512"):
        load(tmp_path / "a.txt")


def test_a_file_that_takes_more_memory_than_there_is_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> bytes:
        raise MemoryError

    path = write(tmp_path / "a.txt", "x")
    monkeypatch.setattr(Path, "read_bytes", fail)
    with pytest.raises(UnreadableDocument, match="memory"):
        load(path)
