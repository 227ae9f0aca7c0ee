"""From answers to the table: a row per task, method and budget, paired with full prefill question by question."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any, TypeVar

from ragcache_bench.contenders import TITLE
from ragcache_bench.metrics import Interval, agrees, bootstrap, bootstrap_ratio, wilson
from ragcache_bench.records import Record
from ragcache_bench.references import TRUE_DEVIATION

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
TWINS = ("naive", "auto")
"""Rows that do the same work before the first token, where nothing is recomputed."""
TWINS_DIFFER = 0.05
"""How far their times may differ before none is shown."""


@dataclass(frozen=True)
class Row:
    """What one method did at one budget on one task.

    Attributes
    ----------
    task, method : str
        "chance" is the score of guessing, where the task states one.
    recompute : float or None
        Nominal share; None for rows with a fixed cost.
    charged : float or None
        Mean share of selectable tokens computed fresh; None where nothing is reused inexactly.
    charged_flops : float or None
        Mean FLOPs before the first token over those of full prefill.
    n : int
        Questions; where several seeds answer one, they are averaged.
    score, f1 : float
        Exact match and token F1, in [0, 1].
    adjusted, adjusted_low, adjusted_high : float or None
        Exact match on the questions that full prefill gets right, with its 95 % interval; None where it gets none. The
        study (2603.20218) calls adjusted F1 the token F1 on questions whose full prefill has an F1 above 0: more
        questions than these, and partly right answers count in part.
    delta, ci_low, ci_high : float or None
        Exact match minus full prefill's, with its 95 % paired bootstrap interval.
    recovered, recovered_low, recovered_high : float or None
        (score - naive) / (full - naive), with the 95 % bootstrap interval of that ratio; None where the interval of
        naive - full holds 0. FusionRAG (2601.12904) has it of token F1, calls it normalised F1, and gives it wherever
        the two differ; here it is of exact match. Both are below 0 where a method answers worse than naive reuse.
    retention : float or None
        Score over full prefill's.
    agreement, agreement_low, agreement_high : float or None
        Share of questions with full prefill's own answer, right or wrong, with Wilson's 95 % interval; of the same
        chunks, which for a row with a title line is full prefill with titles. So are FLOPs, times and KL.
    ttft_ratio : float or None
        Full prefill's median time to first token over this one's; above 1 is faster. Of the questions that both
        answered in the same run: None where there are none, as in a row that joined later, and for `true-deviation`,
        which runs a full prefill of its own.
    kl : float or None
        Mean KL(full || this) of the first token's distribution, nats.
    ttft_ms : float or None
        Median time to the first token, of the same questions.
    gap : int or None
        In rows by gap, the chunks between header and fact; None in all others.
    sub_em, sub_em_delta, sub_em_low, sub_em_high : float or None
        Share of answers that an accepted one stands within; minus full prefill's, with its 95 % paired bootstrap
        interval.
    words : float or None
        Mean words of an answer.
    gain, gain_low, gain_high : float or None
        The same share minus naive reuse's of the same chunks, with its 95 % paired bootstrap interval.
    """

    task: str
    method: str
    recompute: float | None
    charged: float | None
    charged_flops: float | None
    n: int
    score: float
    f1: float | None = None
    adjusted: float | None = None
    delta: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    recovered: float | None = None
    retention: float | None = None
    agreement: float | None = None
    ttft_ratio: float | None = None
    kl: float | None = None
    ttft_ms: float | None = None
    gap: int | None = None
    adjusted_low: float | None = None
    adjusted_high: float | None = None
    recovered_low: float | None = None
    recovered_high: float | None = None
    agreement_low: float | None = None
    agreement_high: float | None = None
    sub_em: float | None = None
    sub_em_delta: float | None = None
    sub_em_low: float | None = None
    sub_em_high: float | None = None
    words: float | None = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None


@dataclass(frozen=True)
class Result:
    """What a benchmark wrote: a row per task and contender, the run's meta, tasks pooled, and rows by distance."""

    rows: Sequence[Row]
    about: Mapping[str, Any]
    pooled: Sequence[Row] = ()
    gaps: Sequence[Row] = ()


