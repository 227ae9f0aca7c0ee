"""Questions about invented notes, one family of `ragcache.train.families` per task: held-out names, unseen phrasings.

Most chunks have idle sentences before their fact, so recomputing a chunk's first tokens mends nothing, and all have at
least 26 words, some forty of the bundled reader's tokens, so that one token of each chunk is less than 3 %.
"""

from dataclasses import dataclass
from random import Random
from typing import ClassVar

from ragcache.errors import InvalidArgument
from ragcache.evaluate.tasks.example import Example, Twinned
from ragcache.train.families import BINDINGS, LOOKUPS
from ragcache.train.families.lookups import bystander
from ragcache.train.level import Level
from ragcache.train.worlds import UNKNOWN, World

_LEAST = 26  # words
_TRIES = 1000


@dataclass(frozen=True)
class Lookup:
    """Every chunk can be read on its own: nothing is lost by computing the chunks alone.

    Attributes
    ----------
    family : str
        One of `LOOKUPS`.
    chunks : int
        Chunks per question, facts about other subjects among them.
    filler : float
        Share of idle sentences around the facts.
    """

    family: str
    chunks: int = 12
    filler: float = 0.4
    needs: ClassVar[bool] = False

    def examples(self, n: int, seed: int = 0) -> list[Example]:
        """Return `n` examples, the same for the same `seed`."""
        return [self._example(Random(f"{self.family} {seed} {i}"), f"{seed}-{i}") for i in range(n)]

    def _example(self, rng: Random, number: str) -> Example:
        while True:
            world = World(rng, _level(self.filler), held=True)
            LOOKUPS[self.family](world)
            if world.size <= self.chunks:
                return _example(world, self.family, number, self.chunks)


@dataclass(frozen=True)
class Binding(Twinned):
    """A chunk says whose its fact is only through an earlier chunk; computed alone it cannot know.

    Attributes
    ----------
    family : str
        One of `BINDINGS`.
    chunks : int
        Chunks per question; what the family leaves free is facts about others, interleaved.
    subjects : int
        Subjects, meanings, states or units that the fact may belong to.
    interleaved : float
        Share of questions in which kinds of subjects, or labels, take turns.
    filler : float
        Share of idle sentences around the facts.
    twin : bool
        The same notes, but every chunk says all that is needed.
    """

    family: str
    chunks: int = 14
    subjects: int = 3
    interleaved: float = 0.0
    filler: float = 0.4
    twin: bool = False

    @property
    def name(self) -> str:
        """The task's."""
        return self.family + "-interleaved" * (self.interleaved > 0) + "-twin" * self.twin

    def examples(self, n: int, seed: int = 0) -> list[Example]:
        """Return `n` examples; number i is the same with and without `twin`, but for how the facts are told."""
        return [self._example(f"{self.family} {seed} {i}", f"{seed}-{i}") for i in range(n)]

    def _example(self, start: str, number: str) -> Example:
        for attempt in range(_TRIES):
            rng = Random(f"{start} {attempt}")
            world = World(rng, _level(self.filler, self.subjects, self.interleaved), held=True)
            BINDINGS[self.family](world, self.twin)
            if world.size <= self.chunks:
                return _example(world, self.name, number, self.chunks, gap=self.needs)
        raise InvalidArgument(
            f"{self.family} with {self.subjects} subjects takes more than {self.chunks} chunks; allow more chunks"
        )


def _level(filler: float, subjects: int = 0, interleaved: float = 1.0) -> Level:
    told = (1, 2)  # facts of each subject
    return Level(
        relations=told, forms=9, filler=filler, alike=0.1, least=_LEAST, subjects=subjects, interleaved=interleaved
    )


def _example(world: World, task: str, number: str, chunks: int, gap: bool = False) -> Example:
    """One question, and facts about others until there are `chunks` chunks."""
    asked = [*world.asked, *(world.ask(fact) for fact in world.facts)]
    if task == "unknown":
        asked = [q for q in asked if q.answer == UNKNOWN]
    question = asked[int(world.rng.random() * len(asked))]  # one draw, whatever a twin asks
    while world.size < chunks:
        bystander(world)
    world.asked = [question]
    context = world.finish([])
    gold = question.gold
    return Example(
        f"{task}-{number}", task, tuple(context.chunks), question.text,
        tuple(dict.fromkeys((question.answer, question.reply))), tuple(gold),
        gold[-1] - gold[0] if gap else None,
    )  # fmt: skip
