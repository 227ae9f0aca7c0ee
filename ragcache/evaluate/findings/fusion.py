"""FusionRAG's ablation, run again: every question over chunks fused with these or those others, few or many."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ragcache.encode import Encoder, Fused, Prefixed
from ragcache.engine import Engine
from ragcache.evaluate.findings.company import KINDS, Kind, Pool, documents
from ragcache.evaluate.metrics import exact_match
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
SELECTORS: dict[str, Selector] = {
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
        return Method("cell", self.encoder, SELECTORS.get(self.selector), self.recompute)

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
    return (*grid, *(Cell(kind, 10, selector, LADDER) for selector in SELECTORS))


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