def tabulate(records: Sequence[Record], chance: Mapping[str, float] | None = None) -> list[Row]:
    """Summarise a run that has the row `full` on every task.

    Parameters
    ----------
    records : sequence of Record
        From `ragcache_bench.runs.Bench.answers`.
    chance : mapping of str to float, optional
        The score of guessing, by task.
    """
    rows: list[Row] = []
    for task, of_task in _grouped(records, lambda record: record.task):
        rows += _rows(of_task)
        if chance and task in chance:
            rows.append(Row(task, "chance", None, None, None, 0, chance[task]))
    return rows


def by_gap(records: Sequence[Record], least: int = 10) -> list[Row]:
    """The same for the tasks that know how far a fact stands from what it needs: a block of rows for each distance.

    Distances of fewer than `least` questions are left out: nothing can be told from those.
    """
    known = [record for record in records if record.gap is not None]
    rank = {name: number for number, (name, _) in enumerate(_grouped(records, _contender))}
    groups = _grouped(known, lambda record: (record.task, record.gap))
    tasks = {task: number for number, task in enumerate(dict.fromkeys(record.task for record in known))}
    rows = [replace(row, gap=gap) for (_, gap), group in groups for row in _rows(group) if row.n >= least]
    return sorted(rows, key=lambda row: (tasks[row.task], row.gap, rank[row.method, row.recompute]))


def _contender(record: Record) -> tuple[str, float | None]:
    return record.method, record.recompute


@dataclass(frozen=True)
class _Peers:
    """Whom a contender is compared with: full prefill and naive reuse, and those two over the contender's own chunks.

    The latter have titles where the contender has them.
    """

    full: Sequence[Record]
    naive: Sequence[Record] | None
    full_alike: Sequence[Record]
    naive_alike: Sequence[Record] | None


def _rows(records: Sequence[Record]) -> list[Row]:
    groups = dict(_grouped(records, _contender))
    by_name = {group[0].method: group for group in groups.values()}
    full, naive = by_name["full"], by_name.get("naive")
    plain = _Peers(full, naive, full, naive)
    titled = _Peers(full, naive, by_name.get(f"full{TITLE}", full), by_name.get(f"naive{TITLE}"))
    return [_summary(group, titled if group[0].method.endswith(TITLE) else plain) for group in groups.values()]


def doubtful_times(rows: Sequence[Row]) -> dict[str, float]:
    """How far rows that do the same work differ in time, by task, where that is too far to show any time.

    Rows that recompute nothing move the same KV into the same places, whichever encoding made it; whatever makes them
    differ is in the other rows too.
    """
    found = {}
    for task, of_task in _grouped(rows, lambda row: row.task):
        ratios = [row.ttft_ratio for row in of_task if row.method in TWINS and row.charged == 0 and row.ttft_ratio]
        if len(ratios) > 1 and max(ratios) > (1 + TWINS_DIFFER) * min(ratios):
            found[task] = max(ratios) / min(ratios) - 1
    return found


def withhold_times(found: Result) -> Result:
    """The same without times where they are doubtful; the meta's `times_differ` says where, and by how much."""
    doubtful = doubtful_times([*found.rows, *found.pooled])
    if not doubtful:
        return found

    def shown(rows: Sequence[Row], every: bool = False) -> list[Row]:
        return [replace(row, ttft_ms=None, ttft_ratio=None) if every or row.task in doubtful else row for row in rows]

    about = {**found.about, "times_differ": {**found.about.get("times_differ", {}), **doubtful}}
    return Result(shown(found.rows), about, shown(found.pooled, every=True), shown(found.gaps))


