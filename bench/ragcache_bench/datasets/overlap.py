"""Which texts share the most words with a question: the plainest of retrievers, for sets that need one."""

import math
from collections import defaultdict
from collections.abc import Sequence

from ragcache_bench.metrics import normalise


class Overlap:
    """Texts that are ranked by the words they share with a question.

    Words are compared as in scoring, and a rare word counts more than a common one: log(1 + texts / texts with it).

    Parameters
    ----------
    texts : sequence of str
        What to rank.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._size = len(texts)
        self._places: dict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(texts):
            for word in set(normalise(text).split()):
                self._places[word].append(place)

    def nearest(self, question: str, count: int | None = None) -> list[int]:
        """Indices of the texts that share the most with a question, best first, ties to the earlier."""
        scores = [0.0] * self._size
        for word in sorted(set(normalise(question).split())):  # in one order, for sums of floats depend on it
            places = self._places.get(word, ())
            for place in places:
                scores[place] += math.log(1 + self._size / len(places))
        return sorted(range(self._size), key=lambda place: (-scores[place], place))[:count]
