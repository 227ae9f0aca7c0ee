"""Which known chunks stand among a prompt's tokens, and where.

vLLM hands over token ids, whatever they were made from: ids, a string, or messages that a foreign template put
together. Where text was tokenised in one piece, a chunk's first and last tokens may be others than the stored ones,
merged with what stands around them. So a chunk is found by all but those, and then every token that agrees is taken.

The dictionary holds digests, so its size depends on the number of chunks and not on their length; the tokens of the
few chunks that are found are read from the catalogue.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import xxhash

GRAM = 8  # tokens that a chunk is looked for by
_SKIPPED = (0, 1, 2, 4)  # first tokens that may be others where a prompt was tokenised in one piece
_TAIL = 2  # last ones that may be
_BYTES = 4  # of a token id

_ByLength = dict[int, dict[bytes, tuple[str, ...]]]


@dataclass(frozen=True)
class TokenMatch:
    """A place where a prompt has a chunk's tokens.

    Attributes
    ----------
    chunks : tuple of str
        Ids of the chunks that all have these tokens.
    first : int
        First of the chunk's tokens that stands here.
    slot : int
        Where it stands in the prompt.
    count : int
        How many of the chunk's tokens stand here, from that one on.
    """

    chunks: tuple[str, ...]
    first: int
    slot: int
    count: int

    @property
    def end(self) -> int:
        """The slot behind it."""
        return self.slot + self.count


class TokenMatcher:
    """Finds known chunks in prompts by their tokens.

    A chunk of less than `GRAM + 2` tokens is found as a whole, and only where chunks begin or right behind another one:
    elsewhere it is likelier to be a coincidence.

    Parameters
    ----------
    read : callable
        Token ids by chunk, for some chunks; those that are gone are left out.
    """

    def __init__(self, read: Callable[[Sequence[str]], dict[str, tuple[int, ...]]]) -> None:
        self._read = read
        self._by_gram: dict[bytes, _ByLength] = {}
        self._short: _ByLength = {}
        self._known: set[str] = set()

    def add(self, chunks: Iterable[tuple[str, Sequence[int]]]) -> None:
        """Take up chunks, id and tokens of each."""
        for chunk, token_ids in chunks:
            self._known.add(chunk)
            data = _spelled(token_ids)
            if len(token_ids) < GRAM + _TAIL:
                _enter(self._short, len(token_ids), data, chunk)
            for skipped in _SKIPPED:
                length = len(token_ids) - skipped - _TAIL
                if length >= GRAM:
                    key = _part(data, skipped, length)
                    _enter(self._by_gram.setdefault(key[: GRAM * _BYTES], {}), length, key, chunk)

    def lacking(self, chunks: Iterable[str]) -> list[str]:
        """Those chunks that were not taken up yet."""
        return [chunk for chunk in chunks if chunk not in self._known]

    def find(self, token_ids: Sequence[int], start: int = 0) -> list[TokenMatch]:
        """Where chunks stand in a prompt, from left to right, none overlapping another.

        Parameters
        ----------
        token_ids : sequence of int
            The prompt.
        start : int
            Look from here on.
        """
        data, found, here = _spelled(token_ids), list[TokenMatch](), start
        while here < len(token_ids):
            begin = found[-1].end if found else start
            by_length = self._by_gram.get(_part(data, here, GRAM))
            match = self._match(token_ids, data, here, begin, by_length or {})
            if match is None and here == begin:
                match = self._match_short(data, here)
            if match is None:
                here += 1
            else:
                found.append(match)
                here = match.end
        return found

    def _match(
        self, token_ids: Sequence[int], data: bytes, here: int, begin: int, by_length: _ByLength
    ) -> TokenMatch | None:
        """The longest chunk that stands here, of which no token may stand before `begin`."""
        for length in sorted((n for n in by_length if here + n <= len(token_ids)), reverse=True):
            alike = by_length[length].get(_digest(_part(data, here, length)), ())
            if match := self._extended(token_ids, here, begin, length, alike):
                return match
        return None

    def _match_short(self, data: bytes, here: int) -> TokenMatch | None:
        for length in sorted(self._short, reverse=True):
            if chunks := self._short[length].get(_digest(_part(data, here, length))):
                return TokenMatch(chunks, 0, here, length)
        return None

    def _extended(
        self, token_ids: Sequence[int], here: int, begin: int, length: int, alike: Sequence[str]
    ) -> TokenMatch | None:
        """The tokens that agree, of those chunks of which most do."""
        places = list[TokenMatch]()
        for chunk, own in (self._read(alike) if alike else {}).items():
            skipped = len(own) - length - _TAIL
            before = 0
            while before < min(skipped, here - begin) and own[skipped - before - 1] == token_ids[here - before - 1]:
                before += 1
            end = length
            while (
                skipped + end < len(own) and here + end < len(token_ids) and own[skipped + end] == token_ids[here + end]
            ):
                end += 1
            places.append(TokenMatch((chunk,), skipped - before, here - before, before + end))
        if not places:
            return None
        best = max(places, key=lambda place: place.count)
        same = [place.chunks[0] for place in places if (place.first, place.count) == (best.first, best.count)]
        return TokenMatch(tuple(same), best.first, best.slot, best.count)


def _enter(by_length: _ByLength, length: int, key: bytes, chunk: str) -> None:
    by_digest, digest = by_length.setdefault(length, {}), _digest(key)
    by_digest[digest] = (*by_digest.get(digest, ()), chunk)


def _spelled(token_ids: Sequence[int]) -> bytes:
    return np.asarray(token_ids, dtype="<i4").tobytes()


def _part(data: bytes, start: int, count: int) -> bytes:
    return data[start * _BYTES : (start + count) * _BYTES]


def _digest(data: bytes) -> bytes:
    return xxhash.xxh3_128_digest(data)
