import random
import textwrap
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcache.errors import InvalidArgument
from ragcache.retrieve import Embedder, Limit, Splitter
from ragcache.retrieve.boundaries import Layout

WORDS = "the tide project has its lead and budget in a harbour office near old river".split()


def words(text: str) -> int:
    return len(text.split())


def prose(sentences: int, seed: int = 0) -> str:
    choose = random.Random(seed)
    return " ".join(" ".join(choose.choices(WORDS, k=12)).capitalize() + "." for _ in range(sentences))


def erratic(text: str) -> int:
    """Fewer for more text at times, as WordPiece does with long words; 1 for a single character."""
    return 1 if len(text) > 90 and len(text) % 3 == 0 else len(text)


# Alphabet with what splitters trip over: marks that combine, surrogate pairs, odd spaces, stand-ins, markup.
CHARACTERS = st.text(
    st.one_of(
        st.sampled_from("aB .,!?\n\r\t#*|`->é漢😀\u0301\u200d\u2005\u1680\u3000\u2028\x85\ufeff"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=400,
)
LINES = st.lists(
    st.sampled_from(
        ["the tide project has its lead", "Ada, in", "ends.", "\n", "\r\n", "\n\n", "#", "-", "\u2005", "|"]
    ),
    max_size=60,
).map(" ".join)
TEXTS = st.one_of(CHARACTERS, LINES, LINES.map(lambda text: text.replace(" \n ", "\n")))
LAYOUTS = st.sampled_from(["prose", "markdown", "lines"])
COUNTERS = st.sampled_from([len, words, erratic, lambda text: len(text.encode())])


@settings(deadline=None, max_examples=300)
@given(TEXTS, st.lists(st.tuples(COUNTERS, st.integers(4, 120)), min_size=1, max_size=3), LAYOUTS)
def test_pieces_meet_every_limit_and_lose_only_whitespace(
    text: str, limits: list[tuple[Callable[[str], int], int]], layout: Layout
) -> None:
    pieces = Splitter([Limit(count, most, "test") for count, most in limits]).split(text, layout)
    end = 0
    for piece in pieces:
        assert piece.text == text[piece.start : piece.end]
        assert piece.text.strip() == piece.text != ""
        assert all(count(piece.text) <= most for count, most in limits)
        assert text[end : piece.start].strip() == ""
        assert piece.start >= end
        end = piece.end
    assert text[end:].strip() == ""


@pytest.mark.parametrize("layout", ["prose", "markdown"])
@pytest.mark.parametrize("width", [10_000, 100, 80, 60])
def test_prose_is_cut_at_ends_of_sentences_however_its_lines_are_wrapped(width: int, layout: Layout) -> None:
    text = textwrap.fill(prose(60), width)
    pieces = Splitter([Limit(words, 50, "reader")]).split(text, layout)
    assert all(piece.text.endswith(".") for piece in pieces)
    assert [words(piece.text) for piece in pieces] == [48] * 15


@settings(deadline=None)
@given(LINES.map(lambda text: text.replace(" \n ", "\n")), LAYOUTS)
def test_a_tokenizer_is_only_ever_shown_the_documents_own_text(text: str, layout: Layout) -> None:
    text = f"{textwrap.fill(prose(6), 80)} {text}"

    def count(part: str) -> int:
        assert part in text
        return words(part)

    assert Splitter([Limit(count, 20, "reader")]).split(text, layout)


def test_lines_that_are_paragraphs_are_borders() -> None:
    text = "\n".join(prose(4, seed) for seed in range(6))
    pieces = Splitter([Limit(words, 60, "reader")]).split(text)
    assert [piece.text for piece in pieces] == text.split("\n")


def test_lines_of_a_list_are_borders() -> None:
    text = "\n".join(f"- item {number} with some words in it that go on for a while" for number in range(20))
    pieces = Splitter([Limit(words, 40, "reader")]).split(text)
    assert all(piece.text.startswith("- item") for piece in pieces)


def test_markdown_prefers_headings_as_borders() -> None:
    text = f"# One\n\n{prose(3)}\n\n# Two\n\n{prose(3)}"
    pieces = Splitter([Limit(words, 60, "reader")]).split(text, "markdown")
    assert [piece.text[:5] for piece in pieces] == ["# One", "# Two"]


def test_a_giant_unbroken_string_is_split_without_loss() -> None:
    text = "漢" * 20_000
    pieces = Splitter([Limit(len, 256, "reader")]).split(text)
    assert "".join(piece.text for piece in pieces) == text
    assert max(len(piece.text) for piece in pieces) <= 256


def test_a_blank_text_has_no_pieces() -> None:
    assert Splitter([Limit(words, 5, "reader")]).split(" \n\t ") == []


def test_a_character_over_the_limit_is_refused_by_name_not_truncated() -> None:
    with pytest.raises(InvalidArgument, match=r"'a'.*takes 9 tokens.*limit of 4 of the reader.*--chunk-tokens"):
        Splitter([Limit(len, 4, "x"), Limit(lambda text: 9 * len(text), 4, "the reader")]).split("abc")


def test_no_limit_and_an_empty_limit_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="no token limit"):
        Splitter([])
    with pytest.raises(InvalidArgument, match="reader is 0"):
        Limit(len, 0, "reader")


def test_a_tokenizers_own_error_is_not_swallowed() -> None:
    def broken(text: str) -> int:
        raise KeyError(text)

    with pytest.raises(KeyError):
        Splitter([Limit(broken, 4, "reader")]).split("abc")


def test_240_paragraphs_are_split_for_the_embedder_in_well_under_2_seconds(embedder: Embedder) -> None:
    splitter = Splitter([Limit(words, 256, "reader"), Limit(embedder.count, embedder.max_tokens, "embedder")])
    paragraphs = [prose(10, seed) for seed in range(240)]
    embedder.count("warm up")
    start = time.perf_counter()
    pieces = [piece for paragraph in paragraphs for piece in splitter.split(paragraph)]
    assert time.perf_counter() - start < 2
    assert all(embedder.count(piece.text) <= embedder.max_tokens for piece in pieces)
