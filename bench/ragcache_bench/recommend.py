"""What a table of one's own questions says to do, in one sentence; or that it says too little."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ragcache_bench.contenders import EXTRA
from ragcache_bench.table import Row

SAFE = 0.98
#: Questions below which nothing is said: one answer would be more than 5 % of them.
LEAST = 20
_TIE = 1.05  # times as long to the first token as the soonest: what one run cannot tell apart
_SHOWN = 3
_NOT_OFFERED = {"full", "chance", "random", *EXTRA}  # what they are compared with, and what no index can serve

Verdict = Literal["use", "full prefill", "undecided"]


@dataclass(frozen=True)
class Recommendation:
    """A method at a budget, full prefill, or neither while too few questions were asked.

    Attributes
    ----------
    verdict : {"use", "full prefill", "undecided"}
        Which of them.
    row : Row or None
        What to use, where it is a method.
    words : str
        The same for people, with what it rests on: one or several sentences, without the last one's full stop.
    """

    verdict: Verdict
    row: Row | None
    words: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `method` is null where nothing is recommended."""
        row = self.row
        return {
            "verdict": self.verdict,
            "method": row.method if row else "full" if self.verdict == "full prefill" else None,
            "recompute": row.recompute if row else None,
            "agreement": row.agreement if row else None,
            "agreement_low": row.agreement_low if row else None,
            "words": self.words,
        }


def enough(safe: float) -> int:
    """The least number of questions from which full agreement shows a share of `safe`, by Wilson's lower bound."""
    return math.ceil(safe / (1 - safe) * 1.96**2)


def recommend(rows: Sequence[Row], safe: float = SAFE) -> Recommendation:
    """Of what surely agrees with full prefill often enough, the row with the least time to first token.

    Agreement is paired, question by question; its 95 % interval decides. A method is recommended if all of the interval
    is at `safe` or above, and passed over if all of it is below. Of rows that are equally soon it is the first. One
    that has no time is not recommended, nor is full prefill in its place.

    Parameters
    ----------
    rows : sequence of Row
        Of one task, `full` among them; what is preferred among equals comes first.
    safe : float
        Least share of questions on which full prefill's own answer must come.
    """
    full = next(row for row in rows if row.method == "full")
    offered = [row for row in rows if row.method not in _NOT_OFFERED]
    sooner = sorted((row for row in offered if _ttft(row) < _ttft(full)), key=_ttft)
    surely = [row for row in sooner if (row.agreement_low or 0) >= safe]
    perhaps = [row for row in sooner if (row.agreement_high or 0) >= safe]
    if not offered:
        return Recommendation("undecided", None, "Nothing but full prefill was tested, so there is nothing to compare")
    if surely:
        alike = [row for row in surely if _ttft(row) <= _TIE * _ttft(surely[0])]
        best = next(row for row in rows if row in alike)
        return Recommendation("use", best, f"Use {_praise(best, full)}")
    if perhaps or full.n < LEAST:
        return Recommendation("undecided", None, _too_few(perhaps or offered, full, safe))
    if untimed := [_name(row) for row in offered if row.ttft_ms is None and (row.agreement_high or 0) >= safe]:
        words = f"There is no time beside full prefill's, in one run, of {', '.join(untimed)}"
        return Recommendation("undecided", None, f"{words}; name another --out, and all are timed together")
    return Recommendation("full prefill", None, f"Use full prefill: {_why(sooner, safe)}")


def _too_few(candidates: Sequence[Row], full: Row, safe: float) -> str:
    shown = [f"{_name(row)} {_interval(row)}, first token {_after(row)}" for row in candidates[:_SHOWN]]
    more = len(candidates) - len(shown)
    intervals = "; ".join([*shown, *([f"and {more} more"] if more else [])])
    least = enough(safe)
    needed = (
        f"At least {least} are needed: with fewer, even agreement on all leaves the lower bound below {safe:.3g}"
        if full.n < least
        else f"Ask more, for these intervals hold {safe:.3g}"
    )
    return (
        f"{full.n} questions are too few to tell whether a method gives full prefill's own answer to a share of "
        f"{safe:.3g}; the 95% intervals are: {intervals}; full prefill's first token {_after(full)}. {needed}"
    )


def _why(sooner: Sequence[Row], safe: float) -> str:
    if not sooner:
        return "nothing that was tested was sooner"
    best = max(sooner, key=lambda row: row.agreement or 0)
    return (
        f"nothing that was tested and sooner gives its own answer to a share of {safe:.3g}; {_name(best)} came "
        f"closest, with {_interval(best)} of {best.n} questions"
    )


def _praise(row: Row, full: Row) -> str:
    return (
        f"{_name(row)}: it agrees with full prefill on {_interval(row)} of {row.n} questions; first token "
        f"{_after(row)}, full prefill's {_after(full)}"
    )


def _name(row: Row) -> str:
    share = "" if row.recompute is None else f" --recompute {row.recompute:g}"
    return f"--method {row.method}{share}"


def _interval(row: Row) -> str:
    """The share and its 95 % interval."""
    return f"{row.agreement or 0:.1%} [{row.agreement_low or 0:.1%}, {row.agreement_high or 0:.1%}]"


def _after(row: Row) -> str:
    return "not timed" if row.ttft_ms is None else f"after {row.ttft_ms:,.0f} ms"


def _ttft(row: Row) -> float:
    return math.inf if row.ttft_ms is None else row.ttft_ms
