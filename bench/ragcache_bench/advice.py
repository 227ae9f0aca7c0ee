"""Who answers one's own questions, who cannot and what would let them, and what the answers advise."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ragcache import methods
from ragcache.errors import ingest
from ragcache.index.settings import lacks_encoding
from ragcache.method import Method
from ragcache.rag import RagCache
from ragcache_bench.contenders import Contender, contenders, untuned
from ragcache_bench.lending import lendable
from ragcache_bench.recommend import SAFE, Recommendation, recommend
from ragcache_bench.table import Row

CONTROLS = ("full", "naive", "random")


@dataclass(frozen=True)
class Lacking:
    """KV that an index does not hold: the rows that load it, its recipe, and the command that makes it to stay."""

    methods: tuple[str, ...]
    encoding: str
    command: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"methods": list(self.methods), "encoding": self.encoding, "command": self.command}


@dataclass(frozen=True)
class LineUp:
    """Who answers one's own questions.

    Attributes
    ----------
    field : tuple of Contender
        Full prefill, the index's method at its own share, the controls, and the others that it holds KV for.
    made : tuple of Lacking
        What is made for the run alone, since the index lacks it.
    left_out : tuple of Lacking
        Rows that do not take part, since the index lacks what they load.
    untuned : mapping of str to str
        Rows that do not take part since the model was not tuned for them, each with the reason.
    """

    field: tuple[Contender, ...]
    made: tuple[Lacking, ...]
    left_out: tuple[Lacking, ...]
    untuned: Mapping[str, str]

    def about(self) -> dict[str, Any]:
        """For a result's meta."""
        return {
            "made_for_this_run": [one.as_dict() for one in self.made],
            "left_out": [one.as_dict() for one in self.left_out],
            "untuned": dict(self.untuned),
        }

    def notes(self) -> list[str]:
        """The same for people."""
        here, or_named = {one.encoding for one in self.made}, ", or name them with --methods to have it made for a run"
        made = [
            f"{one.encoding} KV was made for this run only, for {', '.join(one.methods)}; to keep it, run "
            f"`{one.command}`"
            for one in self.made
        ]
        left = [
            f"left out, since the index holds no {one.encoding} KV: {', '.join(one.methods)}; to add it, run "
            f"`{one.command}`{or_named if one.encoding in here else ''}"
            for one in self.left_out
        ]
        return [*made, *left, *(f"left out: {reason}" for reason in self.untuned.values())]

    def advise(self, table: Sequence[Row], safe: float = SAFE) -> Recommendation:
        """What a table of these contenders' answers says to do."""
        found = recommend(table, safe)
        lacking = [one for one in self.made if found.row and found.row.method in one.methods]
        if not lacking:
            return found
        first = f"The index does not hold its KV yet; first run `{lacking[0].command}`"
        return replace(found, words=f"{found.words}. {first}")


def line_up(
    rag: RagCache, names: Sequence[str | Method], budgets: Sequence[float], seeds: Sequence[int], *, named: bool = False
) -> LineUp:
    """Who answers, at which shares; 0 is always among them, once for all rows that then do the same.

    Parameters
    ----------
    rag : RagCache
        The index.
    names : sequence of str or Method
        Rows to test beside its own method and the controls, if it holds their KV.
    budgets : sequence of float
        Shares to recompute.
    seeds : sequence of int
        Of random selection.
    named : bool
        Whether somebody asked for these very rows, so that none is left out.

    Raises
    ------
    UnknownMethod, InvalidArgument
        If a name is no row, or a budget no share.
    """
    own, held = rag.engine.method, set(rag.index.catalog.recipes())
    every = [methods.find_method("full"), own, *map(methods.find_method, [*CONTROLS, *names])]
    refused = untuned(every, rag.reader)
    rows = {row.name: row for row in every if row.name not in refused}
    given = {methods.find_method(name).name for name in names}
    lacking = [row for row in rows.values() if lacks_encoding(held, row)]
    wanted = {*CONTROLS, *(given if named else ())}
    made = [row for row in lacking if lendable(row) and row.name in wanted]
    left_out = [row for row in lacking if row not in made and (not named or row.name not in given)]
    tested = [row for row in rows.values() if row not in left_out]
    first = [Contender(row, row.recompute) for row in (rows["full"], own) if row in tested]
    several = contenders(tested, sorted({0.0, *budgets}), seeds, controls=())
    field = [*first, *(who for who in several if who not in first)]
    path = rag.index.path
    return LineUp(tuple(_distinct(field)), _grouped(made, path), _grouped(left_out, path), refused)


def _distinct(field: Sequence[Contender]) -> Iterable[Contender]:
    """Without those that recompute nothing and therefore do what another one does."""
    done = {_loads(who.method) for who in field if who.recompute is None and who.method.select is None}
    for who in dict.fromkeys(field):
        if who.recompute == 0:
            if _loads(who.method) in done:
                continue
            done.add(_loads(who.method))
        yield who


def _loads(row: Method) -> str:
    """What a row does that recomputes nothing."""
    return repr((row.encode, row.attend, row.layout))


def _grouped(rows: Sequence[Method], index: Path) -> tuple[Lacking, ...]:
    recipes = dict.fromkeys(row.encode.recipe for row in rows if row.encode)
    groups = {recipe: [row.name for row in rows if row.encode and row.encode.recipe == recipe] for recipe in recipes}
    return tuple(Lacking(tuple(names), recipe, ingest(index, method=names[0])) for recipe, names in groups.items())
