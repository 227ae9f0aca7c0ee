"""Who takes part in a benchmark: methods at budgets, and the controls that belong into every table."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ragcache import methods
from ragcache.encode import Alone
from ragcache.methods import Method
from ragcache.select import FirstTokens, RandomTokens

CONTROLS = ("full", "naive", "random", "epic", "first4")
#: At a share of .99 everything that has a score is taken: the first 4 tokens of each chunk, and no other.
FIRST4 = Method("first4", Alone(), FirstTokens(tokens=4), 0.99, about="the first 4 tokens of every chunk, nothing else")


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
        Of random selection; the answers of several seeds are pooled.
    """

    method: Method
    recompute: float | None = None
    seed: int = 0


def contenders(
    names: Iterable[str | Method],
    budgets: Sequence[float],
    seeds: Sequence[int] = (0,),
    controls: Sequence[str] = CONTROLS,
) -> list[Contender]:
    """Methods times budgets, behind the controls; a row with a fixed cost once.

    Parameters
    ----------
    names : iterable of str or Method
        Rows of the method table, or "first4".
    budgets : sequence of float
        Shares to recompute.
    seeds : sequence of int
        Random selection runs once for each.
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
        if row.recompute is None or row is FIRST4:
            found.append(Contender(row))
        else:
            found += [one for budget in budgets for one in _seeded(row, budget, seeds)]
    return found


def _row(name: str | Method) -> Method:
    return FIRST4 if name == FIRST4.name else methods.find(name)


def _seeded(row: Method, budget: float, seeds: Sequence[int]) -> Iterator[Contender]:
    row.budget(budget)  # refuses what is no share before hours are spent
    if not isinstance(row.select, RandomTokens):
        yield Contender(row, budget)
        return
    for seed in seeds:
        yield Contender(replace(row, select=RandomTokens(seed)), budget, seed)
