"""What a task must show to be admitted as one that needs other chunks, and the judgement, check by check."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any, Literal

from ragcache_bench.markdown import table
from ragcache_bench.metrics import Interval, bootstrap

Verdict = Literal["needs other chunks", "self-contained", "reader too weak", "undecided"]


@dataclass(frozen=True)
class Rule:
    """What a task must show; scores are exact match in [0, 1].

    A difference counts only where its 95 % interval by paired bootstrap lies above 0.

    Attributes
    ----------
    full : float
        Full prefill's least score; below it the reader is too weak for the task to say anything.
    loss : float
        What naive reuse loses at least.
    titled_loss : float
        What it still loses where each chunk has its title as a first line, which is what a practitioner does anyway.
    random_share, random_below : float
        Random tokens recomputed at this share stay this far below full prefill.
    heads_charged, heads_below : float
        The first tokens of every chunk (EPIC), at this charge or less, stay this far below full prefill.
    control_loss : float
        What naive reuse still loses with the question blind to the chunks' first tokens, and with a reader trained half
        on chunks that see only themselves.
    control_full : float
        The second reader's least score by full prefill; below it, its loss says nothing.
    end_tokens : int
        Least tokens of a chunk's own end: room for a summary inside the chunk.
    twin_loss : float
        What naive reuse may lose on the twin that states the same facts in full.
    same : float
        Share of full prefill's own answers at r = 1.
    """

    full: float = 0.85
    loss: float = 0.15
    titled_loss: float = 0.10
    random_share: float = 0.15
    random_below: float = 0.10
    heads_charged: float = 0.03
    heads_below: float = 0.10
    control_loss: float = 0.10
    control_full: float = 0.60
    end_tokens: int = 2
    twin_loss: float = 0.03
    same: float = 0.99


@dataclass(frozen=True)
class Check:
    """A figure, its 95 % interval where it has one, and whether it is as the rule wants; None where it says nothing."""

    name: str
    passed: bool | None
    value: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Admission:
    """A task, judged.

    Attributes
    ----------
    task : str
        Its name.
    n : int
        Questions.
    verdict : str
        "needs other chunks", where every check passed; "self-contained", where naive reuse loses nothing; "reader too
        weak", where full prefill does; else "undecided": something is lost, and not all of it is accounted for.
    checks : tuple of Check
        In the order of `judge`.
    """

    task: str
    n: int
    verdict: Verdict
    checks: tuple[Check, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Measured:
    """Exact match by condition, question by question, and what is no score.

    Attributes
    ----------
    scores : mapping of str to sequence of float
        "full", "naive", "random" and "heads"; where measured also "titled naive", "blind full" and "blind naive",
        "control full" and "control naive", "twin full" and "twin naive". What is compared has the same questions in
        the same order.
    heads_charged, same : float
        Mean charge of "heads"; share of questions on which r = 1 gave full prefill's own answer.
    end_tokens : int
        Tokens of a chunk's own end.
    """

    scores: Mapping[str, Sequence[float]]
    heads_charged: float
    same: float
    end_tokens: int

    def lost(self, better: str, worse: str) -> Interval:
        """What `worse` loses against `better`, paired by question."""
        return bootstrap([a - b for a, b in zip(self.scores[better], self.scores[worse], strict=True)])


def judge(task: str, measured: Measured, rule: Rule, *, twin: bool, control: bool) -> Admission:
    """Apply the rule.

    Parameters
    ----------
    task : str
        Its name.
    measured : Measured
        Of one reader.
    rule : Rule
        What to ask for.
    twin : bool
        Whether the task is a twin itself, which needs none.
    control : bool
        Whether a second reader was given; its check belongs to the verdict only then.
    """
    full, loss = bootstrap(measured.scores["full"]), measured.lost("full", "naive")
    first = [_check("full prefill", full.mean >= rule.full, full), _beyond("naive loses", loss, rule.loss)]
    if "titled naive" in measured.scores:
        first.append(_beyond("titled naive loses", measured.lost("full", "titled naive"), rule.titled_loss))
    rest = _controls(measured, rule, control) if "blind full" in measured.scores else ()
    checks = (*first, *rest, *_plain(measured, rule))
    verdict: Verdict
    if full.mean < rule.full:
        verdict = "reader too weak"
    elif loss.mean <= rule.twin_loss or loss.low <= 0:
        verdict = "self-contained"
    elif not twin and rest and all(check.passed for check in checks):
        verdict = "needs other chunks"
    else:
        verdict = "undecided"
    return Admission(task, len(measured.scores["full"]), verdict, checks)


def _plain(m: Measured, rule: Rule) -> tuple[Check, ...]:
    heads = _beyond("heads lose", m.lost("full", "heads"), rule.heads_below, f"charged {m.heads_charged:.3f}")
    dear = m.heads_charged > rule.heads_charged + 0.001  # a share is rounded to whole tokens
    return (
        _beyond("random loses", m.lost("full", "random"), rule.random_below),
        replace(heads, passed=None) if dear else heads,
        Check("r = 1 is full", m.same >= rule.same, m.same),
        Check("end of chunk", m.end_tokens >= rule.end_tokens, m.end_tokens, note="tokens"),
    )


def _controls(m: Measured, rule: Rule, control: bool) -> tuple[Check, ...]:
    found = (_beyond("blind naive loses", m.lost("blind full", "blind naive"), rule.control_loss), _twin(m, rule))
    if not control:
        return found
    able, lost = fmean(m.scores["control full"]), m.lost("control full", "control naive")
    check = _beyond("second reader loses", lost, rule.control_loss, f"full {able:.2f}")
    if able < rule.control_full:
        check = replace(check, passed=None, note=f"{check.note}, too weak to say")
    return (*found, check)


def _twin(m: Measured, rule: Rule) -> Check:
    if "twin full" not in m.scores:
        return Check("twin loses nothing", None, None, note="no twin")
    lost = m.lost("twin full", "twin naive")
    return _check("twin loses nothing", lost.mean <= rule.twin_loss or lost.low <= 0, lost)


def _beyond(name: str, lost: Interval, least: float, note: str = "") -> Check:
    # fmean of tenths: 0.15 may come out as 0.1499…
    return _check(name, lost.mean >= least - 1e-9 and lost.low > 0, lost, note)


def _check(name: str, passed: bool, found: Interval, note: str = "") -> Check:
    return Check(name, passed, found.mean, found.low, found.high, note)


def markdown(admissions: Sequence[Admission], rule: Rule) -> str:
    """A table of tasks and checks; a figure in bold passed, one in brackets says nothing."""
    names = list(dict.fromkeys(check.name for one in admissions for check in one.checks))
    rows = []
    for one in admissions:
        by_name = {check.name: _cell(check) for check in one.checks}
        rows.append([one.task, one.n, one.verdict, *map(by_name.get, names)])
    asked = ", ".join(f"{key} {value:g}" for key, value in asdict(rule).items())
    shown = table(["task", "questions", "verdict", *names], rows)
    return f"{shown}\nThe rule: {asked}. Figures in bold are as it wants.\n"


def _cell(check: Check) -> str:
    if check.value is None:
        return check.note
    shown = f"{check.value:.3g}" if check.low is None else f"{check.value:.2f} [{check.low:.2f}, {check.high:.2f}]"
    marked = f"({shown})" if check.passed is None else f"**{shown}**" if check.passed else shown
    return f"{marked} {check.note}".rstrip()
