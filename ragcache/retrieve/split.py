"""Documents into chunks: on sentence borders, within every token limit, nothing truncated."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ragcache.errors import InvalidArgument
from ragcache.retrieve.needs import needs

# A newline that wraps a line of prose: after 40 to 160 characters of it, before a letter. Longer lines are paragraphs.
_WRAP = re.compile(r"""(?<![^\n]{161})(?<=[^\n]{39}[\w,;.!?)"'\u2019\u201d-])\n(?=[^\W\d_])""")
# Spaces to sentence rules, and rare enough in documents for one of them to be free to stand for a wrap.
_STAND_INS = "\u2005\u2004\u2006\u2000\u2001\u205f\u1680"


@dataclass(frozen=True)
class Limit:
    """The most tokens that a piece may have, as one tokenizer counts them.

    Parameters
    ----------
    count : Callable[[str], int]
        Tokens of a text, special tokens included where the model's limit includes them.
    max_tokens : int
        The most that a piece may count.
    name : str
        Whose limit it is, for error messages.

    Raises
    ------
    InvalidArgument
        If `max_tokens` is below 1.
    """

    count: Callable[[str], int]
    max_tokens: int
    name: str

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise InvalidArgument(f"the token limit of {self.name} is {self.max_tokens}; give 1 or more.")


@dataclass(frozen=True)
class Piece:
    """A chunk's text and where it stands: ``document[start:end] == text``, offsets in characters."""

    text: str
    start: int
    end: int


class Splitter:
    """Splits texts into pieces that meet every limit, as large as paragraphs and sentences allow.

    Borders come from semantic-text-splitter: paragraphs, lines, sentences (Unicode UAX #29), words, characters,
    the coarsest that fits; for Markdown also headings and blocks.

    Parameters
    ----------
    limits : Sequence[Limit]
        All of them hold for every piece: usually the reader's tokens and the embedder's own limit.

    Raises
    ------
    InvalidArgument
        If there is no limit.
    """

    def __init__(self, limits: Sequence[Limit]) -> None:
        if not limits:
            raise InvalidArgument("a splitter got no token limit; give it at least one.")
        self.limits = tuple(limits)
        self._capacity = math.lcm(*(limit.max_tokens for limit in self.limits))

    def split(self, text: str, *, markdown: bool = False) -> list[Piece]:
        """Split one document.

        Parameters
        ----------
        text : str
            The whole document.
        markdown : bool
            Prefer the borders of Markdown's headings and blocks.

        Returns
        -------
        list[Piece]
            In document order; only whitespace lies outside of them. Empty for a blank text.

        Raises
        ------
        InvalidArgument
            If a single character is over a limit.
        """
        with needs():
            from semantic_text_splitter import MarkdownSplitter, TextSplitter
        # A wrapped line is no border: its newline is shown to the splitter as a space, offset for offset.
        stand_in = next((mark for mark in _STAND_INS if mark not in text), "\n")
        kind = MarkdownSplitter if markdown else TextSplitter
        splitter = kind.from_callback(lambda part: self._size(part.replace(stand_in, "\n")), self._capacity)
        found = splitter.chunk_indices(_WRAP.sub(stand_in, text))
        return [piece for start, part in found for piece in self._fitting(text, start, start + len(part))]

    def _size(self, text: str) -> int:
        """Size in the one unit in which every limit is ``self._capacity``."""
        return max(limit.count(text) * (self._capacity // limit.max_tokens) for limit in self.limits)

    def _fitting(self, text: str, start: int, end: int) -> Iterator[Piece]:
        # The library assumes that more text never has fewer tokens, and keeps what it can't split; halve those.
        while start < end and text[start].isspace():
            start += 1
        while start < end and text[end - 1].isspace():
            end -= 1
        if start == end:
            return
        if self._size(text[start:end]) <= self._capacity:
            yield Piece(text[start:end], start, end)
            return
        if end - start == 1:
            raise InvalidArgument(self._refusal(text[start]))
        middle = (start + end) // 2
        yield from self._fitting(text, start, middle)
        yield from self._fitting(text, middle, end)

    def _refusal(self, character: str) -> str:
        limit = max(self.limits, key=lambda limit: limit.count(character) / limit.max_tokens)
        return (
            f"the character {character!r} alone takes {limit.count(character)} tokens, more than the limit of "
            f"{limit.max_tokens} of {limit.name}; raise `--chunk-tokens`."
        )
