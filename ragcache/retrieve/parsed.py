"""What a reader makes of a file: text, a title, and marks where its pages and headings begin."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from ragcache.retrieve.needs import needs
from ragcache.retrieve.places import HEADING_SEPARATOR, Mark

_LONGEST = 120  # characters of a heading: some files style whole paragraphs as one
_FRONT_MATTER = re.compile(
    r"\A---[ \t]*\n(?=\w)"  # between rules; keys, and what is indented, listed or commented below them: no prose
    r"(?:(?:[^\s:#\]}-][^\s:]*[ \t]*:(?:[ \t].*)?|[ \t#\]}-].*|)\n)*?"
    r"(?:---|\.\.\.)[ \t]*(?:\n|\Z)"
)
_ADORNMENT = re.compile(r"([^\w\s])\1{2,}\s*")


@dataclass(frozen=True)
class Parsed:
    """A file's text; marks in the order of their offsets."""

    text: str
    title: str = ""
    marks: tuple[Mark, ...] = ()


class Heading(NamedTuple):
    """A heading: where its line begins, its level (1 stands above 2), and its words."""

    offset: int
    level: int
    text: str


def starts_of(parts: Sequence[str], separator: str) -> list[int]:
    """Return where each part begins once they are joined."""
    return list(accumulate((len(part) + len(separator) for part in parts), initial=0))[: len(parts)]


def marks_of(headings: Iterable[Heading], pages: Iterable[tuple[int, int]] = ()) -> tuple[Mark, ...]:
    """Merge where headings begin with where pages begin, given as offset and number; a heading ends those below it."""
    begun: list[tuple[int, Heading | int]] = [*pages, *((heading.offset, heading) for heading in headings)]
    marks: dict[int, Mark] = {}
    path: dict[int, str] = {}
    page = None
    for offset, what in sorted(begun, key=lambda one: one[0]):
        if isinstance(what, int):
            page = what
        else:
            path = {level: text for level, text in path.items() if level < what.level}
            path[what.level] = shorten(what.text)
        marks[offset] = Mark(offset, page, HEADING_SEPARATOR.join(text for text in path.values() if text))
    return tuple(marks.values())


def take_front_matter(text: str) -> tuple[str, str]:
    """Take the YAML off the beginning of Markdown; leave white space, so that offsets stay, and return its `title`."""
    found = _FRONT_MATTER.match(text)
    if found is None or not text[found.end() :].strip():  # what is all that there is, is the text
        return text, ""
    titles = (line[len("title:") :].strip() for line in found[0].split("\n") if line.startswith("title:"))
    return re.sub(r"[^\n]", " ", found[0]) + text[found.end() :], _plain_scalar(next(titles, ""))


def _plain_scalar(value: str) -> str:
    """A YAML value on one line: without its quotes or its comment, and nothing where it is no such value."""
    if value[:1] in ('"', "'"):
        return value[1:].partition(value[0])[0]
    return "" if value[:1] in tuple("|>[{&*!#") else value.partition(" #")[0]


def title_of(headings: Sequence[Heading]) -> str:
    """The first heading, if all others stand below it; of several sections none is the title of the whole."""
    above = [heading for heading in headings if heading.level <= headings[0].level]
    return above[0].text if len(above) == 1 else ""


def markdown_headings(text: str) -> list[Heading]:
    """Find the headings of Markdown, underlined ones too, but none in code."""
    with needs():
        from markdown_it import MarkdownIt
    tokens = MarkdownIt("commonmark").disable("inline").parse(text)
    lines = [0, *(line.end() for line in re.finditer("\n", text))]
    return [
        Heading(lines[opening.map[0]], int(opening.tag[1]), inline.content)
        for opening, inline in pairwise(tokens)
        if opening.type == "heading_open" and opening.map
    ]


def rst_headings(text: str) -> list[Heading]:
    """Find the section titles of reStructuredText; levels in the order in which their adornments come up."""
    lines = ["", *text.split("\n"), ""]
    styles: dict[tuple[str, bool], int] = {}
    headings: list[Heading] = []
    offset = 0
    for before, line, under in zip(lines, lines[1:], lines[2:], strict=False):
        title, adorned = line.strip(), _ADORNMENT.fullmatch(under)
        if title and adorned and len(under.rstrip()) >= len(title) and not _ADORNMENT.fullmatch(line):
            over = before.rstrip() == under.rstrip()
            if over or not (before.strip() or line[0].isspace()):
                level = styles.setdefault((adorned[1], over), len(styles) + 1)
                headings.append(Heading(offset, level, title))
        offset += len(line) + 1
    return headings


def shorten(heading: str) -> str:
    """Return a heading, or a title, on one line of bounded length."""
    words = " ".join(heading.split())
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "\u2026"


@contextmanager
def reasons_of(*kinds: type[Exception]) -> Iterator[None]:
    """Hand a library's own errors on as the one that readers raise."""
    try:
        yield
    except kinds as error:
        raise ValueError(str(error) or type(error).__name__) from error
