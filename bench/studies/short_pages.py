"""Short pages about one subject each: a header that names it, and chunks that say `it`. For the studies beside this."""

import random
from dataclasses import dataclass

from ragcache_bench.questions.idle import idle_sentence
from ragcache_bench.questions.names import Names
from ragcache_bench.questions.relations import BY_SUBJECT, Relation

_KINDS = ("project", "product", "site", "policy", "company")


@dataclass(frozen=True)
class Told:
    """A chunk that tells a fact without its subject's name."""

    relation: Relation
    value: str
    text: str


class Pages:
    """Draws names and facts of one kind of subject.

    Parameters
    ----------
    rng : random.Random
        What chooses.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.names = Names(rng, held=True)
        self.kind = rng.choice(_KINDS)

    def subject(self) -> str:
        """A name that the bundled reader was not trained on."""
        return self.names.draw(self.kind)

    def header(self, name: str) -> str:
        """A page's first chunk."""
        return self.padded(f"This page is about {name}.")

    def told(self, count: int) -> list[Told]:
        """So many chunks, each with another fact of whatever the page is about."""
        return [self._told(relation) for relation in self.rng.sample(BY_SUBJECT[self.kind], count)]

    def stranger(self) -> str:
        """A chunk about a person, who has no page."""
        relation = self.rng.choice(BY_SUBJECT["person"])
        said = self.rng.choice(relation.says)
        return self.padded(said.format(s=self.names.draw("person"), o=self.names.draw(relation.value)))

    def padded(self, said: str) -> str:
        """A sentence between idle ones."""
        return " ".join((idle_sentence(self.rng), said, idle_sentence(self.rng), idle_sentence(self.rng)))

    def _told(self, relation: Relation) -> Told:
        value = self.names.draw(relation.value)
        return Told(relation, value, self.padded(self.rng.choice(relation.it).format(o=value)))