def _summary(group: Sequence[Record], peers: _Peers) -> Row:
    """A contender's row."""
    by_id = {record.id: record for record in peers.full_alike}
    ours, reference = _scores(group), _scores(peers.full)
    gap = bootstrap(_paired(ours, reference))
    held = _scores(group, "sub_em")
    held_gap = bootstrap(_paired(held, _scores(peers.full, "sub_em")))
    gain = bootstrap(_paired(held, _scores(peers.naive_alike, "sub_em"))) if peers.naive_alike else None
    score, top = fmean(ours.values()), fmean(reference.values())
    adjusted = _adjusted(ours, reference)
    recovered = _recovered(ours, _scores(peers.naive), reference) if peers.naive else None
    agreement = wilson(fmean(agrees(record.answer, by_id[record.id].answer) for record in group), len(ours))
    charged = [record.charged for record in group if record.charged is not None]
    kl = [record.kl for record in group if record.kl is not None]
    timed = [] if group[0].method == TRUE_DEVIATION.name else group  # the time of an oracle is nobody's
    ttft, whole = _ttft(_beside(timed, peers.full_alike)), _ttft(_beside(peers.full_alike, timed))
    return Row(
        task=group[0].task,
        method=group[0].method,
        recompute=group[0].recompute,
        charged=fmean(charged) if charged else None,
        charged_flops=fmean(record.charged_flops for record in group),
        n=len(ours),
        score=score,
        f1=fmean(record.f1 for record in group),
        **_spread("adjusted", adjusted),
        delta=gap.mean,
        ci_low=gap.low,
        ci_high=gap.high,
        **_spread("recovered", recovered),
        retention=score / top if top else None,
        **_spread("agreement", agreement),
        ttft_ratio=whole / ttft if ttft and whole else None,
        ttft_ms=ttft,
        kl=fmean(kl) if kl else None,
        sub_em=fmean(held.values()),
        sub_em_delta=held_gap.mean,
        sub_em_low=held_gap.low,
        sub_em_high=held_gap.high,
        words=fmean(len(record.answer.split()) for record in group),
        **_spread("gain", gain),
    )


def _adjusted(ours: Mapping[str, float], reference: Mapping[str, float]) -> Interval | None:
    right = [ours[name] for name, em in reference.items() if em == 1]
    return bootstrap(right) if right else None


def _recovered(
    ours: Mapping[str, float], least: Mapping[str, float], reference: Mapping[str, float]
) -> Interval | None:
    """Within the noise of full - naive there is nothing to recover, and the ratio is anything."""
    lost = _paired(reference, least)
    return bootstrap_ratio(_paired(ours, least), lost) if bootstrap(lost).low > 0 else None


def _spread(name: str, found: Interval | None) -> dict[str, Any]:
    if found is None:
        return {}
    return {name: found.mean, f"{name}_low": found.low, f"{name}_high": found.high}


def _scores(group: Sequence[Record], field: str = "em") -> dict[str, float]:
    """Exact match, or another score, by question, averaged over seeds."""
    by_id = _grouped(group, lambda record: record.id)
    return {name: fmean(getattr(record, field) for record in same) for name, same in by_id}


def _beside(group: Sequence[Record], others: Sequence[Record]) -> list[Record]:
    """Those of a group whose question the others answered in the same session, so that times compare."""
    there = {(record.id, record.session) for record in others}
    return [record for record in group if (record.id, record.session) in there]


def _ttft(group: Sequence[Record]) -> float | None:
    """Median milliseconds to the first token; None where some were not timed."""
    taken = [record.ttft_ms for record in group if record.ttft_ms is not None]
    return median(taken) if len(taken) == len(group) > 0 else None


def _paired(ours: Mapping[str, float], reference: Mapping[str, float]) -> list[float]:
    return [ours[name] - reference[name] for name in ours]


def _grouped(records: Iterable[T], key: Callable[[T], K]) -> list[tuple[K, list[T]]]:
    """Records, or rows, that share a key, in order of first appearance."""
    groups: dict[K, list[T]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return list(groups.items())
