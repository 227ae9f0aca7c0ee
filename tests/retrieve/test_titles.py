"""Title lines: what a document and the headings above a chunk are called, in one line, and never twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcache.errors import InvalidArgument
from ragcache.retrieve import add_title, title_line, title_parts
from ragcache.retrieve.titles import read_title_parts

WORDS = st.text("abc ", min_size=1, max_size=12).map(str.strip).filter(bool)


def test_a_line_has_the_title_and_the_headings_outermost_first() -> None:
    parts = title_parts("Handbook", "/docs/x.md", "Leave \u203a Parental leave")
    assert title_line(parts, "It takes 14 weeks.") == "Handbook \u203a Leave \u203a Parental leave\n"


def test_a_file_s_name_is_its_title_where_it_has_none() -> None:
    assert title_parts("", "/docs/annual_report 2024.txt") == ["annual report 2024"]


def test_a_heading_that_repeats_the_title_is_said_once() -> None:
    assert title_parts("Handbook", "/x.md", "handbook \u203a Leave") == ["Handbook", "Leave"]


@pytest.mark.parametrize("begin", ["## Leave\n\nIt takes", "Leave\n=====\nIt takes", "=====\nLeave\n=====\n"])
def test_what_a_chunk_begins_with_is_not_said_above_it(begin: str) -> None:
    assert title_line(["Handbook", "Leave"], begin) == "Handbook\n"


@pytest.mark.parametrize(
    ("heading", "text"), [("Port", "Portugal pays forty crowns."), ("IT", "It takes 14 weeks."), ("A", "A1 is closed.")]
)
def test_a_heading_is_kept_over_a_text_that_begins_with_its_letters_only(heading: str, text: str) -> None:
    assert title_line(["Handbook", heading], text) == f"Handbook \u203a {heading}\n"


def test_a_heading_in_other_letters_on_a_line_of_its_own_is_not_said_twice() -> None:
    assert title_line(["Handbook", "Leave"], "LEAVE\n\nIt takes 14 weeks.") == "Handbook\n"


def test_a_chunk_that_begins_with_its_only_title_has_no_line() -> None:
    assert title_line(["Handbook"], "# Handbook\n\nWelcome.") == ""


def test_a_long_line_loses_its_middle_then_its_title_then_the_heading_s_end() -> None:
    parts = ["Handbook", "Part one", "Chapter two", "Leave of absence"]

    def fitted(room: int) -> str:
        return title_line(parts, "It takes", lambda line: len(line) <= room)

    assert fitted(50) == "Handbook \u203a Chapter two \u203a Leave of absence\n"
    assert fitted(30) == "Handbook \u203a Leave of absence\n"
    assert fitted(20) == "Leave of absence\n"
    assert fitted(9) == "Leave of\n"


@given(st.lists(WORDS, max_size=5), WORDS, st.integers(0, 40))
def test_a_line_fits_or_is_left_out(parts: list[str], text: str, room: int) -> None:
    line = title_line(parts, text, lambda line: len(line) <= room)
    assert not line or (len(line) <= room and line.endswith("\n") and line.count("\n") == 1)


@pytest.mark.parametrize(
    ("metadata", "parts"),
    [
        ({"title": "Guide", "Header 1": "Install", "Header 2": "Linux"}, ["Guide", "Install", "Linux"]),
        ({"source": "docs/guide.md", "Header 2": "Linux"}, ["guide", "Linux"]),
        ({"file_name": "guide.md", "header_path": "/Install/Linux/"}, ["guide", "Install", "Linux"]),
        ({"source": "guide.md", "heading": "Install \u203a Linux"}, ["guide", "Install", "Linux"]),
        ({"page": 3, "title": None}, []),
    ],
)
def test_frameworks_leave_titles_in_metadata(metadata: dict[str, object], parts: list[str]) -> None:
    assert read_title_parts(metadata) == parts


def test_a_chunk_is_titled_once_by_any_template() -> None:
    metadata = {"title": "Guide", "Header 1": "Install"}
    titled = add_title("Run it.", metadata, "[{title}] {text}")
    assert titled == "[Guide \u203a Install] Run it."
    assert add_title(titled, metadata, "[{title}] {text}") == titled
    assert add_title("Run it.", {}) == "Run it."


@pytest.mark.parametrize("template", ["{text}", "{title}", "{title} {text} {page}", "{} {text}"])
def test_a_template_without_its_two_places_is_refused(template: str) -> None:
    with pytest.raises(InvalidArgument, match=r"must name \{title\} and \{text\}"):
        add_title("Run it.", {}, template)
