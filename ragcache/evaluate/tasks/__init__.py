"""The benchmark's questions: generated look-ups with held-out names, and the demo corpus."""

from typing import Protocol

from ragcache.evaluate.tasks.corpus import Corpus
from ragcache.evaluate.tasks.example import Example
from ragcache.evaluate.tasks.facts import Facts
from ragcache.evaluate.tasks.sections import Sections
from ragcache.evaluate.tasks.twohop import TwoHop

__all__ = ["TASKS", "Corpus", "Example", "Facts", "Sections", "Task", "TwoHop"]


class Task(Protocol):
    """A frozen dataclass of sizes which makes examples."""

    def examples(self, n: int, seed: int = 0) -> list[Example]:
        """Return `n` examples, the same for the same `seed`."""


TASKS: dict[str, Task] = {
    "facts": Facts(),
    "twohop": TwoHop(),
    "sections": Sections(),
    "sections-twin": Sections(twin=True),
    "corpus-one-hop": Corpus("one-hop"),
    "corpus-two-hop": Corpus("two-hop"),
    "corpus-section": Corpus("section"),
}
"""Tasks by name; the corpus tasks have at most as many examples as questions of their kind."""
