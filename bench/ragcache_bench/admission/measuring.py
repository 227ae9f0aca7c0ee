"""Measures what the rule asks for: the engine's answers, a second reader's, and those read through a mask."""

from collections.abc import Sequence
from functools import partial
from statistics import fmean

from ragcache import methods
from ragcache.model.reader import Reader
from ragcache.prompt import Template
from ragcache_bench.admission.rule import Admission, Measured, Rule, judge
from ragcache_bench.contenders import TITLE, Contender, contenders
from ragcache_bench.metrics import agrees, exact_match
from ragcache_bench.records import Record
from ragcache_bench.reference_attention import View, answer, prompt_of
from ragcache_bench.runs import Bench, Tasks
from ragcache_bench.tasks import Example

_PAIR = ("full", "naive")
_PLAIN = (*_PAIR, "heads", "random")
_TITLED = f"naive{TITLE}"
_BLIND = {"blind full": View(blind=True), "blind naive": View(alone=True, blind=True)}


def admit(
    bench: Bench, tasks: Tasks, rule: Rule, *, seeds: Sequence[int] = (0,), control: Bench | None = None
) -> list[Admission]:
    """Judge every task, from what is cheap to measure first, and only where naive reuse loses from what is dear.

    Parameters
    ----------
    bench : Bench
        Who answers; its journal may be a quality run's.
    tasks : mapping of str to sequence of Example
        Questions by task; `NAME-twin` is the twin of NAME, if it is there.
    rule : Rule
        What to ask for.
    seeds : sequence of int
        Of random selection, in turn.
    control : Bench, optional
        Asks a second reader, trained half on chunks that see only themselves.
    """
    field = contenders((*_PLAIN, _TITLED), (rule.random_share,), seeds, controls=())
    field.append(Contender(methods.find_method("epic"), 1.0))
    records = _answers(bench, tasks, field)
    measured = {name: {method: _scores(of, method) for method in _PLAIN} for name, of in records.items()}
    for name, of in records.items():
        if titled := _scores(of, _TITLED):
            measured[name]["titled naive"] = titled
    losing = [name for name, scores in measured.items() if _lost(scores) >= rule.loss - 1e-9]
    second = _answers(control, {name: tasks[name] for name in losing}, field[:2]) if control and losing else {}
    for name in losing:
        measured[name] |= _blind(bench, name, tasks[name])
        if f"{name}-twin" in tasks:
            measured[name] |= {f"twin {which}": measured[f"{name}-twin"][which] for which in _PAIR}
        if name in second:
            measured[name] |= {f"control {which}": _scores(second[name], which) for which in _PAIR}
    judged = []
    for name, of in records.items():
        heads = [r.charged for r in of if r.method == "heads" and r.charged is not None]
        all_of_it = Measured(measured[name], fmean(heads or [0.0]), _same(of), _end_tokens(bench.reader, tasks[name]))
        judged.append(judge(name, all_of_it, rule, twin=name.endswith("-twin"), control=control is not None))
    return judged


def _answers(bench: Bench, tasks: Tasks, field: Sequence[Contender]) -> dict[str, list[Record]]:
    records = bench.answers(tasks, field)
    return {name: [record for record in records if record.task == name] for name in tasks}


def _lost(scores: dict[str, list[float]]) -> float:
    return fmean(scores["full"]) - fmean(scores["naive"])


def _blind(bench: Bench, name: str, examples: Sequence[Example]) -> dict[str, list[float]]:
    """The question blind to the chunks' first tokens, by question in order of the ids."""
    found: dict[str, list[float]] = {key: [] for key in _BLIND}
    for done, example in enumerate(sorted(examples, key=lambda one: one.id), 1):
        for key, view in _BLIND.items():
            asked = (example.id, example.question, *example.chunks, repr(view), repr(bench.sampling))
            ask = partial(answer, bench.reader, prompt_of(bench.reader, example), view, bench.sampling)
            text = bench.journal.recall((bench.reader.fingerprint, *asked), ask)
            found[key].append(exact_match(text, example.answers))
        bench.progress(f"{name}: blind", done, len(examples))
    return found


def _scores(records: Sequence[Record], method: str) -> list[float]:
    """Exact match by question in order of the ids, averaged over seeds."""
    by_id: dict[str, list[float]] = {}
    for record in records:
        if record.method == method:
            by_id.setdefault(record.id, []).append(record.em)
    return [fmean(by_id[name]) for name in sorted(by_id)]


def _same(records: Sequence[Record]) -> float:
    full = {record.id: record.answer for record in records if record.method == "full"}
    return fmean(agrees(record.answer, full[record.id]) for record in records if record.method == "epic")


def _end_tokens(reader: Reader, examples: Sequence[Example]) -> int:
    """Tokens which a chunk's end adds to the chunk's own, the fewest over the first questions' chunks."""
    template = Template(reader.tokenizer)
    texts = [text for example in examples[:10] for text in example.chunks]
    return min(len(template.chunk(text, "")) - len(template.plain(text)) for text in texts)
