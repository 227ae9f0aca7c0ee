"""What a browser would show of a parsed web page, as plain text; in one walk, however many elements it has."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ragcache.retrieve.needs import needs
from ragcache.retrieve.parsed import Heading, starts_of

if TYPE_CHECKING:
    from bs4 import BeautifulSoup
    from bs4.element import PageElement

_BLOCKS = frozenset(
    "address article aside blockquote body caption dd div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 "
    "h5 h6 header hr li main nav ol p pre section table tr ul".split()
)
_TIGHT = ("li", "tr", "dt", "dd")  # blocks without a blank line behind them
_BEHIND = {"br": "\n", "td": " | ", "th": " | "}
_FLAG = re.compile("\x02([0-9]+)\x03")  # no control character is left in a text
_UNSEEN = ("script", "style", "noscript", "template", "head", "title", "svg")


def show(page: "BeautifulSoup") -> tuple[str, list[Heading]]:
    """Join the page's text, a line for each block; and say where its headings stand in it."""
    headings = _flag_headings(page)
    lines = (line.strip(" ").removesuffix(" |") for line in "".join(_parts(page)).splitlines())
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n").replace("\xa0", " ")
    first, *rest = _FLAG.split(text)
    parts = [first, *rest[1::2]]
    found = [headings[int(number)] for number in rest[::2]]
    placed = [Heading(start, *one) for start, one in zip(starts_of(parts, "")[1:], found, strict=True)]
    return "".join(parts), placed


def _flag_headings(page: "BeautifulSoup") -> list[tuple[int, str]]:
    """Put a flag with its number in front of each heading's first word; their levels and words, in order."""
    headings: list[tuple[int, str]] = []
    for heading in page.find_all(re.compile("^h[1-6]$")):
        shown = [one for one in heading.strings if one.strip() and one.find_parent(_UNSEEN) is None]
        if shown:
            words = " ".join(one.strip() for one in shown)
            shown[0].replace_with(f"\x02{len(headings)}\x03{shown[0].lstrip()}")
            headings.append((int(heading.name[1]), words))
    return headings


def _parts(page: "BeautifulSoup") -> Iterator[str]:
    """Strings in reading order, without comments and the doctype, and the line ends around blocks."""
    with needs():
        from bs4 import Tag
    path: list[tuple[Tag, Iterator[PageElement]]] = [(page, iter(page.contents))]
    kinds = page.interesting_string_types or ()
    preformatted = 0
    while path:
        element, children = path[-1]
        child = next(children, None)
        if child is None:
            path.pop()
            preformatted -= element.name == "pre"
            yield _behind(element.name)
        elif isinstance(child, Tag) and child.name not in _UNSEEN:
            yield "\n" if child.name in _BLOCKS else ""
            preformatted += child.name == "pre"
            path.append((child, iter(child.contents)))
        elif type(child) in kinds:
            yield str(child).replace(" ", "\xa0") if preformatted else re.sub(r"\s+", " ", str(child))


def _behind(name: str) -> str:
    if name in _BLOCKS:
        return "\n" if name in _TIGHT else "\n\n"
    return _BEHIND.get(name, "")
