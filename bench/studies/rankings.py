"""Do methods rank alike on different readers? Kendall's tau of every pair of readers, over the same questions.

    python bench/studies/rankings.py base=runs/base.jsonl qwen3=runs/qwen3.jsonl --out docs/benchmarks/rankings.json

Each file is what `ragcache bench quality` keeps beside its JSON: an answer a line. Methods that took part everywhere
are ranked by exact match, a mean over tasks; questions that all readers were asked count. The interval comes from
drawing questions with replacement, the same ones for every reader.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from ragcache_bench.commands.options import write
from ragcache_bench.contenders import TITLE
from ragcache_bench.markdown import table
from ragcache_bench.records import Journal, Record
from scipy.stats import kendalltau

from ragcache.errors import InvalidArgument

RESAMPLES = 1000
LEFT_OUT = ("full", "evidence", "true-deviation")
"""The reference, and those that know more than a method may."""

Scores = NDArray[np.float64]  # (methods, questions)


@dataclass(frozen=True)
class Tau:
    """Two readers, and how alike they rank the methods: 1 the same order, 0 unrelated, -1 reversed.

    None where one of them ranks nothing, all scores being the same.
    """

    one: str
    other: str
    tau: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Asked:
    """Exact match of every reader, method by question, and each question's task."""

    methods: list[str]
    tasks: list[str]
    scores: dict[str, Scores]

    def means(self, drawn: NDArray[np.int64] | None = None) -> dict[str, Scores]:
        """Each reader's score of every method, (methods,): a mean over tasks, of some questions or all."""
        at = np.arange(len(self.tasks)) if drawn is None else drawn
        of = np.array(self.tasks)[at]
        shares = [at[of == task] for task in dict.fromkeys(self.tasks)]
        return {
            name: np.mean([one[:, share].mean(1) for share in shares if len(share)], axis=0)
            for name, one in self.scores.items()
        }


def gather(journals: Mapping[str, Sequence[Record]]) -> Asked:
    """What all readers have in common.

    Raises
    ------
    InvalidArgument
        If that is nothing.
    """
    by_reader = {name: _by_question(records) for name, records in journals.items()}
    methods = [one for one in next(iter(by_reader.values()), {}) if all(one in found for found in by_reader.values())]
    if len(methods) < 3:
        raise InvalidArgument(
            f"{', '.join(journals)} have {len(methods)} methods in common; give files of runs with the same --methods"
        )
    common = set.intersection(*(set(found[method]) for found in by_reader.values() for method in methods))
    asked = sorted(common)
    if not asked:
        raise InvalidArgument(f"{', '.join(journals)} were asked nothing in common; give files of the same tasks")
    scores = {
        name: np.array([[found[method][key] for key in asked] for method in methods])
        for name, found in by_reader.items()
    }
    return Asked(methods, [task for task, _ in asked], scores)


def compare(asked: Asked, resamples: int = RESAMPLES, seed: int = 0) -> list[Tau]:
    """Kendall's tau-b of every pair of readers, with its 95 % bootstrap interval."""
    rng, count = np.random.default_rng(seed), len(asked.tasks)
    drawn = [asked.means(rng.integers(0, count, count)) for _ in range(resamples)]
    whole, found = asked.means(), []
    for one, other in combinations(asked.scores, 2):
        taus = [tau for means in drawn if (tau := _tau(means[one], means[other])) is not None]
        low, high = map(float, np.percentile(taus, [2.5, 97.5])) if taus else (None, None)
        found.append(Tau(one, other, _tau(whole[one], whole[other]), low, high))
    return found


def _tau(ours: Scores, theirs: Scores) -> float | None:
    if min(np.ptp(ours), np.ptp(theirs)) == 0:
        return None
    return float(kendalltau(ours, theirs).statistic)


def _by_question(records: Sequence[Record]) -> dict[str, dict[tuple[str, str], float]]:
    """Exact match by method with its budget, and by task and question; several seeds are averaged.

    Rows with titles are left out, for only some tasks have them; of answers that were made again, the last one counts.
    """
    found: dict[str, dict[tuple[str, str], list[float]]] = {}
    last = {(one.task, one.id, one.method, one.recompute, one.seed): one for one in records}
    for record in last.values():
        if record.method not in LEFT_OUT and not record.method.endswith(TITLE):
            name = record.method if record.recompute is None else f"{record.method} {record.recompute:g}"
            found.setdefault(name, {}).setdefault((record.task, record.id), []).append(record.em)
    return {name: {key: fmean(of) for key, of in by_id.items()} for name, by_id in found.items()}


def main(
    readers: Annotated[list[str], typer.Argument(metavar="NAME=FILE…", help="Readers and their answers.")],
    out: Annotated[Path, typer.Option(help="JSON to write; a table in Markdown goes beside it.")],
) -> None:
    """Compare the rankings of two and more readers."""
    files = {name: Path(file) for name, _, file in (one.partition("=") for one in readers)}
    if len(files) < len(readers) or not all(file.is_file() for file in files.values()):
        raise InvalidArgument(f"{' '.join(readers)} are not different names with files; write base=base.jsonl")
    asked = gather({name: Journal(file).records for name, file in files.items()})
    taus, means = compare(asked), asked.means()
    rows = [[method, *(float(means[name][i]) for name in files)] for i, method in enumerate(asked.methods)]
    write(
        out,
        {
            "meta": {"questions": len(asked.tasks), "tasks": list(dict.fromkeys(asked.tasks)), "readers": list(files)},
            "scores": {name: dict(zip(asked.methods, map(float, means[name]), strict=True)) for name in files},
            "taus": [asdict(one) for one in taus],
        },
    )
    pairs = [[one.one, one.other, one.tau, one.low, one.high] for one in taus]
    text = "\n".join(
        [table(["method", *files], rows), table(["reader", "reader", "Kendall's tau", "low", "high (95 %)"], pairs)]
    )
    out.with_suffix(".md").write_text(text, encoding="utf-8")
    typer.echo(text)


if __name__ == "__main__":
    typer.run(main)
