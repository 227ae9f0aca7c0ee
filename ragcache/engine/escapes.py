"""Text as JSON writes it inside a string, or a program that prints a list: read, and found again where it stands."""

import re
from bisect import bisect_right

#: A pair of surrogates, which is one character; any other character by its number; and those with a letter.
_ESCAPE = re.compile(
    r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})|\\([nrtbf/'\"\\])"
)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


class Unescaped:
    """What a text with escapes says.

    Parameters
    ----------
    text : str
        With escapes, or without any.
    offset : int
        Where it begins in some larger text.

    Attributes
    ----------
    text : str
        The same without escapes; empty where it has none.
    """

    def __init__(self, text: str, offset: int = 0) -> None:
        pieces, done, length = list[str](), 0, 0
        self._plain, self._raw = [0], [offset]  # where both go on side by side: at the beginning, behind each escape
        for found in _ESCAPE.finditer(text):
            character = _read(found)
            pieces += [text[done : found.start()], character]
            length += found.start() - done + len(character)
            done = found.end()
            self._plain.append(length)
            self._raw.append(offset + done)
        self.text = "".join([*pieces, text[done:]]) if pieces else ""

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters from `start` up to `end` stand in the larger text."""
        return self._find(start), self._find(end)

    def _find(self, position: int) -> int:
        nearest = bisect_right(self._plain, position) - 1
        return self._raw[nearest] + position - self._plain[nearest]


def _read(escape: re.Match[str]) -> str:
    high, low, code, letter = escape.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    return chr(int(code, 16)) if code else _LETTERS.get(letter, letter)
