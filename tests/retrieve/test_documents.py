import hashlib
import logging
import os
import random
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragcache.errors import NoDocuments, UnreadableDocument, UnsupportedDocument
from ragcache.retrieve import find, load, skipped

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


def test_find_lists_supported_files_of_folders_and_names_once_and_sorted(tmp_path: Path) -> None:
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    for name in ("b.md", "sub/a.TXT", "sub/deep/c.htm", "skip.png", ".hidden.txt", ".git/x.txt"):
        write(tmp_path / name, "x")
    found = find([tmp_path, tmp_path / "b.md", str(tmp_path / "sub" / ".." / "b.md")])
    assert [path.relative_to(tmp_path).as_posix() for path in found] == ["b.md", "sub/a.TXT", "sub/deep/c.htm"]
    assert skipped([tmp_path]) == [tmp_path / "skip.png"]


def test_relative_and_absolute_names_are_the_same_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.txt", "x")
    monkeypatch.chdir(tmp_path)
    assert find(["a.txt"]) == find([tmp_path])
    assert load("a.txt") == load(tmp_path / "a.txt")


def test_a_named_file_of_another_type_is_refused_with_the_supported_ones(tmp_path: Path) -> None:
    for call in (lambda path: find([path]), load):
        with pytest.raises(UnsupportedDocument, match=r"x\.png.*\.txt, \.md.*\.pdf, \.docx"):
            call(write(tmp_path / "x.png", "x"))


def test_no_document_and_no_such_path_are_errors_that_name_the_path(tmp_path: Path) -> None:
    write(tmp_path / "x.png", "x")
    with pytest.raises(NoDocuments, match=tmp_path.name):
        find([tmp_path])
    with pytest.raises(NoDocuments, match=r"no .*gone"):
        find([tmp_path / "gone"])
    with pytest.raises(NoDocuments, match="no path"):
        find([])


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


def test_line_ends_are_unified_and_stray_control_characters_dropped(tmp_path: Path) -> None:
    data = b"one\r\ntwo\rthree\x0cfour " + b"and more words " * 10 + b"a\x00b\x1b"
    assert load(write(tmp_path / "a.md", data)).text == "one\ntwo\nthree\nfour " + "and more words " * 10 + "ab"


@pytest.mark.parametrize("data", [b"", b"  \n\t\r\n", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("suffix", ["txt", "md", "html"])
def test_an_empty_file_is_unreadable_and_says_so(tmp_path: Path, data: bytes, suffix: str) -> None:
    with pytest.raises(UnreadableDocument, match="empty"):
        load(write(tmp_path / f"a.{suffix}", data))


@pytest.mark.parametrize("suffix", ["txt", "md", "html", "pdf", "docx"])
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


def test_markdown_is_kept_and_its_first_heading_is_the_title(tmp_path: Path) -> None:
    document = load(write(tmp_path / "a.md", "intro\n\n## The *Tide* ##\n\ntext\n# Later\n"))
    assert document.metadata["title"] == "The *Tide*"
    assert document.text.startswith("intro\n\n## The")


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


@pytest.mark.parametrize("suffix", ["pdf", "docx"])
def test_a_damaged_file_reads_or_is_unreadable_and_nothing_else(
    tmp_path: Path, suffix: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / f"a.{suffix}"
    make_pdf(path, [SENTENCE * 20]) if suffix == "pdf" else make_docx(path)
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
