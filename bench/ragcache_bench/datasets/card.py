"""A data card: what a drawn sample really asks, before any score is read off it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

from ragcache_bench.datasets.item import closed, holds
from ragcache_bench.metrics import normalise
from ragcache_bench.tasks.example import Example

_SOUND = 0.98  # samples of extractive sets reach it
_COMMON = 0.15


@dataclass(frozen=True)
class Card:
    """Counts and shares over a sample of questions.

    Attributes
    ----------
    n : int
        Questions.
    unstated : float
        Share without an accepted answer: full prefill's own is the one to agree with.
    closed : float
        Share whose answer is yes, no or a choice, which no text needs to contain.
    answerable : float or None
        Share of the others whose chunks contain an accepted answer, both normalised as in scoring. None if there are
        no others.
    gold : float
        Share whose needed chunks are known.
    chunks, words : float
        Mean chunks, and mean words of all of them together, per question.
    repeated : int
        Questions asked before in the sample.
    majority : float
        Exact match of always giving the most frequent answer.
    missing : tuple of str
        Ids of the questions whose answer stands in none of their chunks.
    """

    n: int
    unstated: float
    closed: float
    answerable: float | None
    gold: float
    chunks: float
    words: float
    repeated: int
    majority: float
    missing: tuple[str, ...]

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What keeps scores on the sample from meaning what they seem to, one sentence each."""
        asked = round(self.n * (1 - self.closed - self.unstated))
        silent, unknown = round(self.n * self.unstated), round(self.n * (1 - self.gold))
        blind = "so there is no row" if unknown == self.n else "where nothing is recomputed by the row"
        found = {
            f"the answer stands in the chunks of only {asked - len(self.missing)} of {asked} questions; "
            "report scores on those": self.answerable is not None and self.answerable < _SOUND,
            f"{silent} of {self.n} questions state no answer; read their agreement with full prefill": silent > 0,
            f"{self.repeated} of {self.n} questions are asked more than once": self.repeated > 0,
            f"the needed chunks of {unknown} of {self.n} questions are not known, {blind} `evidence`": unknown > 0,
            f"one answer is right for {self.majority:.0%} of the questions": self.majority >= _COMMON,
        }
        return tuple(text for text, true in found.items() if true)

    def __str__(self) -> str:
        """Show counts and warnings in a few lines."""
        shown = {key: value for key, value in asdict(self).items() if key != "missing"}
        line = ", ".join(f"{key} {_short(value)}" for key, value in shown.items())
        return "\n".join([line, *(f"- {text}" for text in self.warnings)])


def card(examples: Sequence[Example]) -> Card:
    """Describe a sample; at least one example."""
    n = len(examples)
    stated = [example for example in examples if example.answers]
    asked = [example for example in stated if not closed(example.answers)]
    missing = tuple(example.id for example in asked if not answerable(example))
    counts = Counter(answer for example in examples for answer in {normalise(one) for one in example.answers})
    return Card(
        n=n,
        unstated=1 - len(stated) / n,
        closed=(len(stated) - len(asked)) / n,
        answerable=1 - len(missing) / len(asked) if asked else None,
        gold=sum(bool(example.gold) for example in examples) / n,
        chunks=sum(len(example.chunks) for example in examples) / n,
        words=sum(len(text.split()) for example in examples for text in example.chunks) / n,
        repeated=n - len({(normalise(example.question), _evidence(example)) for example in examples}),
        majority=max(counts.values(), default=0) / n,
        missing=missing,
    )


def answerable(example: Example) -> bool:
    """Whether no text needs to contain the answer, or one of the chunks contains an accepted one."""
    return closed(example.answers) or holds("\n".join(example.chunks), example.answers)


def _evidence(example: Example) -> frozenset[str]:
    """What tells two questions of the same words apart; company and order do not."""
    return frozenset(example.chunks[i] for i in example.gold) or frozenset(example.chunks)


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
