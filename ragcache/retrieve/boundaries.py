"""Where a text may be cut: sections, paragraphs, lines, sentences; where those are too long, words and characters.

Sentences follow Unicode's rule (UAX #29), but for two things. A full stop, ``!`` and ``?`` end one only in front of
white space, so that ``a != b`` and ``page?q=1`` stay whole; ideographic stops need no space. And an ellipsis is a stop.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import regex

#: How a text is laid out. Lines of prose and Markdown may be wrapped; a line of anything else means something.
Layout = Literal["prose", "markdown", "lines"]

# Ranks of boundaries, the coarser the higher; a heading's is `_HEADING` less its level.
_SENTENCE, _LINE, _INNER_BLANK, _BLANK, _BLANKS, _HEADING = 0, 1, 2, 3, 4, 12
_SCRAP = 8  # what is less than an eighth of what fits is no piece if more can join it

_EXTENDED = r"[\p{SB=Extend}\p{SB=Format}]*+"
_CLOSED = rf"{_EXTENDED}(?:[\p{{SB=Close}}*_`]{_EXTENDED})*+"  # by quotes, brackets, and Markdown's emphasis
_CLOSED_TIGHT = _CLOSED.replace(r"[\p{SB=Close}", r"[\p{Pe}\p{Pf}\"'")  # without a space, what opens is the next one's
_SENTENCE_END = regex.compile(
    rf"""
    (?: [^\P{{SB=STerm}}\x00-\x7f]{_CLOSED_TIGHT}\s*+
      | [!?]{_CLOSED}\s++
      | [\p{{SB=ATerm}}\u2026]{_CLOSED}\s++
        (?![^\p{{SB=OLetter}}\p{{SB=Upper}}\p{{SB=Lower}}\p{{SB=STerm}}\p{{SB=ATerm}}\r\n]*+\p{{SB=Lower}})
    )
    (?![\p{{SB=SContinue}}\p{{SB=STerm}}\p{{SB=ATerm}}])
    """,
    regex.X,
)
_NEWLINE = regex.compile(r"\r\n|[\n\r\v\f\x85\u2028\u2029]")
_GAP = regex.compile(rf"(?:\A|{_NEWLINE.pattern})\s*+")
# A newline that wraps a line of prose: after 40 to 160 characters of it (a longer line is a paragraph), and in front of
# a small letter; of a capital, behind a letter, a comma or the like; of a number or a bracket, behind a small letter or
# a comma, unless the number is a list's. A page may break off without a stop: then blank lines follow.
_WRAPS = r"""
    (?<![^\n]{161})(?<=[^\n]{39}\S)(?:
        NEWLINE(?=\p{Ll})
      | (?<=[\w,;.!?)\]"'\u2019\u201d-])NEWLINE(?=[^\W\d_])
      | (?<=[\p{Ll},;])NEWLINE(?=[\d("'\u201c\u2018\u201e\u00ab])(?!\d+[.)]\s)
    )"""
_PAGE_WRAP = r"(?<=[^\n]{39}[\p{L},])(?:\r?\n){2,4}(?=\p{Ll})"
_SUBSCRIPT = r"(?<=[^\n]{39}\p{Lu})\r?\n(?=\d)"  # of a formula: a page's text may have it in a line of its own
_WRAP = regex.compile(" | ".join((_WRAPS.replace("NEWLINE", r"\r?\n"), _PAGE_WRAP, _SUBSCRIPT)), regex.X)
_WRAP_INDENTED = regex.compile(_WRAPS.replace("NEWLINE", r"\r?\n[ \t]*+"), regex.X)
# How a line of Markdown begins: a fence around code, a heading, a heading that the next line underlines.
_MARK = regex.compile(
    r"(?<!\t|[ ]{4})(?:(?P<fence>`{3,}+|~{3,}+)(?P<info>[^\n]*+)|(?P<level>\#{1,6}+)(?!\S)"
    r"|[^\n]++\n[ ]{0,3}(?P<under>={2,}+|-{2,}+)[ \t]*+(?![^\n]))"
)

FINER = tuple(
    regex.compile(pattern, regex.WORD | regex.DOTALL)
    for pattern in (
        # Words: at white space; between ideographs or kana, though not in front of what closes or goes on.
        r"\s++|\b(?<=[\p{lb=ID}\p{lb=CJ}\u3001\uff0c\uff1b\uff1a])(?=[\p{lb=ID}\p{lb=OP}\p{lb=AL}\p{lb=NU}])",
        r"\b",  # Unicode's words: parts of addresses and of names with signs in them
        r"\X",  # characters as readers see them
        r".",
    )
)
"""Boundaries inside a sentence, the coarser first: the end of a match is one."""


@dataclass(frozen=True)
class Boundaries:
    """The starts of sentences and of all that is coarser, in order, each with a rank.

    Attributes
    ----------
    places : tuple[int, ...]
        Offsets in characters.
    ranks : tuple[int, ...]
        One each, the coarser the higher.
    """

    places: tuple[int, ...]
    ranks: tuple[int, ...]

    def within(self, start: int, end: int) -> tuple[int, ...]:
        """Those behind `start` and before `end`."""
        return self.places[bisect_right(self.places, start) : bisect_left(self.places, end)]

    def best(self, start: int, end: int) -> int:
        """The coarsest behind `start`, up to the boundary `end`; of several the last, and none next to `start`."""
        first = bisect_right(self.places, start + (end - start) // _SCRAP)
        last = bisect_right(self.places, end)
        return self.places[max(range(first, last), key=lambda one: (self.ranks[one], one))]


def find_boundaries(text: str, layout: Layout = "prose") -> Boundaries:
    """Find where sentences, lines, paragraphs and, in Markdown, sections start; in linear time.

    Parameters
    ----------
    text : str
        A whole document.
    layout : Layout
        What its lines are.
    """
    ranks = {end.end(): _SENTENCE for end in _SENTENCE_END.finditer(text)}
    ranks.update({"prose": _of_prose, "markdown": _of_markdown, "lines": _of_lines}[layout](text))
    places = sorted(ranks)
    return Boundaries(tuple(places), tuple(ranks[place] for place in places))


def _of_prose(text: str) -> Iterator[tuple[int, int]]:
    """Starts of lines that do not go on with the line before, with their ranks."""
    return ((gap.end(), _rank(gap[0])) for gap in _GAP.finditer(text) if not _WRAP.match(text, gap.start()))


def _of_lines(text: str) -> Iterator[tuple[int, int]]:
    """Starts of lines; a blank line counts less in front of an indented one."""
    for gap in _GAP.finditer(text):
        yield gap.end(), min(_rank(gap[0]), _INNER_BLANK if gap[0][-1:] in " \t" else _BLANKS)


def _of_markdown(text: str) -> Iterator[tuple[int, int]]:
    """The same as of prose, but a heading stays with what it heads, and fenced code with itself."""
    fence, headed = "", 0  # the fence that is open; how many of the next gaps belong to a heading
    for gap in _GAP.finditer(text):
        mark = _MARK.match(text, gap.end())
        if fence:
            yield gap.end(), min(_rank(gap[0]), _INNER_BLANK)
            fence = "" if _closes(mark, fence) else fence
            continue
        level = _level(mark)
        if headed:
            yield gap.end(), _SENTENCE
        elif level:
            yield gap.end(), _HEADING - level
        elif not _WRAP_INDENTED.match(text, gap.start()):
            yield gap.end(), _rank(gap[0])
        headed = max(headed - 1, 0 if not level else 2 if mark and mark["under"] else 1)
        fence = (mark and mark["fence"]) or ""


def _rank(gap: str) -> int:
    """A gap between lines: is there a blank line in it?"""
    return (_LINE, _BLANK, _BLANKS)[min(max(len(_NEWLINE.findall(gap)), 1), 3) - 1]


def _level(mark: "regex.Match[str] | None") -> int:
    """The level of the heading that starts here; 0 if none does."""
    if mark is None or mark["fence"]:
        return 0
    return len(mark["level"]) if mark["level"] else 1 if mark["under"][0] == "=" else 2


def _closes(mark: "regex.Match[str] | None", fence: str) -> bool:
    return bool(mark and mark["fence"] and mark["fence"].startswith(fence) and not mark["info"].strip())
