"""A finding of the literature, and what became of it here."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ragcache_bench.markdown import table
from ragcache_bench.metrics import Interval

Verdict = Literal["confirmed", "partly", "not confirmed", "counted"]


@dataclass(frozen=True)
class Finding:
    """A claim, looked for again.

    Attributes
    ----------
    letter : str
        For reference: a, b, …
    claim, source : str
        What was found, and by whom.
    verdict : str
        "confirmed", "partly", "not confirmed"; "counted" where the literature gives nothing to hold it against.
    because : str
        The figure that decides, in a sentence.
    rows : tuple of dict
        The table: all figures.
    listed : tuple of dict
        Single cases, where they are worth reading.
    """

    letter: str
    claim: str
    source: str
    verdict: Verdict
    because: str
    rows: tuple[dict[str, Any], ...]
    listed: tuple[dict[str, Any], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def shown(found: Interval) -> str:
    """A mean with its 95 % interval."""
    return f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"


def markdown(findings: Sequence[Finding], *, listed: int = 12) -> str:
    """A section per finding; the first `listed` of its single cases."""
    return "\n".join(part for one in findings for part in _section(one, listed))


def _section(one: Finding, listed: int) -> Iterator[str]:
    yield f"## {one.letter}. {one.claim}\n"
    yield f"From {one.source}. **{one.verdict.capitalize()}**: {one.because}\n"
    if one.rows:
        yield _table(one.rows)
    if one.listed:
        yield f"The first {min(listed, len(one.listed))} of {len(one.listed)} cases:\n"
        yield _table(one.listed[:listed])


def _table(rows: Sequence[dict[str, Any]]) -> str:
    return table(list(rows[0]), [[row[name] for name in rows[0]] for row in rows])
