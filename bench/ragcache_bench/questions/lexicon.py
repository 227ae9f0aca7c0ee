"""What invented worlds are told in: subjects and relations, names, idle sentences, the words above a section."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from ragcache_bench.questions.idle import idle_sentence
from ragcache_bench.questions.names import Names
from ragcache_bench.questions.relations import BY_SUBJECT, Relation


class Naming(Protocol):
    """Draws names without repetition within one world."""

    def draw(self, kind: str) -> str:
        """Return a fresh name, or value, of a kind."""


@dataclass(frozen=True)
class Lexicon:
    """The words of a world.

    Attributes
    ----------
    relations : mapping of str to sequence of Relation
        What can be said of each kind of subject.
    names : callable
        Given randomness, whether only held-out names are drawn, and how many names share a word, draws names.
    idle : callable
        Makes a sentence that answers nothing.
    headers : tuple of str
        First lines of a section about `{s}`, the plainest first.
    kinds : tuple of str
        Kinds of subject that may be told of; empty leaves them to each family of questions.
    invent : callable, optional
        Makes a relation that is in no list.
    invented : float
        Share of relations made so.
    """

    relations: Mapping[str, Sequence[Relation]]
    names: Callable[[Random, bool, float], Naming]
    idle: Callable[[Random], str]
    headers: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    invent: Callable[[Random], Relation] | None = None
    invented: float = 0.0

    def some(self, rng: Random, kind: str, count: int) -> list[Relation]:
        """Draw so many different relations of a kind, or all there are."""
        rows = self.relations[kind]
        drawn = rng.sample(rows, min(count, len(rows)))
        return drawn if self.invent is None else [self._exchanged(rng, row) for row in drawn]

    def one(self, rng: Random, kind: str) -> Relation:
        """Draw a relation of a kind."""
        row = rng.choice(self.relations[kind])
        return row if self.invent is None else self._exchanged(rng, row)

    def _exchanged(self, rng: Random, row: Relation) -> Relation:
        return self.invent(rng) if self.invent is not None and rng.random() < self.invented else row


PLAIN = Lexicon(
    BY_SUBJECT,
    Names,
    idle_sentence,
    (
        "This page is about {s}.", "# {s}\n\nThis page is about {s}.", "# {s}", "These notes are about {s}.", "## {s}",
        "Here are the facts on {s}.", "# {s}\n\nHere are the facts on {s}.", "## {s}\n\nThese notes are about {s}.",
    ),
)  # fmt: skip
"""Few relations and wordings: what the generated tasks are told in."""
