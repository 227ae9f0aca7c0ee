"""FusionRAG's ablation, run again: every question over chunks fused with these or those others, few or many."""

from dataclasses import dataclass

from ragcache.encode import Encoder, Fused, Prefixed
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.select import KeyDeviation, QuestionAttention, Selector
from ragcache_bench.contenders import Contender
from ragcache_bench.fused_neighbours import KINDS, Kind
from ragcache_bench.runs import Bench, Tasks

COUNTS = (2, 5, 10, 15)
BUDGETS = (0.0, 0.05)
LADDER = 0.15  # FusionRAG's budget for telling encoding and selector apart
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
    def contender(self) -> Contender:
        """Who answers so; a method of that name."""
        if self.company in ("full", "naive"):
            return Contender(METHODS[self.company])
        encoder: Encoder = Fused(self.neighbours) if self.neighbours else Prefixed()
        name = f"{self.company} {self.neighbours} {self.selector} {self.recompute:g}"
        return Contender(Method(name, encoder, SELECTORS.get(self.selector), self.recompute), self.recompute)


FULL, NAIVE, PREFIXED = Cell("full"), Cell("naive"), Cell("none")
PLAIN = (
    FULL, NAIVE, PREFIXED, Cell("none", 0, "question", 0.05),
    Cell("none", 0, "question", LADDER), Cell("none", 0, "deviation", LADDER),
)  # fmt: skip


def with_neighbours(kind: Kind) -> tuple[Cell, ...]:
    """The cells of one choice of neighbours."""
    grid = [Cell(kind, n, "question" if r else "", r) for n in COUNTS for r in BUDGETS]
    return (*grid, *(Cell(kind, 10, selector, LADDER) for selector in SELECTORS))


@dataclass(frozen=True)
class Given:
    """A cell's answers, question by question: exact match, and the share of selectable tokens computed."""

    em: list[float]
    charged: list[float]


Scores = dict[str, dict[Cell, Given]]  # by task


def scores(bench: Bench, tasks: Tasks) -> Scores:
    """Every question in every cell; each choice of neighbours has temporary indexes of its own."""
    found: Scores = {task: {} for task in tasks}
    for kind in (None, *KINDS):
        cells = with_neighbours(kind) if kind else PLAIN
        records = bench.answers(tasks, [cell.contender for cell in cells], kind or "similar")
        for task in tasks:
            for cell in cells:
                name = cell.contender.method.name
                of = [record for record in records if (record.task, record.method) == (task, name)]
                found[task][cell] = Given([r.em for r in of], [r.charged or 0.0 for r in of])
    return found
