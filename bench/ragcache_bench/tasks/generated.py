"""Questions about invented notes, one question family per task: held-out names, unseen phrasings.

Most chunks have idle sentences before their fact, so recomputing a chunk's first tokens mends nothing, and all have at
least 26 words, some forty of the bundled reader's tokens, so that one token of each chunk is less than 3 %.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import ClassVar

from ragcache.errors import InvalidArgument
from ragcache_bench.questions.families import BINDINGS, LOOKUPS
from ragcache_bench.questions.families.lookups import bystander
from ragcache_bench.questions.level import Level
from ragcache_bench.questions.worlds import UNKNOWN, World
from ragcache_bench.tasks.example import Example, Twinned, paged

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
            world = World(rng, make_level(self.filler), held=True)
            LOOKUPS[self.family](world)
            if world.size <= self.chunks:
                return _example(world, self.family, number, self.chunks)[0]


@dataclass(frozen=True)
class Binding(Twinned):
    """A chunk says whose its fact is only through an earlier chunk; computed alone it cannot know.

    A page begins with a chunk that introduces a subject, and ends before the next such chunk; facts about others in
    between are on it. Where kinds take turns, a page ends only where no fact to come needs a subject introduced before:
    a fact is on the page of its own introduction. If there is no such place, there are no pages. A twin has the same.

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
        example, bound = _example(self._world(start, self.twin), self.name, number, self.chunks, gap=self.needs)
        if self.twin:  # its facts don't say where their subject is introduced
            _, bound = _example(self._world(start, False), self.name, number, self.chunks)
        return replace(example, pages=paged(example.chunks, _borders(bound)))

    def _world(self, start: str, twin: bool) -> World:
        for attempt in range(_TRIES):
            rng = Random(f"{start} {attempt}")
            world = World(rng, make_level(self.filler, self.subjects, self.interleaved), held=True)
            BINDINGS[self.family](world, twin)
            if world.size <= self.chunks:
                return world
        raise InvalidArgument(
            f"{self.family} with {self.subjects} subjects takes more than {self.chunks} chunks; allow more chunks"
        )


def make_level(filler: float, subjects: int = 0, interleaved: float = 1.0) -> Level:
    """How hard the generated contexts are, those of `documents` among them."""
    told = (1, 2)  # facts of each subject
    return Level(
        relations=told, forms=9, filler=filler, alike=0.1, least=_LEAST, subjects=subjects, interleaved=interleaved
    )


def _borders(bound: Iterable[tuple[int, int]]) -> set[int]:
    """Introductions before which a page may end, given where facts stand and where their subject is introduced."""
    pairs = list(bound)
    return {start for start, _ in pairs if not any(other < start <= fact for other, fact in pairs)}


def _example(
    world: World, task: str, number: str, chunks: int, gap: bool = False
) -> tuple[Example, list[tuple[int, int]]]:
    """One question, and facts about others until there are `chunks` chunks.

    Beside it the places of all facts that need an introduction, behind those of the introductions.
    """
    asked = [*world.asked, *(world.ask(fact) for fact in world.facts)]
    if task == "unknown":
        asked = [q for q in asked if q.answer == UNKNOWN]
    question = asked[int(world.rng.random() * len(asked))]  # one draw, whatever a twin asks
    while world.size < chunks:
        bystander(world)
    world.asked = asked
    context = world.finish([])
    gold = question.gold
    example = Example(
        f"{task}-{number}", task, tuple(context.chunks), question.text,
        tuple(dict.fromkeys((question.answer, question.reply))), tuple(gold),
        gold[-1] - gold[0] if gap else None, titles=tuple(context.subjects) if any(context.subjects) else (),
    )  # fmt: skip
    return example, [(one.gold[0], one.gold[-1]) for one in asked if len(one.gold) > 1]
