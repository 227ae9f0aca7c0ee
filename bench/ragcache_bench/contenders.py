"""Who takes part in a benchmark: methods at budgets, and the controls and references that belong into every table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ragcache import methods
from ragcache.encode import Alone
from ragcache.errors import UntunedReader
from ragcache.method import Method
from ragcache.model.reader import Reader
from ragcache.model.tuning import Tuning
from ragcache.select import FirstTokens, RandomTokens
from ragcache_bench.references import EVIDENCE, TRUE_DEVIATION, Told
from ragcache_bench.tasks import Example

BUDGETS = (0.02, 0.05, 0.10, 0.15, 0.30)
#: Whole tokens: .028 stays below .03 from 250 tokens on.
HEADS = Method("heads", Alone(), FirstTokens(), 0.028, about="control: chunk heads only, at most 3 % of the tokens")
EXTRA: Mapping[str, Method] = {row.name: row for row in (HEADS, EVIDENCE, TRUE_DEVIATION)}
"""Rows that only benchmarks have."""
CONTROLS = ("full", "naive", "random", "epic")
TITLE = "+title"
"""Behind a row's name: its chunks have their title as a first line, where a question knows titles."""
TITLED = ("full+title", "naive+title", "auto+title")
REFERENCES = ("evidence", "true-deviation")
UNASKED = (*CONTROLS, *REFERENCES, *TITLED)
"""Rows that take part in every table of answers."""
_FIXED = (HEADS, EVIDENCE, TRUE_DEVIATION)  # their one share is their own


@dataclass(frozen=True)
class Contender:
    """A method with its budget.

    Attributes
    ----------
    method : Method
        A row of the method table, or one's own.
    recompute : float or None
        Nominal share; None for rows with a fixed cost.
    seed : int
        Of random selection; several seeds take turns over the questions.
    titled : bool
        Whether its chunks have their title as a first line.
    """

    method: Method
    recompute: float | None = None
    seed: int = 0
    titled: bool = False

    @property
    def name(self) -> str:
        """Of its rows in a table."""
        return self.method.name + TITLE * self.titled

    def row(self, example: Example) -> Method:
        """The method as it answers this example: a reference is told what it may know."""
        select = self.method.select
        return replace(self.method, select=select.told(example)) if isinstance(select, Told) else self.method


def contenders(
    names: Iterable[str | Method],
    budgets: Sequence[float],
    seeds: Sequence[int] = (0,),
    controls: Sequence[str] = UNASKED,
) -> list[Contender]:
    """Methods times budgets, behind the controls and references; a row with a fixed cost once.

    Controls over chunks with a title line take part as they are; named as a method, such a row takes all budgets.

    Parameters
    ----------
    names : iterable of str or Method
        Rows of the method table, or of `EXTRA`; with `TITLE` behind it, a row over chunks with a title line.
    budgets : sequence of float
        Shares to recompute.
    seeds : sequence of int
        Of random selection, a contender for each.
    controls : sequence of str
        Rows that take part unasked.

    Raises
    ------
    UnknownMethod
        If a name is no row.
    InvalidArgument
        If a budget is no share.
    """
    found: dict[tuple[str, float | None, int], Contender] = {}
    unasked = [(name, () if name.endswith(TITLE) else budgets) for name in controls]
    for name, shares in (*unasked, *((name, budgets) for name in names)):
        titled = isinstance(name, str) and name.endswith(TITLE)
        row = _row(name.removesuffix(TITLE) if isinstance(name, str) else name)
        for one in _at_budgets(row, shares, seeds):
            who = replace(one, titled=titled)
            key = who.name, who.recompute, who.seed
            found[key] = who if isinstance(name, Method) else found.get(key, who)  # one's own takes a control's place
    return list(found.values())


def with_defaults(field: Iterable[Contender]) -> list[Contender]:
    """The same, and at their own share the default and those rows that recompute nothing unless asked to."""
    found: list[Contender] = []
    for who in field:
        itself = replace(who, recompute=who.method.recompute)
        if (who.method.recompute == 0 or who.name == methods.DEFAULT_METHOD) and itself not in found:
            found.append(itself)
        if who not in found:
            found.append(who)
    return found


def left_out(field: Iterable[Contender], tuning: Tuning | None = None) -> list[str]:
    """Rows of the method table that do not take part, though a model that was tuned so could answer by them."""
    there = {who.name for who in field}
    return [name for name, row in methods.METHODS.items() if name not in there and row.suits(tuning)]


def untuned(rows: Iterable[Method], reader: Reader) -> dict[str, str]:
    """Rows by which a reader cannot answer, as it was tuned or was not, each with the reason."""
    reasons: dict[str, str] = {}
    for row in rows:
        try:
            row.check_tuning(reader.tuning, reader.name)
        except UntunedReader as error:
            reasons[row.name] = str(error)
    return reasons


def in_turn(field: Sequence[Contender], number: int) -> list[Contender]:
    """Who answers question `number`; of several seeds only one.

    The order rotates, and turns round with every other question: each is first, and before each other, equally often.
    """
    seeds = list(dict.fromkeys(who.seed for who in field if isinstance(who.method.select, RandomTokens)))
    seed = seeds[number % len(seeds)] if seeds else 0
    first = number // 2 % len(field)
    turned = [*field[first:], *field[:first]]
    if number % 2:
        turned.reverse()
    return [who for who in turned if who.seed == seed or not isinstance(who.method.select, RandomTokens)]


def _row(name: str | Method) -> Method:
    return EXTRA[name] if isinstance(name, str) and name in EXTRA else methods.find_method(name)


def _at_budgets(row: Method, budgets: Sequence[float], seeds: Sequence[int]) -> Iterator[Contender]:
    if row.recompute is None or row in _FIXED:
        yield Contender(row)
        return
    for budget in budgets or (row.recompute,):
        yield from _seeded(row, budget, seeds)


def _seeded(row: Method, budget: float, seeds: Sequence[int]) -> Iterator[Contender]:
    row.budget(budget)  # refuses what is no share before hours are spent
    if not isinstance(row.select, RandomTokens):
        yield Contender(row, budget)
        return
    for seed in seeds:
        yield Contender(replace(row, select=RandomTokens(seed)), budget, seed)
