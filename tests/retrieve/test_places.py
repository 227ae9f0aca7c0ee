"""Marks, excerpts, and sources that say where to look."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcache.engine.answer import Source
from ragcache.index.chunks import MARKS, chunk_of
from ragcache.retrieve.places import EXCERPT_CHARACTERS, Mark, find_excerpt, mark_at, marks_within
from ragcache.store import ChunkRow, DocumentRow

MARKS_OF_A_BOOK = (Mark(10, 1, "One"), Mark(20, 2, "One"), Mark(30, 2, "One › Two"))
PROSE = (
    "# The bridge\n\nThe bridge was built in 1931. Two brothers designed it, and they had never\n"
    "built one before. Its paint is green.\n\nThe mill grinds rye on Mondays. Nobody is there on Sundays."
)


def test_a_mark_holds_from_its_offset_to_the_next() -> None:
    assert [mark_at(MARKS_OF_A_BOOK, offset).heading for offset in (0, 10, 19, 29, 30, 99)] == [
        "", "One", "One", "One", "One › Two", "One › Two"
    ]  # fmt: skip
    assert mark_at((), 5) == Mark(0)


@given(st.integers(0, 40), st.integers(1, 40))
def test_the_marks_within_a_chunk_say_of_each_place_what_the_document_s_say(start: int, length: int) -> None:
    inside = marks_within(MARKS_OF_A_BOOK, start, start + length)
    for offset in range(length):
        known, there = mark_at(inside, offset), mark_at(MARKS_OF_A_BOOK, start + offset)
        assert (known.page, known.heading) == (there.page, there.heading)
    assert all(0 <= mark.offset < length for mark in inside)


@pytest.mark.parametrize(
    ("question", "excerpt"),
    [
        ("What colour is its paint?", "Its paint is green."),
        ("Who designed the bridge?", "Two brothers designed it, and they had never built one before."),
        ("When is the mill shut?", "The mill grinds rye on Mondays. Nobody is there on Sundays."),
        ("quux?", "The bridge was built in 1931."),
    ],
)
def test_an_excerpt_holds_the_sentence_that_shares_most_with_the_question(question: str, excerpt: str) -> None:
    offset, shown = find_excerpt(PROSE, question)
    assert excerpt in shown
    assert " ".join(PROSE[offset:].split()).startswith(shown)
    assert "#" not in shown


def test_an_excerpt_of_a_row_is_the_row() -> None:
    rows = "name: Ada\ncity: Rye\n\nname: Bob\ncity: Kelmar\n\nname: Eve\ncity: Ulm"
    assert find_excerpt(rows, "Who lives in Kelmar?") == (21, "name: Bob city: Kelmar")


def test_an_excerpt_of_a_long_sentence_is_cut_around_the_word_that_matters() -> None:
    text = "word " * 100 + "lighthouse " + "more " * 100
    offset, shown = find_excerpt(text, "Where is the lighthouse?")
    assert "lighthouse" in shown
    assert shown.startswith("…word ")
    assert shown.endswith(" more…")
    assert text[offset:].startswith("word ")


@given(st.text(max_size=600), st.text(max_size=60))
def test_an_excerpt_is_a_short_line_of_the_text_whatever_it_says(text: str, question: str) -> None:
    offset, shown = find_excerpt(text, question)
    assert len(shown) <= EXCERPT_CHARACTERS + 2
    assert shown == " ".join(shown.split())
    assert bool(shown) == bool(text.strip())
    assert " ".join(text[offset:].split()).startswith(shown.removeprefix("…").removesuffix("…"))


def test_a_source_names_the_page_and_headings_of_its_excerpt() -> None:
    text = "The tide rises at seven. The money came from the harbour office."
    marks = [[0, 1, "Tide"], [25, 2, "Tide › Costs"]]
    document = DocumentRow("d", "docs/report.pdf", "", {MARKS: marks})
    chunk = chunk_of(ChunkRow("c", "d", 0, text, (1,), 0, len(text)), document)
    assert chunk.place == {"page": 1, "heading": "Tide"}
    source = Source.of(chunk, "Where did the money come from?")
    assert (source.page, source.heading) == (1, "Tide"), "the excerpt takes in the sentence in front"
    assert source.citation == 'docs/report.pdf, p. 1, "Tide"'


def test_a_source_of_an_index_from_before_there_were_marks_names_its_document() -> None:
    chunk = chunk_of(ChunkRow("c", "d", 0, "text", (1,), 0, 4), DocumentRow("d", "a.txt", "", {}))
    assert chunk.place == {}
    assert Source.of(chunk, "?") == Source("c", "a.txt", "text", None, None, "", "text")
    assert Source.of(chunk, "?").citation == "a.txt"


@pytest.mark.parametrize(("name", "unit"), [("a.pptx", "slide"), ("a.XLSX", "sheet"), ("a.pdf", "p.")])
def test_a_page_is_called_what_it_is(name: str, unit: str) -> None:
    assert Source("c", name, "text", page=3).citation == f"{name}, {unit} 3"
