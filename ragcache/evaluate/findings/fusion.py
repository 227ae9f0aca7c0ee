"""Is a fused encoding worth more than the selector, and whose company does it take? FusionRAG's ablation, run again."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Self

from ragcache.encode import Encoder, Fused, Prefixed
from ragcache.engine import Engine
from ragcache.evaluate.findings.company import KINDS, Kind, Pool, documents
from ragcache.evaluate.findings.finding import Finding, Verdict, shown
from ragcache.evaluate.metrics import Interval, bootstrap, exact_match
from ragcache.evaluate.notes import Notes
from ragcache.evaluate.runs import Progress
from ragcache.evaluate.tasks import Example
from ragcache.index import Index
from ragcache.methods import METHODS, Method
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.retrieve import Embedder
from ragcache.select import KeyDeviation, QuestionAttention, Selector
from ragcache.store import LocalStore

COUNTS = (2, 5, 10, 15)
BUDGETS = (0.0, 0.05)
LADDER = 0.15  # FusionRAG's budget for telling encoding and selector apart
_REFERENCES = ("full", "naive")
_SELECTORS: dict[str, Selector] = {
    "question": QuestionAttention(layers="last", reduce="sum"),
    "deviation": KeyDeviation(layer=1),
}


@dataclass(frozen=True)
class Cell:
    """One way of answering.

    Attributes
    ----------
    company : str
        "full" prefill, "naive" reuse, "none" (behind the prefix only), or whom the chunks were computed behind.
    neighbours : int
        How many of them.
    selector : str
        "question": FusionRAG's; "deviation": CacheBlend's; "" where nothing is recomputed.
    recompute : float
        Share.
    """

    company: str
    neighbours: int = 0
    selector: str = ""
    recompute: float = 0.0

    @property
    def method(self) -> Method:
        """The row to answer with."""
        if self.company in _REFERENCES:
            return METHODS[self.company]
        return Method("cell", self.encoder, _SELECTORS.get(self.selector), self.recompute)

    @property
    def encoder(self) -> Encoder | None:
        """What must be stored."""
        if self.company in _REFERENCES:
            return METHODS[self.company].encode
        return Fused(self.neighbours) if self.neighbours else Prefixed()


FULL, NAIVE, PREFIXED = Cell("full"), Cell("naive"), Cell("none")
PLAIN = (
    FULL, NAIVE, PREFIXED, Cell("none", 0, "question", 0.05),
    Cell("none", 0, "question", LADDER), Cell("none", 0, "deviation", LADDER),
)  # fmt: skip


def with_company(kind: Kind) -> tuple[Cell, ...]:
    """The cells of one choice of neighbours."""
    grid = [Cell(kind, n, "question" if r else "", r) for n in COUNTS for r in BUDGETS]
    return (*grid, *(Cell(kind, 10, selector, LADDER) for selector in _SELECTORS))


@dataclass(frozen=True)
class Given:
    """A cell's answers, question by question: exact match, and the share of selectable tokens computed."""

    em: list[float]
    charged: list[float]


Scores = dict[str, dict[Cell, Given]]  # by task


