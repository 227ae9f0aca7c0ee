"""Every contender answers every question, in this process or in several, and each answer is kept."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from ragcache.encode import Activations, Alone, Encoder, Fused, Prefixed, PromptEncoder, Sink
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.report import Progress, ignore_progress
from ragcache.retrieve import Embedder
from ragcache_bench.asking import Asked, Job, pages_of, work
from ragcache_bench.contenders import Contender, in_turn
from ragcache_bench.fused_neighbours import Kind
from ragcache_bench.records import Journal, Record, digest
from ragcache_bench.references import EVIDENCE
from ragcache_bench.tasks import KNOWN, Example
from ragcache_bench.tasks.example import add_titles
from ragcache_bench.workers import Workers

Tasks = Mapping[str, Sequence[Example]]


@dataclass(frozen=True)
class Bench:
    """A reader, how it is asked, and where what comes out is kept; a run that was interrupted resumes.

    Attributes
    ----------
    reader : Reader
        Who answers.
    journal : Journal
        What there is already is not asked again.
    sampling : Sampling
        Greedy, with the most tokens of an answer.
    embedder : Embedder
        Finds similar chunks.
    workers : Workers or None
        Several processes that answer; this one where it is None.
    progress : callable
        Called after each step.
    together : bool
        Whether a question's contenders answer at once; nothing is timed then.
    """

    reader: Reader
    journal: Journal
    sampling: Sampling = field(default_factory=lambda: Sampling(max_new_tokens=40))
    embedder: Embedder = field(default_factory=Embedder)
    workers: Workers | None = None
    progress: Progress = ignore_progress
    together: bool = False

    def answers(self, tasks: Tasks, field: Sequence[Contender], company: Kind = "similar") -> list[Record]:
        """Answer every question with every contender.

        The chunks of a task's questions go into one temporary index, each encoded once per encoding; a fused chunk's
        neighbours come from that whole pool, not from its own question's chunks. The contenders take turns on each
        question, in rotating order, so that whatever else the machine does hits all of them alike; the seeds of random
        selection take turns over the questions. Those with a title line answer among themselves, where titles
        add anything: their chunks are others. The reference `evidence` is not asked where a set marks none: it would
        be told nothing, and be `naive`.

        Parameters
        ----------
        tasks : mapping of str to sequence of Example
            Questions by task.
        field : sequence of Contender
            Who takes part.
        company : str
            Which neighbours a fused chunk has, one of `ragcache_bench.fused_neighbours.KINDS`.

        Returns
        -------
        list of Record
            One per task, question and contender, the seeds of one counting once.

        Raises
        ------
        PromptTooLong
            If a question's chunks do not fit the reader.
        """
        parts = [part for name, examples in tasks.items() for part in _parts(name, examples, field)]
        plans = [self._plan(examples, those, company) for _, examples, those in parts]
        jobs = [self._job(name, of, plan, company) for (name, of, _), plan in zip(parts, plans, strict=True)]
        total = sum(map(len, plans))
        done = total - sum(len(job.questions) for job in jobs)
        self.progress("questions", done, total)
        left = [job for job in jobs if job.questions]
        with closing(self._answered(left)) as answered:  # an interrupt ends other processes at once
            for more, records in enumerate(answered, done + 1):
                self.journal.add(records)
                self.progress("questions", more, total)
        keys = dict.fromkeys(key for plan in plans for asked in plan for key, _ in asked.turns)
        return [self.journal.known[key] for key in keys]

    def _plan(self, examples: Sequence[Example], field: Sequence[Contender], company: Kind) -> list[Asked]:
        """Who answers which question under which key."""
        pool = digest(*(text for example in examples for text in example.chunks))
        about = (self.reader.identity, self.embedder.name, company, pool, repr(self.sampling))
        pages = [digest(repr(found))] if (found := pages_of(examples)) else []
        plan = []
        for number, example in enumerate(examples):
            asked = digest(*about, repr(example))
            plan.append(Asked(example, tuple((_key(asked, who, pages), who) for who in in_turn(field, number))))
        return plan

    def _job(self, task: str, examples: Sequence[Example], plan: Sequence[Asked], company: Kind) -> Job:
        """What of a plan is not known yet."""
        known = self.journal.known
        left = (Asked(one.example, tuple(turn for turn in one.turns if turn[0] not in known)) for one in plan)
        asked = tuple(one for one in left if one.turns)
        return Job(task, tuple(examples), asked, self.sampling, company, self.together)

    def _answered(self, jobs: Sequence[Job]) -> Generator[list[Record]]:
        if self.workers is not None:
            yield from self.workers.records(jobs, self.embedder.name, self.progress)
            return
        for job in jobs:
            yield from work(job, self.reader, self.embedder, self.progress)


def _key(asked: str, who: Contender, pages: Sequence[str]) -> str:
    """Of an answer; where an encoder looks at whole documents they decide it too, the pages in no prompt included."""
    return digest(asked, *(pages if looks_at_documents(who.method.encode) else ()), repr(who))


def looks_at_documents(encoder: Encoder | None) -> bool:
    """Whether an encoder may ask what stands before a chunk in its document: of one that is not ours nobody knows."""
    match encoder:
        case None | Alone() | Prefixed() | PromptEncoder() | Sink():
            return False
        case Activations(of=of):
            return looks_at_documents(of)
        case Fused(by=by):
            return by != "similarity"
    return True


def _parts(
    name: str, examples: Sequence[Example], field: Sequence[Contender]
) -> Iterator[tuple[str, Sequence[Example], Sequence[Contender]]]:
    """A task as it is, and its questions with titles in the chunks, each with who answers them so."""
    if name not in KNOWN and not any(example.gold for example in examples):
        field = [who for who in field if who.method.name != EVIDENCE.name]
    yield name, examples, [who for who in field if not who.titled]
    titled = [add_titles(example) for example in examples]
    those = [who for who in field if who.titled]
    if those and titled != list(examples):
        yield name, titled, those
