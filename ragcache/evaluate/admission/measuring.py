"""Measures what the rule asks for: the engine's answers, a second reader's, and those read through a mask."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from ragcache import methods
from ragcache.evaluate.admission.rule import Admission, Measured, Rule, judge
from ragcache.evaluate.contenders import Contender, contenders
from ragcache.evaluate.masked import View, answer
from ragcache.evaluate.metrics import agrees, exact_match
from ragcache.evaluate.notes import Notes
from ragcache.evaluate.runs import Hands, Progress, Record, run
from ragcache.evaluate.tasks import Example
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.segments import Template

Tasks = Mapping[str, Sequence[Example]]


@dataclass(frozen=True)
class Admitting:
    """Measures what the rule asks for, cheap things first, and judges.

    Attributes
    ----------
    reader : Reader
        Who answers.
    raw : Path
        JSONL of the engine's answers, as of `ragcache.evaluate.runs.run`; it may be a quality run's. The answers read
        through a mask go beside it.
    rule : Rule
        What to ask for.
    control : Reader or None
        A second reader, trained half on chunks that see only themselves.
    seeds : sequence of int
        Of random selection.
    sampling : Sampling
        Greedy, with the most tokens of an answer.
    progress : callable
        Called after each step.
    hands, control_hands : Hands or None
        Who asks the readers; this process where it is None.
    """

    reader: Reader
    raw: Path
    rule: Rule
    control: Reader | None
    seeds: Sequence[int]
    sampling: Sampling
    progress: Progress
    hands: Hands | None = None
    control_hands: Hands | None = None

    def judge(self, tasks: Tasks) -> list[Admission]:
        """Judge every task; `NAME-twin` is the twin of NAME, if it is there.

        Parameters
        ----------
        tasks : mapping of str to sequence of Example
            Questions by task.
        """
        notes = Notes(self.raw.with_suffix(".masked.jsonl"))
        records = self._run(self.reader, tasks, self._field(), self.hands)
        measured = {name: self._plain(records[name]) for name in tasks}
        losing = [name for name, scores in measured.items() if self._loses(scores)]
        twins = {f"{name}-twin" for name in losing} & set(tasks)
        for name in losing:
            measured[name] |= self._masked(name, tasks[name], notes)
            if f"{name}-twin" in twins:
                measured[name] |= {f"twin {which}": measured[f"{name}-twin"][which] for which in ("full", "naive")}
        if self.control is not None and losing:
            field = contenders(["full", "naive"], (), controls=())
            second = self._run(self.control, {name: tasks[name] for name in losing}, field, self.control_hands)
            for name in losing:
                measured[name] |= {f"control {which}": _scores(second[name], which) for which in ("full", "naive")}
        return [self._judged(name, tasks[name], records[name], measured[name]) for name in tasks]

    def _judged(
        self, name: str, examples: Sequence[Example], records: Sequence[Record], scores: dict[str, list[float]]
    ) -> Admission:
        heads = [r.charged for r in _of(records, "heads") if r.charged is not None]
        measured = Measured(scores, fmean(heads or [0.0]), _same(records), _end_tokens(self.reader, examples))
        return judge(name, measured, self.rule, twin=name.endswith("-twin"), control=self.control is not None)

    def _plain(self, records: Sequence[Record]) -> dict[str, list[float]]:
        return {method: _scores(records, method) for method in ("full", "naive", "heads", "random")}

    def _loses(self, scores: Mapping[str, Sequence[float]]) -> bool:
        """Whether the dearer controls are worth their time."""
        return fmean(scores["full"]) - fmean(scores["naive"]) >= self.rule.loss - 1e-9

    def _field(self) -> list[Contender]:
        rows = contenders(["full", "naive", "heads", "random"], (self.rule.random_share,), self.seeds, controls=())
        return [*rows, Contender(methods.find("epic"), 1.0)]

    def _run(
        self, reader: Reader, tasks: Tasks, field: list[Contender], hands: Hands | None
    ) -> dict[str, list[Record]]:
        records = run(reader, tasks, field, self.raw, max_new_tokens=self.sampling.max_new_tokens,
                      progress=self.progress, hands=hands)  # fmt: skip
        return {name: [record for record in records if record.task == name] for name in tasks}

    def _masked(self, name: str, examples: Sequence[Example], notes: Notes) -> dict[str, list[float]]:
        """The question blind to the chunks' first tokens."""
        views = {"blind full": View(blind=True), "blind naive": View(alone=True, blind=True)}
        found: dict[str, list[float]] = {key: [] for key in views}
        for done, example in enumerate(examples, 1):
            for key, view in views.items():
                parts = (self.reader.fingerprint, *_asked(example), repr(view), repr(self.sampling))
                text = notes.recall(parts, self._answering(example, view))
                found[key].append(exact_match(text, example.answers))
            self.progress(f"{name}: blind", done, len(examples))
        return found

    def _answering(self, example: Example, view: View) -> Callable[[], str]:
        template = Template(self.reader.tokenizer)
        chunks = [template.chunk(text, str(i)) for i, text in enumerate(example.chunks)]
        prompt = template.prompt(chunks, example.question)
        return lambda: answer(self.reader, prompt, view, self.sampling)


def _asked(example: Example) -> tuple[str, ...]:
    return (example.id, example.question, *example.chunks)


def _of(records: Sequence[Record], method: str) -> list[Record]:
    return [record for record in records if record.method == method]


def _scores(records: Sequence[Record], method: str) -> list[float]:
    """Exact match by question in order of the ids, averaged over seeds."""
    by_id: dict[str, list[float]] = {}
    for record in _of(records, method):
        by_id.setdefault(record.id, []).append(record.em)
    return [fmean(by_id[name]) for name in sorted(by_id)]


def _same(records: Sequence[Record]) -> float:
    full = {record.id: record.answer for record in _of(records, "full")}
    return fmean(agrees(record.answer, full[record.id]) for record in _of(records, "epic"))


def _end_tokens(reader: Reader, examples: Sequence[Example]) -> int:
    """Tokens which a chunk's end adds to the chunk's own, the fewest over the first questions' chunks."""
    template = Template(reader.tokenizer)
    texts = [text for example in examples[:10] for text in example.chunks]
    return min(len(template.chunk(text, "")) - len(template.plain(text)) for text in texts)
