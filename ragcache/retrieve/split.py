"""Documents into chunks: on sentence boundaries, within every token limit, nothing truncated."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle

from ragcache.errors import InvalidArgument
from ragcache.retrieve.boundaries import FINER, Boundaries, Layout, find_boundaries

EDITION = 3
"""Of texts and their boundaries: one more whenever a file is read or cut otherwise, so that it is read again."""

_CHARACTERS_PER_TOKEN = 6  # a first guess: what is counted tells better
_BEYOND = 1.25  # in limits: what counts that much is too long wherever its last word ends


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
    """Splits texts into pieces that meet every limit, as large as sections, paragraphs and sentences allow.

    Of the boundaries that a piece can reach within its limits, it ends at the coarsest: a section's, a paragraph's, a
    line's, a sentence's; of several, at the last. Inside a sentence it ends only where the sentence is over a limit,
    and inside a word only where the word is. The time grows as the text does: nothing much longer than a piece is ever
    counted.

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

    def split(self, text: str, layout: Layout = "prose") -> list[Piece]:
        """Split one document.

        Parameters
        ----------
        text : str
            The whole document.
        layout : {'prose', 'markdown', 'lines'}
            What its lines are: wrapped at some width or not; Markdown, with headings and fenced code; or lines that
            mean something, such as those of source code.

        Returns
        -------
        list[Piece]
            In document order; only whitespace lies outside of them. Empty for a blank text.

        Raises
        ------
        InvalidArgument
            If a single character is over a limit.
        """
        boundaries = find_boundaries(text, layout)
        pieces = []
        reach = _CHARACTERS_PER_TOKEN * min(limit.max_tokens for limit in self.limits)
        start = _behind_space(text, 0)
        while start < len(text):
            window = self._window(text, start, reach)
            kept = text[start : self._end(text, window, boundaries)].rstrip()
            pieces.append(Piece(kept, start, start + len(kept)))
            start = _behind_space(text, start + len(kept))
            reach = round(window.full * 1.4) + 1
        return pieces

    def _size(self, text: str) -> float:
        """How much of the tightest limit it takes; over 1 is too long."""
        size = 0.0
        for limit in self.limits:
            size = max(size, limit.count(text) / limit.max_tokens)
            if size > _BEYOND:
                break
        return size

    def _window(self, text: str, start: int, reach: int) -> "_Window":
        """The text ahead, up to a place that is surely too far, or to the end."""
        while True:
            end = min(start + reach, len(text))
            size = self._size(text[start:end].rstrip())
            if size > _BEYOND or end == len(text):
                return _Window(start, end, size)
            reach *= 2

    def _end(self, text: str, window: "_Window", boundaries: Boundaries) -> int:
        """The boundary at which the piece from the window's start is to end."""
        if window.size <= 1:
            return window.end
        ends: Sequence[int] = boundaries.within(window.start, window.end)
        if fitting := self._fitting(text, window, ends):
            best = boundaries.best(window.start, last := ends[fitting - 1])
            return best if best == last or self._size(text[window.start : best].rstrip()) <= 1 else last
        for pattern in FINER:
            window = replace(window, end=ends[0]) if ends else window  # the first of those alone is too long: cut that
            found = (match.end() for match in pattern.finditer(text, window.start, window.end))
            ends = [end for end in found if window.start < end < window.end]
            if fitting := self._fitting(text, window, ends):
                return ends[fitting - 1]
        raise InvalidArgument(self._refusal(text[window.start]))

    def _fitting(self, text: str, window: "_Window", ends: Sequence[int]) -> int:
        """How many of the ends a piece can reach; guessed by proportion, every third time by halves."""
        low, high = 0, len(ends)
        under, over = (window.start, 0.0), (window.end, window.size)
        halves = cycle((False, False, True))
        while low < high:
            share = 0.5 if next(halves) else (1 - under[1]) / (over[1] - under[1])
            aim = bisect_right(ends, under[0] + share * (over[0] - under[0])) - 1
            place = min(max(aim, low), high - 1)
            size = self._size(text[window.start : ends[place]].rstrip())
            if size <= 1:
                low, under = place + 1, (ends[place], size)
            else:
                high, over = place, (ends[place], size)
        return low

    def _refusal(self, character: str) -> str:
        limit = max(self.limits, key=lambda limit: limit.count(character) / limit.max_tokens)
        return (
            f"the character {character!r} alone takes {limit.count(character)} tokens, more than the limit of "
            f"{limit.max_tokens} of {limit.name}; raise `--chunk-tokens`."
        )


@dataclass(frozen=True)
class _Window:
    """A stretch of a text that is too long for a piece, or the rest of the text; and its size in limits."""

    start: int
    end: int
    size: float

    @property
    def full(self) -> float:
        """Characters that would be one limit."""
        return (self.end - self.start) / max(self.size, 0.01)


def _behind_space(text: str, start: int) -> int:
    while start < len(text) and text[start].isspace():
        start += 1
    return start
