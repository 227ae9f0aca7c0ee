"""Why a text was not found in a prompt: which known one is closest to what stands there, and what was done to it.

Chunks are compared by runs of words, so white space, line prefixes and punctuation play no part in finding the closest.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ragcache.engine.chunk_matcher import PREFIX_CHARS

_WORDS = re.compile(r"\w+")
_RUN = 3  # words that are compared at a time
_PROBE, _PROBES = 60, 3  # characters of a chunk that are looked at in one place, and in how many places
_MOST = 20_000  # chunks that are looked at, evenly spread over all: somebody waits for an answer meanwhile


class Closest:
    """Chunks by a few runs of their words.

    Parameters
    ----------
    chunks : sequence of (str, str)
        Id and text of each.
    """

    def __init__(self, chunks: Sequence[tuple[str, str]]) -> None:
        self._chunks: dict[int, str] = {}
        for chunk, text in chunks[:: 1 + len(chunks) // _MOST]:
            for run in _sampled(text.strip()):
                self._chunks.setdefault(run, chunk)

    def find(self, text: str) -> str | None:
        """The chunk that has most of its runs in a text; None where no chunk has one there."""
        runs = dict.fromkeys(_runs(_words(text)))  # each once, in order: of equals the first in the text is taken
        there = Counter(self._chunks[run] for run in runs if run in self._chunks)
        return max(there, key=lambda chunk: there[chunk]) if there else None


def explained(chunk: str, text: str) -> tuple[float, str]:
    """What share of a chunk's words stands in a text, and why the chunk as a whole does not."""
    words = _words(chunk)
    covered = _covered(words, set(_runs(_words(text)))) or [False]
    share = sum(covered) / len(covered)
    if share == 1:
        return share, _respaced(chunk, text)
    first = covered.index(False)
    if not any(covered[first:]):
        return share, f"it is cut short behind its first {first} words"
    if not any(covered[: len(covered) - covered[::-1].index(False)]):
        return share, "its beginning is missing"
    return share, "some of its words are others there, or in another order"


def _respaced(chunk: str, text: str) -> str:
    """What differs where all words are there."""
    if len(chunk.strip()) < PREFIX_CHARS and chunk.strip() in text:
        return (
            f"a chunk of fewer than {PREFIX_CHARS} characters is only found where it stands alone between line breaks"
        )
    if chunk.strip() in text:
        return "it was handed over as new text; Engine.chunk(text) gives the index's own chunk"
    if " ".join(chunk.split()) in " ".join(text.split()):
        return "its white space is different there: indented, wrapped, or joined in another way"
    return "something stands between its words or lines there, such as bullets, numbers or quotation marks"


def _covered(words: list[str], there: set[int]) -> list[bool]:
    """Which words belong to a run that stands in a text whose runs are there."""
    covered = [False] * len(words)
    for start, run in enumerate(_runs(words)):
        if run in there:
            covered[start : start + _RUN] = [True] * len(covered[start : start + _RUN])
    return covered


def _sampled(text: str) -> Iterator[int]:
    """One run from each of a few places in a text."""
    for place in range(_PROBES):
        start = (len(text) - _PROBE) * place // (_PROBES - 1) if len(text) > _PROBE else 0
        words = _words(text[start : start + _PROBE])
        whole = words[1 if start else 0 :]  # the first may be the end of a word
        if whole:
            yield next(_runs(whole))


def _runs(words: list[str]) -> Iterator[int]:
    """All runs of words, in order; a text of fewer words is one run."""
    for start in range(max(1, len(words) - _RUN + 1)):
        yield hash(" ".join(words[start : start + _RUN]))


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.casefold())
