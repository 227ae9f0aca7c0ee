"""Documents about several subjects under one title: what their chunks leave out, no title tells.

In each document some chunks say what holds for those behind them: what a label stands for, which company "the company"
is, whom the next part is about, in which unit amounts are, what the numbers of a list mean, where the guard is by now.
A parser knows the document's title and nothing of that. A prompt has chunks of several documents, as retrieval brings
them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from ragcache_bench.questions.families.bindings import enumerations, labels, pronouns, sections, shifts, units
from ragcache_bench.questions.families.lookups import bystander
from ragcache_bench.questions.lexicon import PLAIN
from ragcache_bench.questions.worlds import Question, World
from ragcache_bench.tasks.example import Example, Twinned
from ragcache_bench.tasks.generated import make_level

_FILLER = 0.4  # share of idle sentences
#: No headings: those a parser would find.
_PROSE = replace(PLAIN, headers=tuple(one for one in PLAIN.headers if not one.startswith("#")))
_TITLES = (
    "Minutes of {day} {month}", "Annual report {year}", "Notes, part {day}", "Handbook {year}", "Diary, {month} {year}",
    "Letter of {day} {month}", "Agreement of {day} {month}", "Circular no. {day}", "Register {year}",
)  # fmt: skip
_MONTHS = ("January", "March", "April", "May", "June", "August", "September", "November")
_OTHERS = 8, 16  # chunks of the documents that nothing is asked about
_WORDS, _OVERLAP = 48, 8  # of a chunk that is cut anywhere; of these, what the chunk before it ends with


@dataclass(frozen=True)
class Documents(Twinned):
    """Chunks of several documents; each fact needs the chunk of its document that says whose it is.

    Attributes
    ----------
    name : str
        The task's, without `-twin`, `-shuffled` and `-cut`.
    family : callable
        Tells of the subjects, and asks about them: one of `questions.families.bindings`.
    chunks : int
        Chunks of a prompt.
    documents : tuple of int
        Least and most documents that they come from.
    length : tuple of int
        Least and most chunks of the document that is asked about: the further apart are the fact and what it needs.
    subjects : int
        Subjects, meanings, units or states in each document.
    interleaved : float
        Share of documents in which kinds of subjects take turns, so that "the company" is not whoever was named last.
    shuffled : bool
        The chunks stand in any order, as retrieval ranks them, instead of one document after the other. Full prefill
        can then not know what was said first.
    cut : bool
        Chunks end after so many words, also within a sentence, and begin with the last words of the one before.
    twin : bool
        The same documents, but every chunk says all that is needed.
    """

    name: str
    family: Callable[[World, bool], None] = field(repr=False)  # a result names the task by its name
    chunks: int = 14
    documents: tuple[int, int] = (2, 8)
    length: tuple[int, int] = (8, 60)
    subjects: int = 3
    interleaved: float = 0.0
    shuffled: bool = False
    cut: bool = False
    twin: bool = False

    @property
    def full_name(self) -> str:
        """With what sets it apart from the plain task."""
        return self.name + "-shuffled" * self.shuffled + "-cut" * self.cut + "-twin" * self.twin

    def examples(self, n: int, seed: int = 0) -> list[Example]:
        """Return `n` examples; number i is the same with and without `twin`, but for how the facts are told."""
        return [self._example(f"{self.name} {seed} {i}", f"{seed}-{i}") for i in range(n)]

    def _example(self, start: str, number: str) -> Example:
        rng = Random(start)
        count = rng.randint(*self.documents)
        drawn = [self._draw(f"{start} {i}", self.length if i == 0 else _OTHERS) for i in range(count)]
        wanted = rng.choice(drawn[0].asked)
        kept = self._retrieve(rng, drawn, wanted)
        order = [(of, at) for of in rng.sample(range(count), count) for at in sorted(kept[of])]
        if self.shuffled:
            rng.shuffle(order)
        needed = [order.index((0, at)) for at in (wanted.gold[-1:] if self.twin else wanted.gold)]
        return Example(
            id=f"{self.full_name}-{number}",
            task=self.full_name,
            chunks=tuple(drawn[of].chunks[at] for of, at in order),
            question=wanted.text,
            answers=tuple(dict.fromkeys((wanted.answer, wanted.reply))),
            gold=tuple(sorted(needed)),
            gap=None if self.twin else wanted.gold[-1] - wanted.gold[0],
            pages=tuple(one.chunks for one in drawn),
            titles=tuple(drawn[of].title for of, _ in order),
        )

    def _retrieve(self, rng: Random, drawn: Sequence["_Document"], wanted: Question) -> list[set[int]]:
        """Which chunks of each document are in the prompt: facts with what they need, then others."""
        kept = [set[int]() for _ in drawn]
        kept[0].update(wanted.gold)
        pairs = [(of, set(one.gold)) for of, document in enumerate(drawn) for one in document.asked]
        rest = [(of, {at}) for of, document in enumerate(drawn) for at in document.alone]
        for of, group in (*rng.sample(pairs, len(pairs)), *rng.sample(rest, len(rest))):
            if sum(map(len, kept)) + len(group - kept[of]) <= self.chunks:
                kept[of] |= group
        return kept

    def _draw(self, start: str, length: tuple[int, int]) -> "_Document":
        """One document; a twin has the questions of the original, which know what needs what."""
        asked = self._told(start, length, twin=False)[1]
        chunks, own = self._told(start, length, twin=self.twin)
        texts = {(one.text, one.answer): one for one in own}
        named = [one for one in asked if (one.text, one.answer) in texts]
        if self.cut:
            chunks, places = _cut(chunks)
            for one in asked:
                one.gold = sorted(set[int]().union(*(places[at] for at in one.gold)))
        used = {at for one in asked for at in one.gold}
        return _Document(_title(Random(start)), chunks, named, [at for at in range(len(chunks)) if at not in used])

    def _told(self, start: str, length: tuple[int, int], *, twin: bool) -> tuple[tuple[str, ...], list[Question]]:
        rng = Random(start)
        least = rng.randint(*length)
        world = World(rng, make_level(_FILLER, self.subjects, self.interleaved), held=True, lexicon=_PROSE)
        self.family(world, twin)
        while world.size < least:
            bystander(world)
        asked = [*world.asked, *(world.ask(fact) for fact in world.facts)]
        world.asked = asked
        return tuple(world.finish([]).chunks), asked


@dataclass(frozen=True)
class _Document:
    """A document's title, its chunks, what can be asked about it, and which chunks tell of nobody in it."""

    title: str
    chunks: tuple[str, ...]
    asked: list[Question]
    alone: list[int]


