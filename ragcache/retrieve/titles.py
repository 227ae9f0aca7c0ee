"""Title lines: the document's title and the headings above a chunk, in one line in front of its text.

A chunk that says "its budget" says whose under a title. Practitioners call them contextual chunk headers.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from string import Formatter
from typing import Any, Literal, get_args

from ragcache.errors import InvalidArgument
from ragcache.retrieve.parsed import shorten
from ragcache.retrieve.places import HEADING_SEPARATOR

Titles = Literal["none", "text", "embedding", "both"]
"""Where title lines stand: nowhere, in the text that the model reads, in the text that is embedded, or in both."""

TITLES: tuple[Titles, ...] = get_args(Titles)
DEFAULT_TITLES: Titles = "both"
TITLE_TEMPLATE = "{title}\n{text}"
"""How a program's chunk is written under its title."""

_HEADERS = tuple(f"Header {level}" for level in range(1, 7))  # as LangChain's Markdown and HTML splitters write them
_FILES = ("file_name", "file_path", "source")


def title_parts(title: str, source: str, heading: str = "") -> list[str]:
    """Return a document's title and the headings above a place in it, outermost first, none twice in a row.

    Parameters
    ----------
    title : str
        What the document calls itself; blank where it does not.
    source : str
        Its file, whose name is the title then.
    heading : str
        The headings, joined as in `Mark.heading`.
    """
    parts = [shorten(title) or _file_title(source), *map(shorten, heading.split(HEADING_SEPARATOR))]
    return _once(part for part in parts if part)


def read_title_parts(metadata: Mapping[str, Any]) -> list[str]:
    """Return the title and the headings that a framework's loaders and splitters left in a chunk's metadata.

    LangChain's splitters write `Header 1` to `Header 6`, LlamaIndex's a `header_path`, ragcache's retrievers a
    `heading`. The title is a loader's `title`, or the file's name.
    """
    said = {key: value.strip() for key, value in metadata.items() if isinstance(value, str)}
    path = [said.get(key, "") for key in _HEADERS] + said.get("header_path", "").split("/")
    heading = HEADING_SEPARATOR.join(part for part in path if part) or said.get("heading", "")
    return title_parts(said.get("title", ""), next(filter(None, map(said.get, _FILES)), ""), heading)


def title_line(parts: Sequence[str], text: str, fits: Callable[[str], bool] = lambda line: True) -> str:
    r"""Return the line above a text, with its line end; empty where there is nothing to say.

    Parameters
    ----------
    parts : sequence of str
        Title and headings, outermost first.
    text : str
        The chunk's. What it begins with is not said twice.
    fits : callable
        Whether a line is short enough; headings in the middle go first, then the title, then half of the heading.

    Examples
    --------
    >>> title_line(["Handbook", "Leave", "Parental leave"], "It takes 14 weeks.")
    'Handbook › Leave › Parental leave\n'
    """
    kept, begin = list(parts), re.sub(r"\A\W+", "", text)
    while kept and _begins(begin, kept[-1]):
        kept.pop()
    while len(kept) > 1 and not fits(_join(kept)):
        del kept[1 if len(kept) > 2 else 0]
    while kept and not fits(_join(kept)):
        kept = [kept[0][: len(kept[0]) // 2].rstrip()] if len(kept[0]) > 1 else []
    return _join(kept)


def add_title(text: str, metadata: Mapping[str, Any], template: str = TITLE_TEMPLATE) -> str:
    r"""Return a program's chunk under the title and the headings in its metadata; a chunk that is so already, as it is.

    Parameters
    ----------
    text : str
        The chunk's.
    metadata : mapping
        As `read_title_parts` reads it.
    template : str
        Where `{title}` and `{text}` stand.

    Raises
    ------
    InvalidArgument
        If the template lacks one of the two, or names something else.

    Examples
    --------
    >>> add_title("It takes 14 weeks.", {"title": "Handbook", "Header 1": "Leave"})
    'Handbook › Leave\nIt takes 14 weeks.'
    """
    if {name for _, name, _, _ in Formatter().parse(template) if name is not None} != {"title", "text"}:
        raise InvalidArgument(f"the template {template!r} must name {{title}} and {{text}}, and nothing else")
    title = title_line(read_title_parts(metadata), text).rstrip("\n")
    above = template.partition("{text}")[0].format(title=title)
    return template.format(title=title, text=text) if title and not text.startswith(above) else text


def _begins(text: str, heading: str) -> bool:
    """Whether a text begins with a heading: not just with its letters, and in another case only if alone on a line."""
    line = text.partition("\n")[0].rstrip(" #:.\r")
    return line.casefold() == heading.casefold() or bool(re.match(re.escape(heading) + r"(?!\w)", text))


def _join(parts: Sequence[str]) -> str:
    return HEADING_SEPARATOR.join(parts) + "\n" if parts else ""


def _file_title(source: str) -> str:
    return re.sub(r"[\s_]+", " ", PurePath(source).stem).strip()


def _once(parts: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for part in parts:
        if not kept or part.casefold() != kept[-1].casefold():
            kept.append(part)
    return kept
