"""All findings, each from its own measurements."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragcache.errors import InvalidArgument
from ragcache.evaluate.findings import deviation, effects, fusion, reversals
from ragcache.evaluate.findings.finding import Finding
from ragcache.evaluate.notes import Notes
from ragcache.evaluate.records import Journal
from ragcache.evaluate.runs import Progress
from ragcache.evaluate.tasks import TASKS, Example
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.retrieve import Embedder

Tasks = Mapping[str, Sequence[Example]]
LETTERS = {letter: letter for letter in "abcd"}


@dataclass(frozen=True)
class Looking:
    """Looks for findings with one reader; a run that was interrupted resumes.

    Attributes
    ----------
    reader : Reader
        Who answers.
    notes : Notes
        What was measured already.
    sampling : Sampling
        Greedy, with the most tokens of an answer.
    progress : callable
        Called after each step.
    embedder : Embedder or None
        Finds similar chunks; the default one otherwise.
    """

    reader: Reader
    notes: Notes
    sampling: Sampling
    progress: Progress
    embedder: Embedder | None = None

    def at_keys(self, letters: Sequence[str], tasks: Tasks) -> list[Finding]:
        """Findings a and b: where keys deviate."""
        makers: dict[str, Callable[[deviation.Deviations], Finding]] = {
            "a": deviation.heads_finding, "b": deviation.kept_finding
        }  # fmt: skip
        wanted = [makers[letter] for letter in letters if letter in makers]
        found = deviation.Deviating(self.reader, self.notes, self.progress).measure(tasks) if wanted else {}
        return [make(found) for make in wanted]

    def at_fusion(self, tasks: Tasks) -> list[Finding]:
        """Findings c1 and c2: what the encoding is worth, and whose company it takes."""
        embedder = self.embedder or Embedder()
        found = fusion.Ablation(self.reader, embedder, self.notes, self.sampling, self.progress).measure(tasks)
        return [effects.ladder_finding(found), effects.ablation_finding(found)]


def at_answers(raw: Path) -> Finding:
    """Finding d, from the JSONL of a quality run's answers.

    Where one contender answered a question twice, under other circumstances, its last answer counts. The questions are
    listed with their words where the run's JSON, which says how they were drawn, lies beside.

    Raises
    ------
    InvalidArgument
        If there are no answers by full prefill.
    """
    last = {(r.task, r.id, r.method, r.recompute, r.seed): r for r in Journal(raw).known.values()}
    if not any(r.method == "full" for r in last.values()):
        raise InvalidArgument(f"{raw} holds no answers by full prefill; make it with `ragcache bench quality`")
    return reversals.finding(list(last.values()), _asked(raw.with_suffix(".json"), {r.task for r in last.values()}))


def _asked(run: Path, tasks: Collection[str]) -> dict[str, Example]:
    """A run's generated questions by id."""
    if not run.exists():
        return {}
    about = json.loads(run.read_text(encoding="utf-8"))["meta"]
    drawn = (TASKS[task].examples(about["n"], about["seed"]) for task in tasks if task in TASKS)
    return {example.id: example for examples in drawn for example in examples}
