"""Known chunks in other people's text: found where they stand, and only there, however alike they are."""

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcache.engine import chunk_matcher
from ragcache.engine.chunk_matcher import PREFIX_CHARS, ChunkMatch, ChunkMatcher

LONG = "The ferry crosses the sound every hour, and carries forty cars. Dogs ride on deck."
OTHER = "The ferry crosses the sound every hour, and carries forty cars. Cats stay at home."


def brute(chunks: list[tuple[str, str]], text: str, head: int) -> list[ChunkMatch]:
    """The same, by comparing every chunk at every character."""
    known = [(name, stripped) for name, chunk in chunks if (stripped := chunk.strip())]
    found, here = [], 0
    while here < len(text):
        here_stands = [
            ChunkMatch(here, here + len(chunk), name)
            for name, chunk in known
            if text.startswith(chunk, here) and (len(chunk) >= head or alone(text, here, here + len(chunk)))
        ]
        longest = max(here_stands, key=lambda one: one.end, default=None)  # of equal ones the first
        found += [longest] if longest else []
        here = longest.end if longest else here + 1
    return found


def alone(text: str, start: int, end: int) -> bool:
    return text[start - 1 : start] in ("", "\n") and text[end : end + 1] in ("", "\n")


pieces = st.text("ab\n é𝄞", max_size=9)
texts = st.lists(pieces, min_size=1, max_size=8)


@given(texts, st.data())
def test_what_is_found_is_what_comparing_everything_finds(chunks: list[str], data: st.DataObject) -> None:
    known = [(str(number), text) for number, text in enumerate(chunks)]
    parts = data.draw(st.lists(st.one_of(st.sampled_from(chunks), pieces), max_size=8))
    separator = data.draw(st.sampled_from(["", "\n", "\n\n", " "]))
    with patch.object(chunk_matcher, "PREFIX_CHARS", 4):
        assert ChunkMatcher(known).find(separator.join(parts)) == brute(known, separator.join(parts), 4)


@given(texts, st.data())
def test_a_whole_text_is_known_by_its_characters(chunks: list[str], data: st.DataObject) -> None:
    asked = data.draw(st.one_of(st.sampled_from(chunks), pieces))
    known = [(str(number), text) for number, text in enumerate(chunks)]
    same = [name for name, text in known if text.strip() == asked.strip() != ""]
    with patch.object(chunk_matcher, "PREFIX_CHARS", 4):
        assert ChunkMatcher(known).find_exact(asked) == next(iter(same), None)


def test_chunks_with_the_same_beginning_are_told_apart() -> None:
    assert LONG[:PREFIX_CHARS] == OTHER[:PREFIX_CHARS]
    known = ChunkMatcher([("long", LONG), ("other", OTHER)])
    assert [one.chunk for one in known.find(f"{OTHER}\n\n{LONG}")] == ["other", "long"]


def test_a_chunk_that_begins_another_one_gives_way() -> None:
    known = ChunkMatcher([("short", LONG[:60]), ("long", LONG)])
    assert [one.chunk for one in known.find(LONG)] == ["long"]
    assert [one.chunk for one in known.find(LONG[:60] + "!")] == ["short"]


@pytest.mark.parametrize("changed", [LONG[:-1], LONG.lower(), LONG.replace("forty", "fifty"), LONG.replace(" ", "\n")])
def test_a_text_that_was_changed_is_not_found(changed: str) -> None:
    assert ChunkMatcher([("long", LONG)]).find(changed) == []


def test_white_space_around_a_stored_text_plays_no_part() -> None:
    [found] = ChunkMatcher([("long", f"\n {LONG}\n\n")]).find(f"Context: {LONG} Question")
    assert (found.start, found.end) == (9, 9 + len(LONG))


def test_a_short_chunk_is_found_only_where_it_stands_alone() -> None:
    known = ChunkMatcher([("yes", "Yes.")])
    assert [one.chunk for one in known.find("Notes\n\nYes.\n\nDid it? Yes. Yes.")] == ["yes"]
    assert known.find("Did it? Yes.") == []


@pytest.mark.parametrize("text", ["", " \n", LONG[:10]])
def test_where_nothing_is_known_nothing_is_found(text: str) -> None:
    assert ChunkMatcher(()).find(text) == []
    assert ChunkMatcher([("blank", " \n")]).find(text) == []
    assert ChunkMatcher([("blank", " \n")]).find_exact(text) is None


def test_part_of_a_text_is_looked_at_within_its_lines() -> None:
    known = ChunkMatcher([("yes", "Yes."), ("long", LONG)])
    text = f"Is it? Yes.\n{LONG}"
    assert known.find(text, 7, 11) == []
    assert known.find(text, 12, len(text) - 1) == []
    assert known.find(text, 12) == [ChunkMatch(12, len(text), "long")]
