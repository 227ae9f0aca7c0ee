"""Notes in many wordings about names made up at random: what readers that understand words are tuned on.

A reader that knew a few dozen relations in two or three wordings each answered .27 of the questions put in others.
"""

import random
import re
from dataclasses import replace

from ragcache_bench.questions.families import draw
from ragcache_bench.questions.level import Level
from ragcache_bench.questions.lexicon import PLAIN, Lexicon
from ragcache_bench.questions.relations import Relation
from ragcache_bench.questions.worlds import Context
from ragcache_bench.tasks.independent.relations import KINDS as EXAMINED

from reader_tuning.language import WIDE_BY_SUBJECT
from reader_tuning.language.idle import idle_sentence
from reader_tuning.language.names import WideNames
from reader_tuning.language.open_relations import open_relation

_HEADERS = (
    "This page is about {s}.", "# {s}", "{s}", "# {s}\n\nWhat follows is about {s}.", "Notes on {s}.", "{s}:",
    "About {s}", "## {s}\n\nSome notes.", "Here is what we know of {s}.", "{s} - an overview", "Let us look at {s}.",
    "The next pages deal with {s}.", "Subject: {s}", "## About {s}\n\nThis section describes {s}.", "Profile: {s}",
    "We now come to {s}.", "{s} has been in the news.", "Everything below concerns {s}.", "Entry: {s}",
    "What is there to say about {s}?", "**{s}**", "Readers often ask about {s}.", "Fact sheet: {s}", "= {s} =",
)  # fmt: skip


def _bare(wording: str) -> str:
    """A wording without article, case and punctuation."""
    return re.sub(r"[^a-z{}]+", " ", wording.lower().replace("the {s}", "{s}")).strip()


_EXAMINED = frozenset(_bare(way) for kind in EXAMINED for relation in kind.relations for way in relation.wordings)


def without_examined(relation: Relation) -> Relation:
    """A relation without the wordings that the independent examination has too, which was written apart."""
    return replace(relation, says=_unseen(relation.says), it=_unseen(relation.it), asks=_unseen(relation.asks))


def _unseen(ways: tuple[str, ...]) -> tuple[str, ...]:
    """Those that are not examined; all of them, where none is left."""
    return tuple(way for way in ways if _bare(way) not in _EXAMINED) or ways


def value_first(relation: Relation) -> tuple[str, ...]:
    """The wordings of a relation that have the value before the subject."""
    return tuple(way for way in relation.says if 0 <= way.find("{o}") < way.find("{s}"))


def balanced(relation: Relation) -> Relation:
    """A relation told as often with the value before the subject as after it, where it can be told so at all.

    A fifth of the wordings have it before, and most errors on independent facts were of that kind: the value has to be
    found from the name behind it.
    """
    before = value_first(relation)
    if not before:
        return relation
    behind = len(relation.says) - len(before)
    return replace(relation, says=relation.says + before * max(0, round(behind / len(before)) - 1))


_BY_KIND = {kind: tuple(balanced(without_examined(row)) for row in rows) for kind, rows in WIDE_BY_SUBJECT.items()}
LEXICON = Lexicon(
    _BY_KIND,
    WideNames,
    idle_sentence,
    _HEADERS,
    kinds=tuple(kind for kind, rows in _BY_KIND.items() if len(rows) > 1),
    invent=open_relation,
    invented=0.1,
)
"""Many relations and wordings, names composed at random, and relations made of any noun."""


_OTHER_NAMES = replace(
    PLAIN,
    names=WideNames,
    relations={kind: tuple(map(without_examined, rows)) for kind, rows in PLAIN.relations.items()},
)
_PLAIN = 0.2
"""Share of contexts in the words of the generated tasks."""


def draw_mixed(rng: random.Random, level: Level, held: bool = False) -> Context:
    """Return one context at `level`, in wide or plain words.

    Parameters
    ----------
    rng : Random
        Source of randomness.
    level : Level
        Difficulty.
    held : bool
        Held-out names and unseen wordings.
    """
    return draw(rng, level, held, _OTHER_NAMES if rng.random() < _PLAIN else LEXICON)
