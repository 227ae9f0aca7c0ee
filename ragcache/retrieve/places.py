"""Where in a document a text stands: its page, the headings above it, and the passage that speaks to a question."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

EXCERPT_CHARACTERS = 150
HEADING_SEPARATOR = " \u203a "
_PHRASE = 40  # characters: what is shorter and has no stop is a heading rather than a sentence
_STOP = re.compile(r"[.!?:\u2026\u3002\uff01\uff1f]")
# A sentence ends at its stop, a heading of Markdown at its line, anything at a blank line.
_SENTENCE = re.compile(r"#{1,6} [^\n]+|\S.*?(?:[.!?\u2026]+(?=\s)|[\u3002\uff01\uff1f]|(?=\n[ \t]*\n)|\Z)", re.DOTALL)
_WORD = re.compile(r"\w+")


class Mark(NamedTuple):
    r"""From `offset` on, up to the next mark, a document's text stands on this page and under these headings.

    Attributes
    ----------
    offset : int
        Characters from the start of the text.
    page : int or None
        Number of the page, slide or sheet, from 1; None where the format has none.
    heading : str
        The headings above it, outermost first, joined by ``\u203a``; empty where there is none.
    """

    offset: int
    page: int | None = None
    heading: str = ""


def mark_at(marks: Sequence[Mark], offset: int) -> Mark:
    """Return the mark that holds at an offset; one that says nothing before the first."""
    behind = bisect_right(marks, offset, key=itemgetter(0))
    return marks[behind - 1] if behind else Mark(0)


def marks_within(marks: Sequence[Sequence[Any]], start: int, end: int) -> tuple[Mark, ...]:
    """Return the marks that hold somewhere from `start` to `end`, their offsets counted from `start`.

    Parameters
    ----------
    marks : sequence of Mark, or of their fields as lists
        A whole document's; only those that are returned are looked at, since there may be thousands.
    start, end : int
        Offsets of a chunk in the document, `end` exclusive.
    """
    first = max(bisect_right(marks, start, key=itemgetter(0)) - 1, 0)
    last = max(bisect_right(marks, end - 1, key=itemgetter(0)), first)
    return tuple(Mark(max(offset - start, 0), page, heading) for offset, page, heading in marks[first:last])


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, each on one line, without its headings."""
    said = (" ".join(match[0].split()) for match in _SENTENCE.finditer(text))
    return [one for one in said if not _is_heading(one)]


def find_excerpt(text: str, question: str, length: int = EXCERPT_CHARACTERS) -> tuple[int, str]:
    """Find the passage of a text that shares most words with a question; its beginning where none does.

    Parameters
    ----------
    text : str
        A chunk.
    question : str
        The user's words.
    length : int
        Most characters of the passage, ellipses aside.

    Returns
    -------
    tuple of int and str
        The passage's offset in `text`, and the passage on one line.
    """
    words = _words(question)
    spans = [match.span() for match in _SENTENCE.finditer(text)]
    if not spans:
        return 0, ""

    said = [text[start:end] for start, end in spans]
    worth = [(not _is_heading(one), sum(map(len, words & _words(one)))) for one in said]
    best = worth.index(max(worth))
    start, end = _widened(text, spans, best, length)
    if end - start <= length:
        return start, " ".join(text[start:end].split())
    return _window(text, start, end, words, length)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _is_heading(sentence: str) -> bool:
    """Whether it looks like a heading: it says less than the sentences below it, even where it repeats the question."""
    return sentence[0] == "#" or (len(sentence) < _PHRASE and not _STOP.search(sentence))


def _widened(text: str, spans: Sequence[tuple[int, int]], number: int, length: int) -> tuple[int, int]:
    """Take in the sentences behind and in front of one, as far as its paragraph and the length allow."""
    start, end = spans[number]
    for behind in spans[number + 1 :]:
        if behind[1] - start > length or _parted(text[end : behind[0]]):
            break
        end = behind[1]
    for before in reversed(spans[:number]):
        if end - before[0] > length or _parted(text[before[1] : start]) or text[before[0]] == "#":
            break
        start = before[0]
    return start, end


def _parted(gap: str) -> bool:
    return gap.count("\n") > 1


def _window(text: str, start: int, end: int, words: set[str], length: int) -> tuple[int, str]:
    """Cut a long passage to the words around the longest one that the question shares, with ellipses."""
    shared = [match for match in _WORD.finditer(text, start, end) if match[0].casefold() in words]
    middle = max(shared, key=lambda match: len(match[0])).start() if shared else start
    first = max(start, min(middle - length // 3, end - length))
    if first > start:  # at the next word, if there is one before the one that matters
        gap = re.compile(r"\s").search(text, first, middle)
        first = gap.end() if gap else first
    last = min(first + length, end)
    if last < end:
        gap_at = max(text.rfind(mark, middle + 1, last) for mark in " \n")
        last = gap_at if gap_at > first else last
    shown = " ".join(text[first:last].split())
    return first, ("\u2026" if first > start else "") + shown + ("\u2026" if last < end else "")
