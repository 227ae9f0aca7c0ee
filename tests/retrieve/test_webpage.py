import time

import pytest

from ragcache.retrieve.formats import read_html, read_markdown

HOSTILE = {
    "siblings": b"<p>a b</p>" * 20_000,
    "nested": b"<p>a" * 20_000,
    "scripts": b"<script>x</script>" * 20_000,
    "headings in one another": b"<h1>a" * 20_000,
    "headings deep down": b"<p>" * 20_000 + b"<h1>a</h1>" * 20_000,
    "unclosed tags": b"<a" * 100_000,
    "unclosed comments": b"<!--\n" * 100_000,
    "unclosed declarations": b"<meta charset" * 20_000,
}


@pytest.mark.parametrize("page", HOSTILE.values(), ids=HOSTILE)
def test_a_page_of_20_000_parts_is_read_in_seconds(page: bytes) -> None:
    read_html(b"<p>warm up")
    start = time.perf_counter()
    read_html(page)
    assert time.perf_counter() - start < 20  # four minutes and more where each element is looked up among its siblings


def test_a_heading_line_of_100_kilobytes_is_read_in_a_moment() -> None:
    read_markdown(b"warm up")
    start = time.perf_counter()
    assert read_markdown(b"# x" + b" #" * 50_000 + b"x").text
    assert time.perf_counter() - start < 5


def test_a_heading_in_another_has_its_own_words() -> None:
    parsed = read_html(b"<h1>Tide <h2>and <b>lead</b></h2> it</h1><p>text")
    assert parsed.text == "Tide\nand lead\n\nit\n\ntext"
    assert [mark.heading for mark in parsed.marks] == ["Tide it", "Tide it \u203a and lead"]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<head><meta charset=utf-8><title>Harbour</title><body><h1>Fees</h1><p>Ten.", "Fees\n\nTen."),
        ("<title>Harbour</title><h1>Fees</h1><p>Ten.", "Fees\n\nTen."),
        ("<head><title>Harbour</title><harbour-app>Fees</harbour-app>", "Fees"),
        ("<table><tr><th>Berth<th>Fee<tr><td>A<td>12<tr><td>B<td><td>free</table>", "Berth | Fee\nA | 12\nB |  | free"),
        ("<ul>\n<li>one</li>\n<li>two</li>\n</ul>after", "one\ntwo\n\nafter"),
        ("<p>one<!-- unclosed <p>two", "one"),
        ("<p>a&#2;7&#3;b\x1f<h1>c</h1>", "a7b\n\nc"),
    ],
)
def test_what_html_lets_out_is_added_as_browsers_do(page: str, text: str) -> None:
    assert read_html(page.encode()).text == text


def test_a_page_is_larger_than_the_parsers_usual_limits() -> None:
    page = b"<p>one<!--" + b"x" * (11 << 20) + b"--><p>two" + b"<div>" * 3000 + b"three"
    assert read_html(page).text == "one\n\ntwo\n\nthree"


@pytest.mark.parametrize(
    ("declared", "encoding"),
    [
        ("iso-8859-1", "cp1252"),
        ("windows-1251", "cp1251"),
        ("Shift_JIS", "cp932"),
        ("x", "utf-8"),
        ("undefined", "utf-8"),
    ],
)
def test_a_declared_encoding_is_what_browsers_take_it_for(declared: str, encoding: str) -> None:
    said = {"cp1251": "Порт", "cp932": "船は①"}.get(encoding, "“Öl” – 5 €")
    page = f'<meta charset="{declared}"><p>{said}'.encode(encoding)
    assert read_html(page).text == said
