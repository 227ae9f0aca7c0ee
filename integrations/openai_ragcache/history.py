"""What a tenant's answers were made from, minute by minute, for as long as the server runs."""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from ragcache.report import CacheReport

_MINUTES = 24 * 60


class History:
    """Counts of the last day; threads may look while one adds.

    Parameters
    ----------
    now : callable
        Seconds since 1970.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._minutes: OrderedDict[int, Counter[str]] = OrderedDict()

    def add(self, report: CacheReport) -> None:
        """Count an answer: its chunks' tokens by what became of them, and how long its first token took."""
        minute = int(self._now() // 60)
        counts = self._minutes.setdefault(minute, Counter())
        counts.update(answers=1, first_token_us=round(1000 * report.ms.first_token))
        for chunk in report.chunks:
            counts[chunk.cache] += chunk.tokens - chunk.recomputed
            counts["recomputed"] += chunk.recomputed
        while next(iter(self._minutes)) <= minute - _MINUTES:
            self._minutes.popitem(last=False)

    def as_list(self) -> list[dict[str, Any]]:
        """The minutes in which something was answered, oldest first; tokens, and milliseconds in the mean."""
        states = ("hit", "exact", "recomputed", "miss")
        return [
            {
                "minute": minute,
                "answers": counts["answers"],
                **{state: counts[state] for state in states},
                "first_token_ms": counts["first_token_us"] / counts["answers"] / 1000,
            }
            for minute, counts in list(self._minutes.items())
        ]
