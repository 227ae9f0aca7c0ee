"""A long context, cut where it is made of passages, else into pieces of whole sentences."""

import re

from ragcache.retrieve.split import Limit, Splitter

_PASSAGE = re.compile(r"^(?=(?:Passage|Document|Paragraph) \d+:)", re.MULTILINE)
_LETTERS = 6  # per word, with the space; counts words in scripts without spaces


def pieces(text: str, words: int) -> tuple[str, ...]:
    """Cut a context.

    Parameters
    ----------
    text : str
        With numbered passages ("Passage 3:"), each of which becomes one piece, or without.
    words : int
        Most words of a piece; does not apply to numbered passages.
    """
    passages = [part.strip() for part in _PASSAGE.split(text) if part.strip()]
    if len(passages) > 1:
        return tuple(passages)
    splitter = Splitter([Limit(_words, words, "a piece")])
    return tuple(piece.text for piece in splitter.split(text))


def _words(text: str) -> int:
    return max(len(text.split()), len(text) // _LETTERS)
