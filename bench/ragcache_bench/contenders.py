"""Who takes part in a benchmark: methods at budgets, and the controls and references that belong into every table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ragcache import methods
from ragcache.encode import Alone
from ragcache.method import Method
from ragcache.select import FirstTokens, RandomTokens
from ragcache_bench.references import EVIDENCE, TRUE_DEVIATION, Told
from ragcache_bench.tasks import Example

BUDGETS = (0.02, 0.05, 0.10, 0.15, 0.30)
#: Whole tokens: .028 stays below .03 from 250 tokens on.
HEADS = Method("heads", Alone(), FirstTokens(), 0.028, about="control: chunk heads only, at most 3 % of the tokens")
EXTRA: Mapping[str, Method] = {row.name: row for row in (HEADS, EVIDENCE, TRUE_DEVIATION)}
"""Rows that only benchmarks have."""
CONTROLS = ("full", "naive", "random", "epic")
REFERENCES = ("evidence", "true-deviation")
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
    """

    method: Method
    recompute: float | None = None
    seed: int = 0

    def row(self, example: Example) -> Method:
        """The method as it answers this example: a reference is told what it may know."""
        select = self.method.select
        return replace(self.method, select=select.told(example)) if isinstance(select, Told) else self.method


def contenders(
    names: Iterable[str | Method],
    budgets: Sequence[float],
    seeds: Sequence[int] = (0,),
    controls: Sequence[str] = (*CONTROLS, *REFERENCES),
) -> list[Contender]:
    """Methods times budgets, behind the controls and references; a row with a fixed cost once.

    Parameters
    ----------
    names : iterable of str or Method
        Rows of the method table, or of `EXTRA`.
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
    rows = {row.name: row for row in map(_row, [*controls, *names])}
    found: list[Contender] = []
    for row in rows.values():
        if row.recompute is None or row in _FIXED:
            found.append(Contender(row))
        else:
            found += [one for budget in budgets for one in _seeded(row, budget, seeds)]
    return found


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


def _seeded(row: Method, budget: float, seeds: Sequence[int]) -> Iterator[Contender]:
    row.budget(budget)  # refuses what is no share before hours are spent
    if not isinstance(row.select, RandomTokens):
        yield Contender(row, budget)
        return
    for seed in seeds:
        yield Contender(replace(row, select=RandomTokens(seed)), budget, seed)
