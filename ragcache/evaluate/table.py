"""From answers to the table: a row per task, method and budget, paired with full prefill question by question."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import TypeVar

from ragcache.evaluate.metrics import agrees, bootstrap
from ragcache.evaluate.runs import Record

K = TypeVar("K", bound=Hashable)


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
        Questions; seeds are averaged within each.
    score, f1 : float
        Exact match and token F1, in [0, 1].
    adjusted : float or None
        Exact match on the questions that full prefill gets right (the study 2603.20218); None where it gets none.
    delta, ci_low, ci_high : float or None
        Exact match minus full prefill's, with its 95 % paired bootstrap interval.
    recovered : float or None
        (score - naive) / (full - naive), FusionRAG (2601.12904); None where the interval of naive - full holds 0.
    retention : float or None
        Score over full prefill's.
    agreement : float or None
        Share of questions with full prefill's own answer, right or wrong.
    ttft_ratio : float or None
        Full prefill's median time to first token over this one's, in the same run; above 1 is faster.
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


def tabulate(records: Sequence[Record], chance: Mapping[str, float] | None = None) -> list[Row]:
    """Summarise a run that has the rows `full` and `naive` on every task.

    Parameters
    ----------
    records : sequence of Record
        From `ragcache.evaluate.runs.run`.
    chance : mapping of str to float, optional
        The score of guessing, by task.
    """
    rows: list[Row] = []
    for task, of_task in _grouped(records, lambda record: record.task):
        groups = [group for _, group in _grouped(of_task, lambda record: (record.method, record.recompute))]
        full, naive = (next(g for g in groups if g[0].method == name) for name in ("full", "naive"))
        rows += [_summary(group, full, naive) for group in groups]
        if chance and task in chance:
            rows.append(Row(task, "chance", None, None, None, 0, chance[task]))
    return rows


def _summary(group: Sequence[Record], full: Sequence[Record], naive: Sequence[Record]) -> Row:
    by_id = {record.id: record for record in full}
    ours, reference, least = _scores(group), _scores(full), _scores(naive)
    gap = bootstrap(_paired(ours, reference))
    loss = bootstrap(_paired(least, reference))
    score, top = fmean(ours.values()), fmean(reference.values())
    right = [ours[name] for name, em in reference.items() if em == 1]
    charged = [record.charged for record in group if record.charged is not None]
    return Row(
        task=group[0].task,
        method=group[0].method,
        recompute=group[0].recompute,
        charged=fmean(charged) if charged else None,
        charged_flops=fmean(record.charged_flops for record in group),
        n=len(ours),
        score=score,
        f1=fmean(record.f1 for record in group),
        adjusted=fmean(right) if right else None,
        delta=gap.mean,
        ci_low=gap.low,
        ci_high=gap.high,
        # Within the noise of naive - full there is nothing to recover, and the ratio is anything.
        recovered=(gap.mean - loss.mean) / -loss.mean if loss.high < 0 else None,
        retention=score / top if top else None,
        agreement=fmean(agrees(record.answer, by_id[record.id].answer) for record in group),
        ttft_ratio=median(r.ttft_ms for r in full) / median(r.ttft_ms for r in group),
    )


def _scores(group: Sequence[Record]) -> dict[str, float]:
    """Exact match by question, averaged over seeds."""
    return {name: fmean(record.em for record in same) for name, same in _grouped(group, lambda record: record.id)}


def _paired(ours: Mapping[str, float], reference: Mapping[str, float]) -> list[float]:
    return [ours[name] - reference[name] for name in reference]


def _grouped(records: Iterable[Record], key: Callable[[Record], K]) -> list[tuple[K, list[Record]]]:
    """Records that share a key, in order of first appearance."""
    groups: dict[K, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return list(groups.items())
