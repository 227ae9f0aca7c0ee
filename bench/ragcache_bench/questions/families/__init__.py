"""What is told and asked beyond facts, sections and two hops: one function per family, each over a `World`.

Those in `BINDINGS` need other chunks: what a chunk says can only be understood from an earlier one. Each has a
self-contained twin with the same layout. Those in `LOOKUPS` do not: every chunk can be read on its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import TypeVar

from ragcache_bench.questions.families.bindings import labels, pronouns, sections, shifts, units
from ragcache_bench.questions.families.chains import exceptions, threehop, tracking, twohop
from ragcache_bench.questions.families.lists import comparing, counting, moves, multivalue, yesno
from ragcache_bench.questions.families.lookups import facts, needles, unknown
from ragcache_bench.questions.families.stories import STORIES, stories
from ragcache_bench.questions.level import Level
from ragcache_bench.questions.lexicon import PLAIN, Lexicon
from ragcache_bench.questions.worlds import Context, World, make_context

__all__ = ["BINDINGS", "LOOKUPS", "STORIES", "draw"]

Family = TypeVar("Family")

BINDINGS: dict[str, Callable[[World, bool], None]] = {
    "sections": sections, "pronouns": pronouns, "labels": labels, "shifts": shifts, "units": units,
}  # fmt: skip
LOOKUPS: dict[str, Callable[[World], None]] = {
    "facts": facts, "needles": needles, "multivalue": multivalue, "counting": counting, "tracking": tracking,
    "twohop": twohop, "threehop": threehop, "exceptions": exceptions, "comparing": comparing, "yesno": yesno,
    "moves": moves, "unknown": unknown, "stories": stories,
}  # fmt: skip
_WEIGHTS = {
    "pronouns": 1.5, "labels": 1.5, "sections": 1.5, "shifts": 0.4, "units": 0.7, "facts": 2.5, "tracking": 1.2,
    "threehop": 1.2, "moves": 1.2, "exceptions": 1.2, "yesno": 1.2, "comparing": 0.8, "counting": 0.8,
}  # fmt: skip
"""Families that are drawn more or less often than others."""


def draw(rng: Random, level: Level, held: bool = False, lexicon: Lexicon = PLAIN) -> Context:
    """Return one context at `level`.

    With `level.mix` several families meet in it, at most one of `BINDINGS`, or its twin, and some `LOOKUPS`; without it
    it is facts, sections and two hops, as `make_context` has them.

    Parameters
    ----------
    rng : Random
        Source of randomness.
    level : Level
        Difficulty.
    held : bool
        Held-out names and unseen phrasings.
    lexicon : Lexicon
        The words it is told in; those of `make_context` are plain.
    """
    if level.mix is None:
        return make_context(rng, level, held)
    world = World(rng, replace(level, least=rng.choice((0, level.least))), held, lexicon)
    count = rng.randint(*level.mix)
    if rng.random() < level.bindings:
        _drawn(rng, BINDINGS, level)(world, rng.random() < 0.3)
        count -= 1
    for _ in range(count):
        _drawn(rng, LOOKUPS, level)(world)
    return world.finish([world.ask(f) for f in world.facts])


def _drawn(rng: Random, families: Mapping[str, Family], level: Level) -> Family:
    names = [name for name in families if name in level.only] or list(families)
    return families[rng.choices(names, [_WEIGHTS.get(name, 1.0) for name in names])[0]]
