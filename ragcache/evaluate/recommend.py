"""What a table of one's own questions says to do, in one sentence."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragcache.evaluate.contenders import EXTRA
from ragcache.evaluate.table import Row

SAFE = 0.98
_NOT_OFFERED = {"full", "chance", "random", *EXTRA}  # what they are compared with, and what no index can serve


@dataclass(frozen=True)
class Recommendation:
    """A method at a budget, or full prefill.

    Attributes
    ----------
    row : Row or None
        What to use; None for full prefill.
    words : str
        The same for people, with what it rests on.
    """

    row: Row | None
    words: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        row = self.row
        return {
            "method": row.method if row else "full",
            "recompute": row.recompute if row else None,
            "agreement": row.agreement if row else 1.0,
            "agreement_low": row.agreement_low if row else None,
            "words": self.words,
        }


def recommend(rows: Sequence[Row], safe: float = SAFE) -> Recommendation:
    """Of what agrees with full prefill often enough, the row with the least time to first token.

    Parameters
    ----------
    rows : sequence of Row
        Of one task, `full` among them.
    safe : float
        Least share of questions on which full prefill's own answer must come.
    """
    full = next(row for row in rows if row.method == "full")
    offered = [row for row in rows if row.method not in _NOT_OFFERED]
    good = [row for row in offered if _agreement(row) >= safe]
    sooner = [row for row in good if _ttft(row) < _ttft(full)]
    if sooner:
        best = min(sooner, key=_ttft)
        return Recommendation(best, _praise(best, full, safe))
    if good:
        return Recommendation(None, "full prefill: nothing that was safe was sooner")
    best_words = f"; {_name(max(offered, key=_agreement))} came closest" if offered else ""
    return Recommendation(None, f"full prefill: nothing tested was safe{best_words}")


def _praise(row: Row, full: Row, safe: float) -> str:
    words = (
        f"{_name(row)}, 95 % sure of {row.agreement_low or 0:.1%}; first token after {_ttft(row):,.0f} ms, "
        f"full prefill {_ttft(full):,.0f} ms"
    )
    if (row.agreement_low or 0) >= safe:
        return words
    enough = math.ceil(safe / (1 - safe) * 1.96**2)  # Wilson's lower bound where all of them agree
    return f"{words}. {row.n} questions cannot show {safe:.0%}; ask {enough} or more to be sure"


def _name(row: Row) -> str:
    share = "" if row.recompute is None else f" --recompute {row.recompute:g}"
    return f"--method {row.method}{share} (agrees with full prefill on {_agreement(row):.1%} of {row.n} questions)"


def _agreement(row: Row) -> float:
    return 0.0 if row.agreement is None else row.agreement


def _ttft(row: Row) -> float:
    return math.inf if row.ttft_ms is None else row.ttft_ms
