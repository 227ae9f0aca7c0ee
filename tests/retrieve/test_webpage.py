import time

import pytest

from ragcache.retrieve.formats import read_html, read_markdown

HOSTILE = {
    "siblings": b"<p>a b</p>" * 20_000,
    "nested": b"<p>a" * 20_000,
    "scripts": b"<script>x</script>" * 20_000,
    "headings in one another": b"<h1>a" * 20_000,
    "headings deep down": b"<p>" * 20_000 + b"<h1>a</h1>" * 20_000,
}


@pytest.mark.parametrize("page", HOSTILE.values(), ids=HOSTILE)
def test_a_page_of_20_000_elements_is_read_in_seconds(page: bytes) -> None:
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
