"""How often chunks that are neighbours are retrieved together: what FusionRAG rests on (2601.12904, figure 7a)."""

from collections.abc import Mapping, Sequence
from math import comb
from statistics import fmean
from typing import Any

import numpy as np

from ragcache.index.neighbours import find_neighbours
from ragcache.retrieve import Embedder
from ragcache_bench.findings.finding import Finding, Verdict, shown
from ragcache_bench.metrics import bootstrap
from ragcache_bench.runs import Bench, Tasks
from ragcache_bench.tasks import Example

COUNTS = (2, 5, 10, 15)
_PAPER = {2: 0.5, 10: 0.8}  # the share that it exceeds, by number of neighbours


def at_neighbours(bench: Bench, tasks: Tasks) -> Finding:
    """Finding l: the share of retrieved chunks of which a neighbour was retrieved too, by number of neighbours.

    As many chunks are retrieved for a question, by their vectors from all chunks of the task, as its prompt has.
    """
    found = {task: _together(bench.embedder, examples) for task, examples in tasks.items()}
    pooled = {n: bootstrap([one[n] for seen in found.values() for one in seen]) for n in COUNTS}
    held = [pooled[n].low > least for n, least in _PAPER.items()]
    verdict: Verdict = "confirmed" if all(held) else "partly" if any(held) else "not confirmed"
    because = (
        f"of the chunks retrieved for a question, {shown(pooled[2])} have one of their 2 nearest among the others, and "
        f"{shown(pooled[10])} one of 10. Confirmed above .5 and .8, partly above one of the two; behind each stands "
        "what as many chunks drawn at random come to."
    )
    rows = tuple(_row(task, tasks[task], seen) for task, seen in found.items())
    return Finding("l", "Neighbours are retrieved together", "FusionRAG 2601.12904", verdict, because, rows)


def _together(embedder: Embedder, examples: Sequence[Example]) -> list[Mapping[int, float]]:
    """By question and number of neighbours."""
    texts = list(dict.fromkeys(text for example in examples for text in example.chunks))
    vectors, asked = embedder.embed(texts), embedder.embed([example.question for example in examples])
    near = find_neighbours(vectors, texts, texts, max(COUNTS))
    seen: list[Mapping[int, float]] = []
    for example, scores in zip(examples, asked @ vectors.T, strict=True):  # (chunks,)
        retrieved = set(np.argsort(-scores, kind="stable")[: len(set(example.chunks))].tolist())
        seen.append({n: fmean(not retrieved.isdisjoint(near[one][:n]) for one in retrieved) for n in COUNTS})
    return seen


def _row(task: str, examples: Sequence[Example], seen: Sequence[Mapping[int, float]]) -> dict[str, Any]:
    others = len({text for example in examples for text in example.chunks}) - 1
    row: dict[str, Any] = {"task": task, "n": len(seen), "chunks": others + 1}
    for n in COUNTS:
        chance = fmean(_chance(others, example, n) for example in examples)
        row[f"{n} neighbours"] = f"{shown(bootstrap([one[n] for one in seen]))}; {chance:.3f}"
    return row


def _chance(others: int, example: Example, n: int) -> float:
    """That one of `n` chunks drawn from the others is among those that are retrieved with a chunk."""
    beside = len(set(example.chunks)) - 1
    return 1 - comb(others - beside, n) / comb(others, n) if n <= others else float(beside > 0)
