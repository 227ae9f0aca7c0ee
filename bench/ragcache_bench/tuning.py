"""`bench tune`: a row's settings, chosen on one half of one's own questions and judged on the other half."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any, Literal

from ragcache.errors import InvalidArgument
from ragcache.rag import RagCache
from ragcache.report import Progress
from ragcache_bench import user_questions as own
from ragcache_bench.contenders import Contender
from ragcache_bench.grid import Candidate, spelled
from ragcache_bench.metrics import Interval, bootstrap, normalise
from ragcache_bench.records import Journal, Record
from ragcache_bench.table import Row, tabulate
from ragcache_bench.user_questions import OwnQuestion

By = Literal["score", "agreement"]


@dataclass(frozen=True)
class Tuned:
    """A candidate on both halves of the questions.

    Attributes
    ----------
    method, settings : str, dict of str to object
        The row, and what is changed in it.
    chosen : bool
        Whether it was the best of its row's candidates on the tuning half.
    recompute, charged, charged_flops : float or None, float or None, float
        Nominal share; means over the held-out half.
    tuning_n, tuning_score, tuning_agreement : int, float, float
        Questions of the tuning half, and what it was chosen by.
    n, score, low, high : int, float, float, float
        Held-out half: exact match with its 95 % bootstrap interval.
    agreement : float
        Held-out half: share of questions with full prefill's own answer.
    delta, delta_low, delta_high : float
        Held-out half: exact match minus that of the row as it is, with its 95 % paired bootstrap interval.
    """

    method: str
    settings: dict[str, Any]
    chosen: bool
    recompute: float | None
    charged: float | None
    charged_flops: float | None
    tuning_n: int
    tuning_score: float
    tuning_agreement: float
    n: int
    score: float
    low: float
    high: float
    agreement: float
    delta: float
    delta_low: float
    delta_high: float

    @property
    def words(self) -> str:
        """What to do about it, in one sentence."""
        found = f"{self.delta:+.3f} [{self.delta_low:+.3f}, {self.delta_high:+.3f}] on {self.n} held-out questions"
        if not self.settings:
            return f"{self.method}: its own settings were the best of those tried"
        if self.delta_low > 0:
            return f"{self.method}: take {spelled(self.settings)}, {found}"
        return f"{self.method}: keep its own settings; {spelled(self.settings)} is not surely better, {found}"


@dataclass(frozen=True)
class Tuning:
    """What a run found: the rows as they are and as chosen, what they are compared with, and every candidate tried."""

    rows: Sequence[Tuned]
    controls: Sequence[Row]
    tried: Sequence[tuple[Candidate, Row]]


def halves(questions: Sequence[OwnQuestion], seed: int = 0) -> tuple[list[OwnQuestion], list[OwnQuestion]]:
    """The questions to choose by and those to judge by; a question that is asked twice is in one half only.

    Raises
    ------
    InvalidArgument
        If there is but one question.
    """
    texts = list(dict.fromkeys(normalise(one.question) for one in questions))
    if len(texts) < 2:
        raise InvalidArgument("one question cannot both choose and judge; write two or more, better a few hundred")
    random.Random(seed).shuffle(texts)
    tuning = set(texts[: len(texts) // 2])
    first = [one for one in questions if normalise(one.question) in tuning]
    return first, [one for one in questions if normalise(one.question) not in tuning]


def tune(
    rag: RagCache,
    questions: tuple[Sequence[OwnQuestion], Sequence[OwnQuestion]],
    field: Mapping[str, Sequence[Candidate]],
    journal: Journal,
    *,
    budget: float,
    by: By,
    top_k: int,
    max_new_tokens: int,
    progress: Progress,
) -> Tuning:
    """Choose the best candidate of each row on the first half, and measure it and the row as it is on the second.

    Parameters
    ----------
    rag : RagCache
        The index, used as `ask` uses it.
    questions : tuple of two sequences of OwnQuestion
        From `halves`.
    field : mapping of str to sequence of Candidate
        From `candidates`.
    journal : Journal
        What there is already is not asked again.
    budget : float
        Share to recompute; rows with a fixed cost have their own.
    by : {"score", "agreement"}
        What decides: exact match, or full prefill's own answer. The other breaks a tie, then the distance from full
        prefill's distribution, then the order of the candidates.
    top_k, max_new_tokens, progress : int, int, callable
        As `ragcache_bench.user_questions.run` takes them.
    """
    asked = partial(own.run, rag, journal=journal, top_k=top_k, max_new_tokens=max_new_tokens)
    controls = [Contender(row) for row in own.served(rag, ["full", "naive"])]
    every = [one for all_of in field.values() for one in all_of]
    records = asked(questions[0], _contenders(controls, every, budget), progress=_named("tuning half", progress))
    tried = {row.method: row for row in tabulate(records)}
    chosen = {name: max(all_of, key=lambda one: _rank(tried[one.method.name], by)) for name, all_of in field.items()}
    judged = [one for name, all_of in field.items() for one in _pair(all_of[0], chosen[name])]
    records = asked(questions[1], _contenders(controls, judged, budget), progress=_named("held-out half", progress))
    table = {row.method: row for row in tabulate(records)}
    return Tuning(
        [_tuned(one, one is chosen[one.row], tried, table, records) for one in judged],
        [table[who.method.name] for who in controls],
        [(one, tried[one.method.name]) for one in every],
    )


def _contenders(controls: Sequence[Contender], chosen: Sequence[Candidate], budget: float) -> list[Contender]:
    rows = (one.method for one in chosen if one.method.name not in {who.method.name for who in controls})
    return [*controls, *(Contender(row, None if row.recompute is None else row.budget(budget)) for row in rows)]


def _named(stage: str, progress: Progress) -> Progress:
    return lambda _, done, total: progress(stage, done, total)


def _rank(row: Row, by: By) -> tuple[float, float, float]:
    score, agreement = row.score, row.agreement or 0.0
    first, second = (score, agreement) if by == "score" else (agreement, score)
    return first, second, -(row.kl or 0.0)


def _pair(own_settings: Candidate, chosen: Candidate) -> list[Candidate]:
    return [own_settings] if chosen is own_settings else [own_settings, chosen]


def _tuned(
    one: Candidate, chosen: bool, tried: Mapping[str, Row], table: Mapping[str, Row], records: Sequence[Record]
) -> Tuned:
    before, row = tried[one.method.name], table[one.method.name]
    ours, default = _scores(records, one.method.name), _scores(records, one.row)
    score, delta = bootstrap(list(ours.values())), _difference(ours, default)
    return Tuned(
        method=one.row, settings=dict(one.settings), chosen=chosen, recompute=row.recompute, charged=row.charged,
        charged_flops=row.charged_flops, tuning_n=before.n, tuning_score=before.score,
        tuning_agreement=before.agreement or 0.0, n=row.n, score=score.mean, low=score.low, high=score.high,
        agreement=row.agreement or 0.0, delta=delta.mean, delta_low=delta.low, delta_high=delta.high,
    )  # fmt: skip


def _scores(records: Sequence[Record], method: str) -> dict[str, float]:
    """Exact match by question."""
    found: dict[str, list[float]] = {}
    for record in records:
        if record.method == method:
            found.setdefault(record.id, []).append(record.em)
    return {name: fmean(values) for name, values in found.items()}


def _difference(ours: Mapping[str, float], other: Mapping[str, float]) -> Interval:
    return bootstrap([ours[name] - other[name] for name in ours])
