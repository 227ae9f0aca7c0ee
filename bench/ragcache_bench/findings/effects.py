"""What fusing and selecting are worth, told apart; and whose company it takes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Self

from ragcache_bench.findings.finding import Finding, Verdict, shown
from ragcache_bench.findings.fusion import (
    BUDGETS,
    COUNTS,
    FULL,
    LADDER,
    NAIVE,
    PREFIXED,
    SELECTORS,
    Cell,
    Given,
    Scores,
    scores,
)
from ragcache_bench.fused_neighbours import KINDS, Kind
from ragcache_bench.metrics import Interval, bootstrap
from ragcache_bench.runs import Bench, Tasks

_TEN: dict[Kind, str] = {"similar": "ten similar chunks", "document": "the ten before it in its document"}


@dataclass(frozen=True)
class Effects:
    """What fusing and selecting are worth, question by question.

    Two encodings times three ways to select (nothing, CacheBlend's, FusionRAG's at `LADDER`). Fusing is worth the mean
    over the three of fused minus not fused; selecting the mean over both encodings and both selectors of what is
    answered with one minus what is answered without.
    """

    fusing: list[float]
    selecting: list[float]

    @classmethod
    def of(cls, cells: Mapping[Cell, Given], kind: str) -> Self:
        """Of ten chunks of that kind."""
        apart, fused = ([cells[cell].em for cell in _ways(*company)] for company in (("none", 0), (kind, 10)))
        fusing = [fmean(f - a for f, a in zip(*pair, strict=True)) for pair in _by_question(fused, apart)]
        selecting = [fmean(s - way[0] for way in pair for s in way[1:]) for pair in _by_question(fused, apart)]
        return cls(fusing, selecting)

    @property
    def difference(self) -> Interval:
        """Fusing less selecting."""
        return bootstrap([a - b for a, b in zip(self.fusing, self.selecting, strict=True)])


def at_fusion(bench: Bench, tasks: Tasks) -> list[Finding]:
    """Findings c1 and c2: what the encoding is worth, and whose company it takes."""
    found = scores(bench, tasks)
    return [ladder_finding(found), ablation_finding(found)]


def ladder_finding(found: Scores) -> Finding:
    """Finding c1: what fusing with ten chunks is worth, and what a selector is."""
    kinds: tuple[Kind, ...] = ("similar", "document")
    effects = {kind: {task: Effects.of(cells, kind) for task, cells in found.items()} for kind in kinds}
    pooled = {kind: _pooled(list(by_task.values())) for kind, by_task in effects.items()}
    rows = [_worth(task, kind, found[task], effects[kind][task]) for kind in kinds for task in found]
    rows += [_worth("all", kind, _all(found), effect) for kind, effect in pooled.items()]
    won = {kind: bootstrap(e.fusing).low > 0 and e.difference.low > 0 for kind, e in pooled.items()}
    charged = {s: fmean(x for cells in found.values() for x in cells[Cell("none", 0, s, LADDER)].charged)
               for s in SELECTORS}  # fmt: skip
    because = (
        "; ".join(f"fusing with {_TEN[kind]} is worth {shown(bootstrap(e.fusing))}, a selector at r = {LADDER} "
                  f"{shown(bootstrap(e.selecting))}" for kind, e in pooled.items())
        + f" (charged: the question's attention {charged['question']:.2f}, key deviation {charged['deviation']:.2f}). "
        "Confirmed if fusing with similar chunks is worth something and more; partly if only with the document's own."
    )  # fmt: skip
    verdict: Verdict = "confirmed" if won["similar"] else "partly" if won["document"] else "not confirmed"
    source = "FusionRAG 2601.12904 (+21 to +49 against +3 to +18 points)"
    return Finding("c1", "Fused encoding is worth more than the selector", source, verdict, because, tuple(rows))


def ablation_finding(found: Scores) -> Finding:
    """Finding c2: whose company helps, and how much of it."""
    rows = [_row(task, cells, kind, r) for task, cells in found.items() for kind in KINDS for r in BUDGETS]
    gains = {kind: _gain(found, Cell(kind, 10), PREFIXED) for kind in KINDS}
    beaten = [_gain(found, Cell("similar", 10), Cell(kind, 10)).low > 0 for kind in ("random", "itself")]
    verdict: Verdict = "not confirmed"
    if gains["similar"].low > 0:
        verdict = "confirmed" if all(beaten) else "partly"
    because = (
        "what ten neighbours add at r = 0 over none, on all tasks: "
        + ", ".join(f"{kind} {shown(gain)}" for kind, gain in gains.items())
        + ". Confirmed if similar ones add something, and more than random ones and the chunk itself."
    )
    return Finding("c2", "Similar neighbours repair reuse at r = 0; about ten are enough", "FusionRAG 2601.12904",
                   verdict, because, tuple(rows))  # fmt: skip


def _ways(company: str, count: int) -> list[Cell]:
    """Nothing selected, then each selector."""
    return [Cell(company, count), *(Cell(company, count, selector, LADDER) for selector in SELECTORS)]


def _by_question(*scores: Sequence[Sequence[float]]) -> Iterator[tuple[tuple[float, ...], ...]]:
    """From (way, question) each to one tuple of ways per question."""
    return zip(*(zip(*ways, strict=True) for ways in scores), strict=True)


def _pooled(effects: Sequence[Effects]) -> Effects:
    return Effects([x for e in effects for x in e.fusing], [x for e in effects for x in e.selecting])


def _all(found: Scores) -> dict[Cell, Given]:
    """Every task's answers as one task's."""
    cells = next(iter(found.values()))
    return {
        cell: Given(*([x for task in found.values() for x in getattr(task[cell], name)] for name in ("em", "charged")))
        for cell in cells
    }


def _worth(task: str, kind: str, cells: Mapping[Cell, Given], effects: Effects) -> dict[str, Any]:
    names = ("no selector", *(f"{selector} {LADDER}" for selector in SELECTORS))
    apart, fused = ([fmean(cells[cell].em) for cell in _ways(*company)] for company in (("none", 0), (kind, 10)))
    return {
        "task": task,
        "neighbours": f"10 {kind}",
        "n": len(effects.fusing),
        **dict(zip(names, apart, strict=True)),
        **{f"fused, {name}": score for name, score in zip(names, fused, strict=True)},
        "full": fmean(cells[FULL].em),
        "fusing is worth": shown(bootstrap(effects.fusing)),
        "a selector is worth": shown(bootstrap(effects.selecting)),
        "difference": shown(effects.difference),
    }


def _gain(found: Scores, better: Cell, base: Cell) -> Interval:
    return bootstrap([a - b for cells in found.values() for a, b in zip(cells[better].em, cells[base].em, strict=True)])


def _row(task: str, cells: Mapping[Cell, Given], kind: Kind, recompute: float) -> dict[str, Any]:
    selector = "question" if recompute else ""
    base, ten = (Cell(company, n, selector, recompute) for company, n in (("none", 0), (kind, 10)))
    return {
        "task": task,
        "neighbours": kind,
        "recompute": recompute,
        "n": len(cells[base].em),
        "full": fmean(cells[FULL].em),
        "naive": fmean(cells[NAIVE].em),
        "0": fmean(cells[base].em),
        **{str(n): fmean(cells[Cell(kind, n, selector, recompute)].em) for n in COUNTS},
        "10 - 0": shown(_gain({task: dict(cells)}, ten, base)),
    }
