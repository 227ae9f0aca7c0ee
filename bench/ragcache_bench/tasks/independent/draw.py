"""Facts made up for one question."""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ragcache_bench.tasks.independent.grammar import compose
from ragcache_bench.tasks.independent.relations import KINDS, Kind, Relation

_PUNCTUATION = re.compile(r"[^\w\s]")
_SHORTER = re.compile(r"(?:Dr\. |port |the )(?P<name>.+)|(?P<number>[\d.,]+) \w+")


@dataclass(frozen=True)
class Subject:
    """Somebody or something that facts are about."""

    name: str
    kind: Kind


@dataclass(frozen=True)
class Fact:
    """A subject's value for a relation.

    Attributes
    ----------
    subject : Subject
        Whose it is.
    relation : Relation
        What is told.
    value : str
        As it stands in the text.
    named, implied : str
        The statement with the subject's name, and without.
    """

    subject: Subject
    relation: Relation
    value: str
    named: str
    implied: str

    @property
    def answers(self) -> tuple[str, ...]:
        """Accepted answers: without a title or unit too; the last as it stands in the text."""
        return (*_shorter(self.value), self.value)


def asked_relation(seed: int, number: int) -> tuple[Kind, Relation]:
    """The relation asked for in a question: each comes up once before any comes up again."""
    every = [(kind, relation) for kind in KINDS for relation in kind.relations]
    return random.Random(f"independent/{seed}").sample(every, len(every))[number % len(every)]


class Draw:
    """Makes up subjects and facts whose names and values cannot be taken for one another.

    Parameters
    ----------
    rng : random.Random
        What chooses.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._taken: list[str] = []

    def subjects(self, kind: Kind, count: int) -> list[Subject]:
        """Make up subjects of a kind."""
        return [Subject(self._fresh(kind.names), kind) for _ in range(count)]

    def fact(self, subject: Subject, relation: Relation) -> Fact:
        """Make up a value and choose the words to tell it."""
        value = self._fresh(relation.values)
        named, implied = (self.rng.choice(ways) for ways in (relation.named, relation.implied))
        return Fact(
            subject,
            relation,
            value,
            capitalised(named.format(s=subject.name, o=value)),
            capitalised(implied.format(o=value)),
        )

    def facts(self, subject: Subject, asked: Relation, count: int) -> list[Fact]:
        """Facts about a subject, one of them what is asked for, in random order."""
        others = [relation for relation in subject.kind.relations if relation != asked]
        relations = [asked, *self.rng.sample(others, count - 1)]
        return [self.fact(subject, relation) for relation in self.rng.sample(relations, count)]

    def _fresh(self, pattern: str) -> str:
        while True:
            text = compose(self.rng, pattern)
            forms = [*_shorter(text), text]
            if not any(_alike(new, old) for new in forms for old in self._taken):
                self._taken += forms
                return text


def question(rng: random.Random, fact: Fact) -> str:
    """Ask for a fact."""
    return capitalised(rng.choice(fact.relation.asked).format(s=fact.subject.name))


def take_words(sentences: Iterator[str], least: int) -> list[str]:
    """Take sentences until they have a number of words."""
    taken: list[str] = []
    while count_words(taken) < least:
        taken.append(next(sentences))
    return taken


def around(rng: random.Random, statements: Sequence[str], idle: Sequence[str]) -> str:
    """Statements in their order, with idle sentences before, between and after."""
    places = set(rng.sample(range(len(statements) + len(idle)), len(statements)))
    told, others = iter(statements), iter(idle)
    return " ".join(next(told if i in places else others) for i in range(len(statements) + len(idle)))


def count_words(sentences: Iterable[str]) -> int:
    """How many words sentences have together."""
    return sum(len(sentence.split()) for sentence in sentences)


def capitalised(sentence: str) -> str:
    """A sentence with a capital at its beginning."""
    return sentence[:1].upper() + sentence[1:]


def _shorter(value: str) -> tuple[str, ...]:
    found = _SHORTER.fullmatch(value)
    return (found["name"] or found["number"],) if found else ()


def _alike(one: str, other: str) -> bool:
    # as words of letters and digits, and as scoring sees them, without punctuation
    return any(a in b or b in a for a, b in zip(_forms(one), _forms(other), strict=True))


@lru_cache(4096)
def _forms(text: str) -> tuple[str, str]:
    spaced, deleted = (" ".join(_PUNCTUATION.sub(gap, text.lower()).split()) for gap in (" ", ""))
    return f" {spaced} ", f" {deleted} "
