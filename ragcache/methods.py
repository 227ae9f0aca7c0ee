"""The table of the literature: a method is one choice on each axis.

A row's `recompute` is its default share of selectable tokens; None marks a fixed cost, which the dial does not move.
A user's own method is `dataclasses.replace(METHODS["fusionrag"], select=…)`; other packages add rows through the entry
point group `ragcache.methods`, each entry a `Method`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from ragcache.encode import Alone, Encoder, Fused, InPlace, Sink
from ragcache.errors import InvalidArgument, UnknownMethod
from ragcache.layout import Layout, Retrieved
from ragcache.schedule import Flat, Schedule
from ragcache.select import FirstTokens, KeyDeviation, QuestionAttention, RandomTokens, Selector

DEFAULT_METHOD = "fusionrag"


@dataclass(frozen=True)
class Method:
    """One way of answering from cached chunks.

    Attributes
    ----------
    name : str
        What the table calls it.
    encode : Encoder or None
        Axis A; None loads nothing.
    select : Selector or None
        Axis B; None recomputes nothing.
    recompute : float or None
        Default share of selectable tokens; None for rows with a fixed cost.
    schedule : Schedule
        Axis C.
    layout : Layout
        Axis E.
    paper : str
        arXiv number.
    about : str
        One line for the table.

    Raises
    ------
    InvalidArgument
        If the selector needs extras that the encoder does not store.
    """

    name: str
    encode: Encoder | None
    select: Selector | None = None
    recompute: float | None = None
    schedule: Schedule = field(default_factory=Flat)
    layout: Layout = field(default_factory=Retrieved)
    paper: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        stored = self.encode.extras if self.encode else ()
        if lacking := sorted(set(self.needs) - set(stored)):
            raise InvalidArgument(
                f"method {self.name!r} selects by {', '.join(lacking)}, which {choice(self.encode)} doesn't store"
            )

    @property
    def needs(self) -> tuple[str, ...]:
        """Extras that the selector reads."""
        return self.select.needs if self.select else ()

    def budget(self, recompute: float | None) -> float:
        """The share to recompute: the caller's, or the row's default.

        Raises
        ------
        InvalidArgument
            If the share is outside [0, 1], or given for a row with a fixed cost.
        """
        if recompute is None:
            return self.recompute or 0.0
        if self.recompute is None:
            raise InvalidArgument(
                f"method {self.name!r} has a fixed cost, so recompute={recompute:g} means nothing to it; "
                "leave it out, or see `ragcache methods` for rows with a dial"
            )
        if not 0 <= recompute <= 1:
            raise InvalidArgument(f"recompute is {recompute:g}; it is a share between 0 and 1")
        return recompute

    def as_dict(self) -> dict[str, Any]:
        """A row of `ragcache methods --json`."""
        return {
            "name": self.name,
            "paper": self.paper,
            "about": self.about,
            "encode": choice(self.encode),
            "select": choice(self.select),
            "schedule": choice(self.schedule),
            "attend": None,
            "layout": choice(self.layout),
            "recompute": self.recompute,
            "needs": list(self.needs),
        }


def choice(value: object) -> str | None:
    """How a choice reads in a table: its name and fields."""
    if value is None or not is_dataclass(value):
        return None
    given = (f"{f.name}={getattr(value, f.name)!r}" for f in fields(value))
    return f"{type(value).__name__}({', '.join(given)})"


_ROWS = (
    Method("full", None, about="full prefill with stock attention: the reference"),
    Method("prefix", InPlace(), paper="2312.07104", about="exact prefix caching: system prefix and first chunk"),
    Method("naive", Alone(), paper="2311.04934", about="stitch, re-rotate, recompute nothing"),
    Method("random", Alone(), RandomTokens(), 0.15, about="random tokens: the control at any budget"),
    Method("epic", Alone(), FirstTokens(), 0.15, paper="2410.15332", about="the first tokens of every chunk"),
    Method("link0", Sink(tokens=4), paper="2410.15332", about="sinks removed by throw-away tokens"),
    Method("cacheblend", Alone(), KeyDeviation(layer=1), 0.15, paper="2405.16444", about="the keys that deviate most"),
    Method(
        "fusionrag",
        Fused(neighbours=10),
        QuestionAttention(layers="last", reduce="sum"),
        0.15,
        paper="2601.12904",
        about="chunks fused with their neighbours, then what the question attends to",
    ),
    Method(
        "prophetkv",
        Alone(),
        QuestionAttention(layers="all", reduce="mean"),
        0.20,
        paper="2602.02579",
        about="what the question attends to, over all layers",
    ),
)

#: The table: name to row.
METHODS: Mapping[str, Method] = {row.name: row for row in _ROWS}


@cache
def _plugins() -> dict[str, Method]:
    loaded = [entry.load() for entry in entry_points(group="ragcache.methods")]
    return {row.name: row for row in loaded if isinstance(row, Method)}


def methods() -> dict[str, Method]:
    """Every row, those of other packages included."""
    return {**_plugins(), **METHODS}


def find(name: str | Method) -> Method:
    """The row of that name.

    Raises
    ------
    UnknownMethod
        If there is none; the message lists those that are.
    """
    if isinstance(name, Method):
        return name
    rows = methods()
    if name not in rows:
        raise UnknownMethod(f"no method is called {name!r}; `ragcache methods` lists {', '.join(rows)}")
    return rows[name]
