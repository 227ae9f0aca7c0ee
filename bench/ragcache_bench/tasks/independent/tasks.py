"""Questions about facts made up anew, in words that no reader was trained on."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ragcache_bench.tasks.example import Example
from ragcache_bench.tasks.independent.draw import Draw, Fact, around, asked_relation, capitalised, question, take_words
from ragcache_bench.tasks.independent.idle import INTRODUCTIONS, PAGE_TITLES, idle_sentences
from ragcache_bench.tasks.independent.relations import KINDS, Kind, Relation

#: Subjects with a section each; all have what is asked for.
SUBJECTS = 4
#: Least and most chunks of a prompt.
CHUNKS = 10, 14


@dataclass(frozen=True)
class FreshFacts:
    """Facts in random order, every one with its subject's name.

    Three or four subjects of a kind share the attribute that is asked for and have others beside it; what remains to
    be told is about subjects of another kind. Some chunks tell two facts.

    Titles are a subject's name or, over two subjects, that of a page.

    Attributes
    ----------
    name : str
        The task's name.
    """

    name: str

    @property
    def needs(self) -> bool:
        """Never: each statement tells its subject."""
        return False

    @property
    def chance(self) -> float | None:
        """Not meaningful here."""
        return None

    def examples(self, n: int, seed: int = 0) -> list[Example]:
        """The first questions of a seed."""
        return [self._example(seed, number) for number in range(n)]

    def _example(self, seed: int, number: int) -> Example:
        rng = random.Random(f"fresh-facts/{seed}/{number}")
        asked, groups = _scattered(rng, *asked_relation(seed, number))
        sentence, idle = question(rng, asked), idle_sentences(rng)
        titles, chunks = list[str](), list[str]()
        for group in groups:
            fillers = take_words(idle, 20 if len(group) == 1 else 10)
            titles.append(_title(rng, group))
            chunks.append(around(rng, [fact.named for fact in group], fillers))
        gold = next(i for i, group in enumerate(groups) if asked in group)
        return Example(
            f"{self.name}/{seed}/{number}", self.name, tuple(chunks), sentence, asked.answers, (gold,),
            titles=tuple(titles),
        )  # fmt: skip


def _scattered(rng: random.Random, kind: Kind, asked: Relation) -> tuple[Fact, list[list[Fact]]]:
    """The fact asked for, and all facts, as each chunk tells them."""
    draw = Draw(rng)
    facts = [
        fact
        for subject in draw.subjects(kind, rng.randint(3, 4))
        for fact in draw.facts(subject, asked, rng.randint(2, 3))
    ]
    wanted = rng.choice([fact for fact in facts if fact.relation == asked])
    chunks, doubles = rng.randint(max(CHUNKS[0], len(facts)), CHUNKS[1]), rng.randint(0, 3)
    other = rng.choice([one for one in KINDS if one != kind])
    every = [(subject, relation) for subject in draw.subjects(other, 3) for relation in other.relations]
    facts += [draw.fact(subject, relation) for subject, relation in rng.sample(every, chunks + doubles - len(facts))]
    rng.shuffle(facts)
    pairs = [facts[i : i + 2] for i in range(0, 2 * doubles, 2)]
    groups = pairs + [[fact] for fact in facts[2 * doubles :]]
    rng.shuffle(groups)
    return wanted, groups


def _title(rng: random.Random, facts: list[Fact]) -> str:
    name, plural = facts[0].subject.name, facts[0].subject.kind.plural
    page = rng.choice(PAGE_TITLES).format(plural=plural, Plural=capitalised(plural))
    if len({fact.subject.name for fact in facts}) > 1:
        return page if len({fact.subject.kind.name for fact in facts}) == 1 else "Various notes"
    return rng.choice((name, name, page))


@dataclass(frozen=True)
class Passage:
    """A chunk of a section: a fact between idle sentences."""

    before: tuple[str, ...]
    fact: Fact
    after: tuple[str, ...]

    def text(self, *, named: bool) -> str:
        """The chunk, which names the fact's subject or does not."""
        return " ".join((*self.before, self.fact.named if named else self.fact.implied, *self.after))


