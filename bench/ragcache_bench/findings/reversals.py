"""Answers that reuse gets right and full prefill wrong: full prefill is a reference, not an upper bound."""

import json
from collections.abc import Collection, Mapping, Sequence
from math import comb
from pathlib import Path
from typing import Any

from ragcache.errors import InvalidArgument
from ragcache_bench.findings.finding import Finding, shown
from ragcache_bench.metrics import bootstrap
from ragcache_bench.records import Journal, Record
from ragcache_bench.tasks import KNOWN, Example

Who = tuple[str, str, float | None]  # task, method, recompute


def at_answers(raw: Path) -> Finding:
    """Finding d, from the JSONL of a quality run's answers.

    Where one contender answered a question twice, under other circumstances, its last answer counts. The questions are
    listed with their words where the run's JSON, which says how they were drawn, lies beside.

    Raises
    ------
    InvalidArgument
        If there are no answers by full prefill.
    """
    last = {(r.task, r.id, r.method, r.recompute, r.seed): r for r in Journal(raw).records}
    if not any(r.method == "full" for r in last.values()):
        raise InvalidArgument(f"{raw} holds no answers by full prefill; make it with `ragcache bench quality`")
    return finding(list(last.values()), _asked(raw.with_suffix(".json"), {r.task for r in last.values()}))


def _asked(run: Path, tasks: Collection[str]) -> dict[str, Example]:
    """A run's generated questions by id."""
    if not run.exists():
        return {}
    about = json.loads(run.read_text(encoding="utf-8"))["meta"]
    drawn = (KNOWN[task].examples(about["n"], about["seed"]) for task in tasks if task in KNOWN)
    return {example.id: example for examples in drawn for example in examples}


def finding(records: Sequence[Record], examples: Mapping[str, Example] | None = None) -> Finding:
    """Finding d, from a quality run's answers.

    Parameters
    ----------
    records : sequence of Record
        With full prefill's answer to every question; where several seeds answer one, the first answer counts.
    examples : mapping of str to Example, optional
        Questions by id, to be listed with what was asked.
    """
    full = {(r.task, r.id): r for r in records if r.method == "full"}
    first: dict[tuple[str, str, str, float | None], Record] = {}
    for r in records:
        first.setdefault((r.task, r.id, r.method, r.recompute), r)
    groups: dict[Who, list[Record]] = {}
    for r in first.values():
        if r.method != "full" and (r.task, r.id) in full:
            groups.setdefault((r.task, r.method, r.recompute), []).append(r)
    rows = [_row(who, group, full) for who, group in groups.items()]
    by_question: dict[tuple[str, str], list[Record]] = {}
    for r in (r for group in groups.values() for r in group if r.em > full[r.task, r.id].em):
        by_question.setdefault((r.task, r.id), []).append(r)
    listed = [_case(right, full[key], (examples or {}).get(key[1])) for key, right in by_question.items()]
    wrong = [key for key, r in full.items() if r.em < 1]
    gained, lost = (sum(row[which] for row in rows) for which in ("gained", "lost"))
    because = (
        f"{len(listed)} of the {len(wrong)} questions that full prefill gets wrong (of {len(full)}) are answered "
        f"right by some row; {gained} answers gained, {lost} lost over all rows. A loss against full prefill is a net "
        "figure."
    )
    return Finding("d", "Answers right by reuse and wrong by full prefill", "FusionRAG 2601.12904, InfoFlow 2603.05353",
                   "counted", because, tuple(rows), tuple(listed))  # fmt: skip


def sign_test(gained: int, lost: int) -> float:
    """Two-sided exact binomial probability of a split at least this uneven, if gains and losses were equally likely."""
    n, k = gained + lost, min(gained, lost)
    return min(1.0, 2 * sum(comb(n, i) for i in range(k + 1)) / (1 << n))


def _row(who: Who, group: Sequence[Record], full: Mapping[tuple[str, str], Record]) -> dict[str, Any]:
    pairs = [(r.em, full[r.task, r.id].em) for r in group]
    gained, lost = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
    task, method, recompute = who
    return {
        "task": task,
        "method": method,
        "recompute": recompute,
        "n": len(pairs),
        "gained": gained,
        "lost": lost,
        "gained share": shown(bootstrap([float(a > b) for a, b in pairs])),
        "sign test p": sign_test(gained, lost),
    }


def _case(right: Sequence[Record], reference: Record, asked: Example | None) -> dict[str, Any]:
    """One question, and every row that answered it right."""
    rows = (r.method if r.recompute is None else f"{r.method} {r.recompute:g}" for r in right)
    return {
        "task": reference.task,
        "id": reference.id,
        "question": asked.question if asked else None,
        "full prefill": reference.answer,
        "reuse": right[0].answer,
        "right by": ", ".join(rows),
    }