def _cut(chunks: Sequence[str]) -> tuple[tuple[str, ...], list[range]]:
    """The same text in chunks of `_WORDS` words, and which of them have words of each of the old ones."""
    text, step = "\n\n".join(chunks), _WORDS - _OVERLAP
    words = [(word.start(), word.end()) for word in re.finditer(r"\S+", text)]
    starts = range(0, max(len(words) - _OVERLAP, 1), step)
    cut = tuple(text[words[at][0] : words[at : at + _WORDS][-1][1]] for at in starts)
    places, first = [], 0
    for chunk in chunks:
        last = first + len(chunk.split()) - 1
        places.append(range(max(0, (first - _WORDS) // step + 1), min(last // step, len(cut) - 1) + 1))
        first = last + 1
    return cut, places


def _title(rng: Random) -> str:
    return rng.choice(_TITLES).format(day=rng.randint(1, 28), month=rng.choice(_MONTHS), year=rng.randint(1990, 2030))


_KINDS = (
    Documents("definitions", labels),
    Documents("antecedents", pronouns),
    Documents("mixed-antecedents", pronouns, interleaved=1.0),
    Documents("parts", sections),
    Documents("column-units", units),
    Documents("enumerations", enumerations),
    Documents("minutes", shifts),
)
_EVERY = [
    task
    for kind in _KINDS
    for task in (kind, replace(kind, twin=True), replace(kind, shuffled=True), replace(kind, cut=True))
]
#: All of these tasks by name.
DOCUMENTS: dict[str, Documents] = {task.full_name: task for task in _EVERY}