@dataclass(frozen=True)
class Section:
    """What is told of one subject, in reading order."""

    title: str
    header: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True)
class FreshSections:
    """Sections on subjects of one kind, one after the other; only a section's first chunk tells whom it is about.

    Attributes
    ----------
    name : str
        The task's name.
    form : {"plain", "twin", "bare"}
        As said; or every statement names its subject; or the first chunks stand on the pages but were not retrieved.
    """

    name: str
    form: Literal["plain", "twin", "bare"] = "plain"

    @property
    def needs(self) -> bool:
        """Whether the answer needs the section's first chunk."""
        return self.form in ("plain", "bare")

    @property
    def chance(self) -> float | None:
        """Exact match of a guess among the subjects' values."""
        return 1 / SUBJECTS if self.needs else None

    def examples(self, n: int, seed: int = 0) -> list[Example]:
        """The first questions of a seed; in all forms, a number has the same facts in the same places."""
        return [self._example(seed, number) for number in range(n)]

    def _example(self, seed: int, number: int) -> Example:
        rng = random.Random(f"fresh-sections/{seed}/{number}")
        kind, relation = asked_relation(seed, number)
        sections = list(_sections(rng, kind, relation))
        wanted = rng.randrange(SUBJECTS)
        gap = 1 + next(i for i, part in enumerate(sections[wanted].passages) if part.fact.relation == relation)
        asked = sections[wanted].passages[gap - 1].fact
        pages = tuple(map(self._page, sections))
        retrieved = [page[1:] if self.form == "bare" else page for page in pages]
        header = sum(map(len, retrieved[:wanted])) - (self.form == "bare")
        return Example(
            id=f"{self.name}/{seed}/{number}",
            task=self.name,
            chunks=tuple(chunk for page in retrieved for chunk in page),
            question=question(rng, asked),
            answers=asked.answers,
            gold=(header, header + gap) if self.form == "plain" else (header + gap,),
            gap=gap,
            pages=pages,
            titles=tuple(part.title for part, page in zip(sections, retrieved, strict=True) for _ in page),
        )

    def _page(self, section: Section) -> tuple[str, ...]:
        return (section.header, *(part.text(named=self.form == "twin") for part in section.passages))


def _sections(rng: random.Random, kind: Kind, asked: Relation) -> Iterator[Section]:
    draw, idle = Draw(rng), idle_sentences(rng)
    longer = rng.sample(range(SUBJECTS), rng.randint(0, CHUNKS[1] - 3 * SUBJECTS))
    introductions = rng.sample(INTRODUCTIONS, SUBJECTS)
    for i, subject in enumerate(draw.subjects(kind, SUBJECTS)):
        facts = draw.facts(subject, asked, 3 if i in longer else 2)
        start = introductions[i].format(s=kind.article + subject.name, kind=kind.name, plural=kind.plural)
        left = [one for one in kind.relations if one not in [fact.relation for fact in facts]]
        told = [draw.fact(subject, rng.choice(left)).named] if rng.random() < 0.5 else []
        header = " ".join((capitalised(start), around(rng, told, take_words(idle, 10 if told else 16))))
        yield Section(subject.name, header, tuple(_passage(rng, fact, idle) for fact in facts))


def _passage(rng: random.Random, fact: Fact, idle: Iterator[str]) -> Passage:
    fillers = take_words(idle, 20)
    place = rng.randint(0, len(fillers))
    return Passage(tuple(fillers[:place]), fact, tuple(fillers[place:]))


#: All tasks by name.
INDEPENDENT: dict[str, FreshFacts | FreshSections] = {
    task.name: task
    for task in (
        FreshFacts("fresh-facts"),
        FreshSections("fresh-sections"),
        FreshSections("fresh-sections-twin", "twin"),
        FreshSections("fresh-sections-bare", "bare"),
    )
}
