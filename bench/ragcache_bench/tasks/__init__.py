"""The benchmark's questions: generated notes with held-out names, others written apart, and the demo corpus."""

from typing import Protocol

from ragcache_bench.tasks.corpus import Corpus
from ragcache_bench.tasks.documents import DOCUMENTS, Documents
from ragcache_bench.tasks.example import Example
from ragcache_bench.tasks.generated import Binding, Lookup
from ragcache_bench.tasks.independent import INDEPENDENT
from ragcache_bench.tasks.sections import Sections
from ragcache_bench.tasks.trace import Trace

__all__ = [
    "DOCUMENTS",
    "DOCUMENT_TASKS",
    "INDEPENDENT",
    "KNOWN",
    "TASKS",
    "Binding",
    "Corpus",
    "Documents",
    "Example",
    "Lookup",
    "Sections",
    "Task",
    "Trace",
]


class Task(Protocol):
    """A frozen dataclass of sizes which makes examples."""

    @property
    def needs(self) -> bool:
        """Whether the answer is meant to need another chunk than the one it stands in."""

    def examples(self, n: int, seed: int = 0) -> list[Example]:
        """Return `n` examples, the same for the same `seed`."""


TASKS: dict[str, Task] = {
    "sections": Sections(),
    "sections-twin": Sections(twin=True),
    "pronouns": Binding("pronouns"),
    "pronouns-twin": Binding("pronouns", twin=True),
    "labels": Binding("labels"),
    "labels-twin": Binding("labels", twin=True),
    "pronouns-interleaved": Binding("pronouns", interleaved=1.0),
    "pronouns-interleaved-twin": Binding("pronouns", interleaved=1.0, twin=True),
    "units": Binding("units"),
    "units-twin": Binding("units", twin=True),
    "facts": Lookup("facts"),
    "needles": Lookup("needles"),
    "multivalue": Lookup("multivalue"),
    "counting": Lookup("counting"),
    "tracking": Lookup("tracking"),
    "twohop": Lookup("twohop"),
    "threehop": Lookup("threehop"),
    "exceptions": Lookup("exceptions"),
    "moves": Lookup("moves"),
    "comparing": Lookup("comparing"),
    "yesno": Lookup("yesno"),
    "unknown": Lookup("unknown"),
    "trace": Trace(),
    "corpus-one-hop": Corpus("one-hop"),
    "corpus-two-hop": Corpus("two-hop"),
    "corpus-section": Corpus("section"),
}
"""Tasks by name; the corpus tasks have at most as many examples as questions of their kind."""

DOCUMENT_TASKS: dict[str, Task] = {
    "sections-bare": Sections(header=False),
    "sections-misled": Sections(misled=True),
    "corpus-section-bare": Corpus("section", header=False),
}
"""What a document says or misstates beyond the prompt: only encoders that look at it can win or lose there.

They take part where they are named.
"""
KNOWN = {**TASKS, **DOCUMENT_TASKS, **DOCUMENTS, **INDEPENDENT}
