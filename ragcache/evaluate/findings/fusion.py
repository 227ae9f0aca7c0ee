"""Is a fused encoding worth more than the selector, and whose company does it take? FusionRAG's ablation, run again."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

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


Scores = dict[str, dict[Cell, list[float]]]  # exact match by task and cell, question by question


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
    ) -> dict[Cell, list[float]]:
        missing = [cell for cell in cells if any(self._parts(pool, e, cell) not in self.notes for e in examples)]
        if missing:
            with tempfile.TemporaryDirectory(prefix="ragcache-bench-") as folder:
                store = LocalStore(Path(folder) / "kv", durable=False)
                with Index(folder, self.reader, store=store) as index:
                    self._ask(task, index, examples, pool, kind, missing)
        return {cell: [self.notes[self._parts(pool, example, cell)] for example in examples] for cell in cells}

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

    def _answer(self, engine: Engine, ids: Mapping[str, str], example: Example, cell: Cell) -> float:
        chunks = engine.index.chunks([ids[text] for text in example.chunks])
        share = None if cell.company in _REFERENCES else cell.recompute
        given = engine.answer(example.question, chunks, method=cell.method, recompute=share, sampling=self.sampling)
        return exact_match(given.text, example.answers)

    def _parts(self, pool: Pool, example: Example, cell: Cell) -> tuple[str, ...]:
        made = (self.reader.fingerprint, self.embedder.name, repr(self.sampling), repr(cell), pool.digest)
        return ("fusion", *made, example.id, example.question, *example.chunks, *example.answers)


def ladder_finding(found: Scores) -> Finding:
    """Finding c1, at one budget: what fusing adds under CacheBlend's selector, then what FusionRAG's selector adds."""
    rows = [_step(task, cells, kind) for kind in ("similar", "document") for task, cells in found.items()]
    pooled = {kind: _pooled([_steps(cells, kind) for cells in found.values()]) for kind in ("similar", "document")}
    rows += [_step_row("all", kind, steps) for kind, steps in pooled.items()]
    ahead = {kind: bootstrap([a - b for a, b in zip(*steps, strict=True)]) for kind, steps in pooled.items()}
    verdict: Verdict = "not confirmed"
    if ahead["similar"].low > 0:
        verdict = "confirmed"
    elif ahead["document"].low > 0:
        verdict = "partly"
    because = (
        f"at r = {LADDER}, what fusing with ten similar chunks adds, less what the selector adds on it, is "
        f"{shown(ahead['similar'])}; with the document's own chunks {shown(ahead['document'])} "
        "(confirmed if above 0 for similar chunks, partly if for the document's own)."
    )
    source = "FusionRAG 2601.12904 (+21 to +49 against +3 to +18 points)"
    return Finding("c1", "Fused encoding is worth more than the selector", source, verdict, because, tuple(rows))


def ablation_finding(found: Scores) -> Finding:
    """Finding c2: whose company helps, and how much of it."""
    rows = [_row(task, cells, cell) for task, cells in found.items() for cell in cells]
    gains = {kind: _gain(found, Cell(kind, 10), PREFIXED) for kind in KINDS}
    beaten = [_gain(found, Cell("similar", 10), Cell(kind, 10)).low > 0 for kind in ("random", "itself")]
    verdict: Verdict = "not confirmed"
    if gains["similar"].low > 0:
        verdict = "confirmed" if all(beaten) else "partly"
    because = (
        "what ten neighbours add at r = 0 over none, on all tasks: "
        + ", ".join(f"{kind} {shown(gain)}" for kind, gain in gains.items())
        + " (confirmed if similar ones add something and more than random ones and the chunk itself)."
    )
    return Finding("c2", "Similar neighbours repair reuse at r = 0; about ten are enough", "FusionRAG 2601.12904",
                   verdict, because, tuple(rows))  # fmt: skip


def _steps(cells: Mapping[Cell, Sequence[float]], kind: str) -> tuple[list[float], list[float]]:
    """What fusing adds, and what the selector adds after it, by question."""
    before = cells[Cell("none", 0, "deviation", LADDER)]
    fused, both = (cells[Cell(kind, 10, selector, LADDER)] for selector in ("deviation", "question"))
    return ([b - a for a, b in zip(before, fused, strict=True)], [b - a for a, b in zip(fused, both, strict=True)])


def _pooled(steps: Sequence[tuple[list[float], list[float]]]) -> tuple[list[float], list[float]]:
    return ([x for one, _ in steps for x in one], [x for _, one in steps for x in one])


def _step(task: str, cells: Mapping[Cell, Sequence[float]], kind: str) -> dict[str, Any]:
    return _step_row(task, kind, _steps(cells, kind))


def _step_row(task: str, kind: str, steps: tuple[list[float], list[float]]) -> dict[str, Any]:
    fusing, selecting = steps
    return {
        "task": task,
        "neighbours": f"10 {kind}",
        "n": len(fusing),
        "fusing adds": shown(bootstrap(fusing)),
        "the selector adds": shown(bootstrap(selecting)),
        "difference": shown(bootstrap([a - b for a, b in zip(fusing, selecting, strict=True)])),
    }


def _gain(found: Scores, better: Cell, base: Cell) -> Interval:
    return bootstrap([a - b for cells in found.values() for a, b in zip(cells[better], cells[base], strict=True)])


def _row(task: str, cells: Mapping[Cell, Sequence[float]], cell: Cell) -> dict[str, Any]:
    lost = bootstrap([a - b for a, b in zip(cells[cell], cells[FULL], strict=True)])
    floor = fmean(cells[NAIVE]) - fmean(cells[FULL])
    return {
        "task": task,
        "neighbours": cell.company,
        "count": cell.neighbours,
        "selector": cell.selector or None,
        "recompute": cell.recompute,
        "n": len(cells[cell]),
        "score": fmean(cells[cell]),
        "score - full": shown(lost),
        # a loss below five points is within the noise of so few questions, and the ratio is anything
        "recovered": 1 - lost.mean / floor if floor < -0.05 else None,
    }