@dataclass(frozen=True)
class Ablation:
    """Answers every question in every cell; each choice of neighbours has a temporary index of its own.

    Attributes
    ----------
    reader : Reader
        Who answers.
    embedder : Embedder
        Finds similar chunks.
    notes : Notes
        What was answered already.
    sampling : Sampling
        Greedy, with the most tokens of an answer.
    progress : callable
        Called after each step.
    """

    reader: Reader
    embedder: Embedder
    notes: Notes
    sampling: Sampling
    progress: Progress

    def measure(self, tasks: Mapping[str, Sequence[Example]]) -> Scores:
        """Exact match of every cell on every question."""
        found: Scores = {}
        for task, examples in tasks.items():
            pool = Pool(documents(examples), self.embedder)
            found[task] = self._measured(task, examples, pool, None, PLAIN)
            for kind in KINDS:
                found[task] |= self._measured(task, examples, pool, kind, with_company(kind))
        return found

    def _measured(
        self, task: str, examples: Sequence[Example], pool: Pool, kind: Kind | None, cells: Sequence[Cell]
    ) -> dict[Cell, Given]:
        missing = [cell for cell in cells if any(self._parts(pool, e, cell) not in self.notes for e in examples)]
        if missing:
            with tempfile.TemporaryDirectory(prefix="ragcache-bench-") as folder:
                store = LocalStore(Path(folder) / "kv", durable=False)
                with Index(folder, self.reader, store=store) as index:
                    self._ask(task, index, examples, pool, kind, missing)
        kept = {cell: [self.notes[self._parts(pool, example, cell)] for example in examples] for cell in cells}
        return {cell: Given([em for em, _ in pairs], [share for _, share in pairs]) for cell, pairs in kept.items()}

    def _ask(
        self,
        task: str,
        index: Index,
        examples: Sequence[Example],
        pool: Pool,
        kind: Kind | None,
        cells: Sequence[Cell],
    ) -> None:
        ids = self._fill(task, index, pool, kind, cells)
        engine = Engine(self.reader, index)
        for done, example in enumerate(examples, 1):
            for cell in cells:
                ask = partial(self._answer, engine, ids, example, cell)
                self.notes.recall(self._parts(pool, example, cell), ask)
            self.progress(f"{task}, {kind or 'plain'}: answer", done, len(examples))

    def _fill(
        self, task: str, index: Index, pool: Pool, kind: Kind | None, cells: Iterable[Cell]
    ) -> dict[str, str]:
        """Put the pool into the index, encoded as the cells want it; ids by text."""
        ids: dict[str, str] = {}
        for number, texts in enumerate(pool.documents):
            source = f"document {number}"
            index.put(source, "", [(text, 0, len(text)) for text in texts], {})
            document = index.catalog.document_by_source(source)
            ids |= {chunk.text: chunk.id for chunk in index.catalog.chunks_of(document.id if document else "")}
        near = pool.company(kind, ids) if kind else None
        for encoder in {e.recipe: e for e in (cell.encoder for cell in cells) if e is not None}.values():
            for done, _ in enumerate(index.encode(encoder, neighbours=near), 1):
                self.progress(f"{task}, {kind or 'plain'}: encode {encoder.recipe}", done, len(ids))
        return ids

    def _answer(self, engine: Engine, ids: Mapping[str, str], example: Example, cell: Cell) -> list[float]:
        chunks = engine.index.chunks([ids[text] for text in example.chunks])
        share = None if cell.company in _REFERENCES else cell.recompute
        given = engine.answer(example.question, chunks, method=cell.method, recompute=share, sampling=self.sampling)
        return [exact_match(given.text, example.answers), given.report.charged]

    def _parts(self, pool: Pool, example: Example, cell: Cell) -> tuple[str, ...]:
        made = (self.reader.fingerprint, self.embedder.name, repr(self.sampling), repr(cell), pool.digest)
        return ("fusion", *made, example.id, example.question, *example.chunks, *example.answers)


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


def ladder_finding(found: Scores) -> Finding:
    """Finding c1: what fusing with ten chunks is worth, and what a selector is."""
    kinds: tuple[Kind, ...] = ("similar", "document")
    effects = {kind: {task: Effects.of(cells, kind) for task, cells in found.items()} for kind in kinds}
    pooled = {kind: _pooled(list(by_task.values())) for kind, by_task in effects.items()}
    rows = [_worth(task, kind, found[task], effects[kind][task]) for kind in kinds for task in found]
    rows += [_worth("all", kind, _all(found), effect) for kind, effect in pooled.items()]
    won = {kind: bootstrap(e.fusing).low > 0 and e.difference.low > 0 for kind, e in pooled.items()}
    charged = {s: fmean(x for cells in found.values() for x in cells[Cell("none", 0, s, LADDER)].charged)
               for s in _SELECTORS}  # fmt: skip
    because = (
        "; ".join(f"fusing with ten {kind} chunks is worth {shown(bootstrap(e.fusing))}, a selector at r = {LADDER} "
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
    return [Cell(company, count), *(Cell(company, count, selector, LADDER) for selector in _SELECTORS)]


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
    names = ("no selector", *(f"{selector} {LADDER}" for selector in _SELECTORS))
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
