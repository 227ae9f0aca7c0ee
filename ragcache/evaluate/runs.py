"""Every contender answers every question, in this process or in several, and each answer is kept."""

import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ragcache.evaluate.asking import Asked, Job, Progress, charged, work
from ragcache.evaluate.contenders import Contender
from ragcache.evaluate.records import Journal, Record, digest
from ragcache.evaluate.tasks import Example
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.retrieve import Embedder

__all__ = ["Hands", "Here", "Progress", "Record", "charged", "run"]

MAX_NEW_TOKENS = 40


class Hands(Protocol):
    """Who does the work."""

    @property
    def embedder_name(self) -> str:
        """Which embedder finds neighbours."""

    def records(self, jobs: Sequence[Job], progress: Progress) -> Generator[list[Record]]:
        """Each question's records, in any order."""


@dataclass(frozen=True)
class Here:
    """One process, one task after the other."""

    reader: Reader
    embedder: Embedder

    @property
    def embedder_name(self) -> str:
        """Which embedder finds neighbours."""
        return self.embedder.name

    def records(self, jobs: Sequence[Job], progress: Progress) -> Generator[list[Record]]:
        """Each question's records, in the jobs' order."""
        for job in jobs:
            with tempfile.TemporaryDirectory(prefix="ragcache-bench-") as folder:
                yield from work(job, self.reader, self.embedder, Path(folder), progress)


def run(
    reader: Reader,
    tasks: Mapping[str, Sequence[Example]],
    field: Sequence[Contender],
    raw: Path,
    *,
    embedder: Embedder | None = None,
    max_new_tokens: int = MAX_NEW_TOKENS,
    progress: Progress | None = None,
    hands: Hands | None = None,
) -> list[Record]:
    """Answer every question with every contender.

    The chunks of a task's questions go into one temporary index, each encoded once per encoding; a fused chunk's
    neighbours come from that whole pool, not from its own question's chunks. The contenders take turns on each
    question, in rotating order, so that whatever else the machine does hits all of them alike.

    Parameters
    ----------
    reader : Reader
        Who answers.
    tasks : mapping of str to sequence of Example
        Questions by task.
    field : sequence of Contender
        Who takes part.
    raw : Path
        JSONL that every question's answers are appended to; what is there already is not asked again.
    embedder : Embedder, optional
        Finds neighbours; the default one otherwise.
    max_new_tokens : int
        Most tokens of an answer.
    progress : callable, optional
        Called after each step.
    hands : Hands, optional
        Who does the work: `ragcache.evaluate.workers.Workers`, or this process with `reader` and `embedder`.

    Returns
    -------
    list of Record
        One per task, question and contender.

    Raises
    ------
    InvalidArgument
        If `raw` is some other file.
    PromptTooLong
        If a question's chunks do not fit the reader.
    """
    hands = hands or Here(reader, embedder or Embedder())
    report = progress or _silent
    journal = Journal(raw)
    about = (reader.fingerprint, hands.embedder_name)
    plans = {name: _turns(examples, field, about, max_new_tokens) for name, examples in tasks.items()}
    jobs = [
        _job(name, tasks[name], plan, journal.known, Sampling(max_new_tokens=max_new_tokens))
        for name, plan in plans.items()
    ]
    missing = [job for job in jobs if job.questions]
    total = sum(len(plan) for plan in plans.values())
    done = total - sum(len(job.questions) for job in missing)
    report("questions", done, total)
    with closing(hands.records(missing, report)) as answered:  # an interrupt ends other processes at once
        for more, records in enumerate(answered, done + 1):
            journal.add(records)
            report("questions", more, total)
    return [journal.known[key] for plan in plans.values() for asked in plan for key, _ in asked.turns]


def _turns(
    examples: Sequence[Example], field: Sequence[Contender], about: tuple[str, str], max_new_tokens: int
) -> list[Asked]:
    """Who answers which question under which key; none is always first."""
    pool = digest(*(text for example in examples for text in example.chunks))
    names = [repr(who) for who in field]
    plan = []
    for number, example in enumerate(examples):
        asked = digest(*about, pool, repr(example), str(max_new_tokens))
        turns = [(digest(asked, name), who) for name, who in zip(names, field, strict=True)]
        first = number % len(field)
        plan.append(Asked(example, (*turns[first:], *turns[:first])))
    return plan


def _job(
    task: str, examples: Sequence[Example], plan: Sequence[Asked], known: Mapping[str, Record], sampling: Sampling
) -> Job:
    """What of a plan is not known yet."""
    left = (Asked(one.example, tuple(turn for turn in one.turns if turn[0] not in known)) for one in plan)
    return Job(task, tuple(examples), tuple(one for one in left if one.turns), sampling)


def _silent(stage: str, done: int, total: int) -> None:
    """Report nothing."""
