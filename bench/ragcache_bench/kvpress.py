"""Answers as kvpress keeps those of its KV-compression methods: one folder for each task, method and budget.

The names of folders, files and columns are those of its `evaluate.py`, so that rows of both can be put side by side.
"""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from ragcache_bench.datasets import Public
from ragcache_bench.datasets.item import PARTS
from ragcache_bench.records import Record
from ragcache_bench.tasks import Example, Task

_PRESS = "ragcache"
_TABLES = "kvpress"  # the set that reads its tables
_COLUMNS = ("question", "answer_prefix", "answer", "task", "max_new_tokens", "predicted_answer", "compression_ratio")


@dataclass(frozen=True)
class Asked:
    """A task and the questions that were drawn from it."""

    task: Task
    examples: Sequence[Example]


def write_results(
    folder: Path, records: Sequence[Record], asked: Mapping[str, Asked], about: Mapping[str, Any]
) -> list[Path]:
    """Write `predictions.csv`, `metrics.json` and `config.yaml` for each task, method and budget.

    No KV pair is dropped here, so `compression_ratio` is 0 throughout, and a budget is part of the press's name,
    "ragcache_cacheblend_r0.15"; `config.yaml` tells the share that was recomputed. The metric is `string_match`, which
    kvpress gives RULER: the share of the wanted strings that the answer contains, whatever the task.

    Parameters
    ----------
    folder : Path
        Where the folders go; one that is there is written anew.
    records : sequence of Record
        From `ragcache_bench.runs.Bench.answers`.
    asked : mapping of str to Asked
        By a task's name.
    about : mapping of str to object
        The run's meta.

    Returns
    -------
    list of Path
        The folders.
    """
    groups = _grouped(records)
    return [
        _write(folder, _Rows(task, method, recompute, group), asked[task], about)
        for (task, method, recompute), group in groups.items()
    ]


@dataclass(frozen=True)
class _Rows:
    """One contender's answers to a task's questions, its seeds taken together."""

    task: str
    method: str
    recompute: float | None
    records: Sequence[Record]

    @property
    def press(self) -> str:
        budget = "" if self.recompute is None else f"_r{self.recompute:g}"
        return f"{_PRESS}_{self.method}{budget}"

    def mean(self, value: Callable[[Record], float | None]) -> float | None:
        """Mean over the answers that have the value."""
        found = [one for record in self.records if (one := value(record)) is not None]
        return fmean(found) if found else None


def _grouped(records: Iterable[Record]) -> dict[tuple[str, str, float | None], list[Record]]:
    groups: dict[tuple[str, str, float | None], list[Record]] = {}
    for record in records:
        groups.setdefault((record.task, record.method, record.recompute), []).append(record)
    return groups


def _write(folder: Path, rows: _Rows, asked: Asked, about: Mapping[str, Any]) -> Path:
    dataset, part = _source(rows.task, asked.task)
    model = _model(str(about["reader"]))
    names = (dataset, part, model.replace("/", "--"), rows.press, "0.00", f"n{len(asked.examples)}")
    out = folder / "__".join(filter(None, names))
    out.mkdir(parents=True, exist_ok=True)
    _write_predictions(out / "predictions.csv", rows, asked.examples, about["max_new_tokens"])
    (out / "metrics.json").write_text(json.dumps(_metrics(rows, asked.examples), indent=4) + "\n", encoding="utf-8")
    config = {
        "dataset": dataset, "data_dir": part or None, "model": model, "device": str(about.get("device")),
        "press_name": rows.press, "compression_ratio": 0.0, "max_new_tokens": about["max_new_tokens"],
        "query_aware": False, "seed": about.get("seed", 0), "questions": len(asked.examples), "method": rows.method,
        "recompute": rows.recompute, "charged": rows.mean(lambda record: record.charged),
        "charged_flops": rows.mean(lambda record: record.charged_flops), "exact_match": rows.mean(lambda one: one.em),
        "f1": rows.mean(lambda record: record.f1), "versions": about.get("versions"), "commit": about.get("commit"),
    }  # fmt: skip
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in config.items()]  # JSON is YAML
    (out / "config.yaml").write_text("".join(lines), encoding="utf-8")
    return out


def _source(name: str, task: Task) -> tuple[str, str]:
    """Data set and part: of a table of kvpress's the two folders above it, "ruler" and "4096"; else the task's name.

    So it is where another table has the same folders' names.
    """
    if isinstance(task, Public) and name.startswith(_TABLES) and not task.label:
        folder = task.path.resolve().parent
        return folder.parent.name or name, folder.name
    return name, ""


def _model(name: str) -> str:
    """A hub id as it is, a folder by its own name."""
    return Path(name).name if Path(name).exists() else name


def _write_predictions(path: Path, rows: _Rows, examples: Sequence[Example], max_new_tokens: int) -> None:
    known = {example.id: example for example in examples}
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, _COLUMNS)
        table.writeheader()
        for record in rows.records:
            example = known[record.id]
            table.writerow({
                "question": example.question, "answer_prefix": "", "answer": json.dumps(_listed(example)),
                "task": _part(example), "max_new_tokens": max_new_tokens, "predicted_answer": record.answer,
                "compression_ratio": 0.0,
            })  # fmt: skip


def _metrics(rows: _Rows, examples: Sequence[Example]) -> dict[str, dict[str, float]]:
    """`string_match` in percent by task; questions that state no answer are not scored."""
    known = {example.id: example for example in examples}
    scored = sorted(
        (_part(known[record.id]), _string_match(record.answer, known[record.id]))
        for record in rows.records
        if known[record.id].answers
    )
    groups = groupby(scored, lambda pair: pair[0])
    return {part: {"string_match": round(100 * fmean(score for _, score in pairs), 2)} for part, pairs in groups}


def _part(example: Example) -> str:
    """The task that a row of a kvpress table names, "niah_single_1", else the set's."""
    if not example.task.startswith(_TABLES):
        return example.task
    return example.id.removeprefix(f"{example.task}-").rpartition("-")[0] or example.task


def _listed(example: Example) -> list[str]:
    """One list, as in kvpress's tables: the parts of the one answer, or the alternatives."""
    return example.answers[0].split(PARTS) if len(example.answers) == 1 else list(example.answers)


def _wanted(example: Example) -> list[list[str]]:
    """The strings to find, by accepted answer: those of one answer are all wanted."""
    return [answer.split(PARTS) for answer in example.answers] or [[]]


def _string_match(said: str, example: Example) -> float:
    """The share of wanted strings that an answer contains, for the accepted answer that it fits best."""
    text = said.lower()
    return max(fmean(float(part.lower() in text) for part in parts) for parts in _wanted(example))
