"""What is read: invented notes of question families that no examined task has, with names kept for training."""

from random import Random

from ragcache_bench.questions.families import LOOKUPS
from ragcache_bench.questions.families.bindings import enumerations, shifts
from ragcache_bench.questions.families.lookups import bystander
from ragcache_bench.questions.level import Level
from ragcache_bench.questions.worlds import Context, Question, World

BINDINGS = (shifts, enumerations)
"""Families whose facts need another chunk. The examined ones are sections, pronouns, labels and units."""
_NAMES = tuple(LOOKUPS)
_LEVEL = Level(relations=(1, 3), forms=9, filler=0.4, alike=0.1, least=26)
_LINKED, _TWIN = 0.7, 0.3
"""Shares of contexts with a binding, and of these that say all that is needed in every chunk."""
_CHUNKS = 9, 14
_ASKED, _FACTS = 6, 2
"""Questions of a context, at most: of the families above, and for single facts beside them."""


def draw(rng: Random) -> Context:
    """Return a context of 9 to 14 chunks, or a few more, and its questions, at most eight."""
    while True:
        context = _drawn(rng)
        if context.questions and len(context.chunks) <= 2 * _CHUNKS[1]:
            return context


def _drawn(rng: Random) -> Context:
    world, least = World(rng, _LEVEL), rng.randint(*_CHUNKS)
    if rng.random() < _LINKED:
        rng.choice(BINDINGS)(world, rng.random() < _TWIN)
    else:
        LOOKUPS[rng.choice(_NAMES)](world)
    LOOKUPS[rng.choice(_NAMES)](world)
    while world.size < least:
        bystander(world)
    context = world.finish([world.ask(fact) for fact in world.facts])
    facts = [one for one in context.questions if one.family == "fact"]
    others = [one for one in context.questions if one.family != "fact"]
    context.questions = _some(rng, others, _ASKED) + _some(rng, facts, _FACTS)
    return context


def _some(rng: Random, questions: list[Question], most: int) -> list[Question]:
    return rng.sample(questions, min(most, len(questions)))
