"""Which known chunks stand in a text, and where: what a framework pasted into one string is found again.

A chunk is found by its exact characters, white space around it apart. The beginnings of all known chunks are one
dictionary, so a text costs one look per character however many chunks there are; of each chunk the dictionary holds a
digest, not the text.
"""

import hashlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

PREFIX_CHARS = 48  # characters that a chunk is looked for by
_ALIKE = 20  # chunks of the same first characters that are told apart where none is there as a whole


class ChunkMatch(NamedTuple):
    """A chunk's place in a text: characters from `start` up to `end`."""

    start: int
    end: int
    chunk: str


class PartialMatch(NamedTuple):
    """A place where a text has the first characters of some chunks."""

    start: int
    chunks: tuple[str, ...]


class ChunkMatcher:
    """Finds known chunks in texts.

    Where several chunks have the same text the first one stands for all of them. A chunk shorter than `PREFIX_CHARS`
    characters is found only where it stands alone, between line breaks: elsewhere it is likelier to be a coincidence.

    Parameters
    ----------
    chunks : iterable of (str, str)
        Id and text of each; white space around a text plays no part.
    """

    def __init__(self, chunks: Iterable[tuple[str, str]]) -> None:
        by_prefix: dict[str, dict[int, dict[bytes, str]]] = {}
        self._short: dict[str, str] = {}
        for chunk, text in chunks:
            text = text.strip()
            if len(text) >= PREFIX_CHARS:
                by_prefix.setdefault(text[:PREFIX_CHARS], {}).setdefault(len(text), {}).setdefault(_digest(text), chunk)
            elif text:
                self._short.setdefault(text, chunk)
        # The longest first.
        self._by_prefix = {prefix: sorted(of.items(), reverse=True) for prefix, of in by_prefix.items()}
        self._lengths = sorted({len(text) for text in self._short}, reverse=True)

    def find_exact(self, text: str) -> str | None:
        """The chunk whose text this is, white space around it apart."""
        text = text.strip()
        if len(text) < PREFIX_CHARS:
            return self._short.get(text)
        return next((found.chunk for found in self._beginning(text, 0, len(text)) if found.end == len(text)), None)

    def find(
        self, text: str, start: int = 0, stop: int | None = None, begun: list["PartialMatch"] | None = None
    ) -> list[ChunkMatch]:
        """Where chunks stand in a text, from left to right, none overlapping another.

        Of two that begin at the same character the longer is taken, else the earlier.

        Parameters
        ----------
        text : str
            What may hold chunks.
        start, stop : int
            Look from here up to there only.
        begun : list of PartialMatch, optional
            Collects the places where chunks begin, of which none goes on to its end.
        """
        return list(self._scan(text, start, len(text) if stop is None else stop, [] if begun is None else begun))

    def _scan(self, text: str, here: int, stop: int, begun: list["PartialMatch"]) -> Iterator[ChunkMatch]:
        by_prefix = self._by_prefix
        while here < stop:
            found = None
            if text[here : here + PREFIX_CHARS] in by_prefix:
                found = next(self._beginning(text, here, stop), None)
                if found is None:
                    alike = (
                        chunk for _, chunks in by_prefix[text[here : here + PREFIX_CHARS]] for chunk in chunks.values()
                    )
                    begun.append(PartialMatch(here, tuple(islice(alike, _ALIKE))))
            if found is None and self._lengths and (here == 0 or text[here - 1] == "\n"):
                found = next(self._alone(text, here, stop), None)
            if found is None:
                here += 1
            else:
                yield found
                here = found.end

    def _beginning(self, text: str, start: int, stop: int) -> Iterator[ChunkMatch]:
        """Chunks that begin here, the longest first; one digest for each length, however many there are."""
        for length, chunks in self._by_prefix.get(text[start : start + PREFIX_CHARS], ()):
            end = start + length
            chunk = chunks.get(_digest(text[start:end])) if end <= stop else None
            if chunk is not None:
                yield ChunkMatch(start, end, chunk)

    def _alone(self, text: str, start: int, stop: int) -> Iterator[ChunkMatch]:
        for length in self._lengths:
            end = start + length
            chunk = self._short.get(text[start:end]) if end <= stop and text[end : end + 1] in ("", "\n") else None
            if chunk is not None:
                yield ChunkMatch(start, end, chunk)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
