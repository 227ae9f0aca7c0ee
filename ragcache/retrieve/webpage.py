"""What a browser would show of a parsed web page, as plain text; in one walk, however many elements it has."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
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
_TIGHT = ("li", "tr", "dt", "dd")  # blocks without a blank line between them
_LINE_END = "\x1f"  # of those: several are one
_BEHIND = {"br": "\n", "td": " | ", "th": " | "}
_FLAG = re.compile("\x02([0-9]+)\x03")
_OURS = str.maketrans("", "", "\x02\x03" + _LINE_END)  # what a page itself has of them means nothing
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_UNSEEN = ("script", "style", "noscript", "template", "title", "svg")


@dataclass
class _Opened:
    """A heading, and the strings in it so far."""

    level: int
    strings: list[str] = field(default_factory=list)


def show(page: "BeautifulSoup") -> tuple[str, list[Heading]]:
    """Join the page's text, a line for each block; and say where its headings stand in it."""
    headings: list[_Opened] = []
    shown = re.sub(f"{_LINE_END}[ {_LINE_END}]*", "\n", "".join(_parts(page, headings)))
    lines = (line.strip(" ").removesuffix(" |") for line in shown.splitlines())
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n").replace("\xa0", " ")
    first, *rest = _FLAG.split(text)
    parts = [first, *rest[1::2]]
    found = [headings[int(number)] for number in rest[::2]]
    begun = zip(starts_of(parts, "")[1:], found, strict=True)
    return "".join(parts), [Heading(start, one.level, " ".join(one.strings)) for start, one in begun]


def _parts(page: "BeautifulSoup", headings: list[_Opened]) -> Iterator[str]:
    """Strings in reading order, and the line ends around blocks; headings are noted, a flag before their first words.

    Comments and the doctype are left out.
    """
    with needs():
        from bs4 import Tag
    path: list[tuple[Tag, Iterator[PageElement]]] = [(page, iter(page.contents))]
    kinds = page.interesting_string_types or ()
    preformatted = 0
    opened: list[_Opened] = []
    while path:
        element, children = path[-1]
        child = next(children, None)
        if child is None:
            path.pop()
            preformatted -= element.name == "pre"
            del opened[len(opened) - (element.name in _LEVELS) :]
            yield _behind(element.name)
        elif isinstance(child, Tag) and child.name not in _UNSEEN:
            yield _before(child.name)
            preformatted += child.name == "pre"
            opened += [_Opened(_LEVELS[child.name])] if child.name in _LEVELS else []
            path.append((child, iter(child.contents)))
        elif type(child) in kinds:
            said = str(child).translate(_OURS)
            string = said.replace(" ", "\xa0") if preformatted else re.sub(r"\s+", " ", said)
            yield _noted(string, opened[-1], headings) if opened and string.strip() else string


def _noted(string: str, heading: _Opened, headings: list[_Opened]) -> str:
    """The string, in front of it a flag with the heading's number where the heading begins with it."""
    first = not heading.strings
    heading.strings.append(string.strip())
    if not first:
        return string
    headings.append(heading)
    return f"\x02{len(headings) - 1}\x03{string.lstrip()}"


def _before(name: str) -> str:
    if name in _TIGHT:
        return _LINE_END
    return "\n" if name in _BLOCKS else ""


def _behind(name: str) -> str:
    if name in _TIGHT:
        return _LINE_END
    return "\n\n" if name in _BLOCKS else _BEHIND.get(name, "")
