"""How a reader answers, by exact dense masks: full prefill, chunks computed alone, their first tokens recomputed."""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from ragcache_bench.metrics import bootstrap, exact_match
from ragcache_bench.reference_attention import View, answer, prompt_of
from ragcache_bench.tasks import TASKS, Task

from ragcache.errors import InvalidArgument
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader

#: Chunks computed alone, or behind the prefix; none of their tokens recomputed, or the first four.
MODES = {
    "full": View(),
    "naive": View(alone=True),
    "naive+prefix": View(alone=True, prefixed=True),
    "first4": View(alone=True, again=4),
    "first4+prefix": View(alone=True, prefixed=True, again=4),
}


def measure(
    reader: Reader, tasks: Mapping[str, Task], modes: Sequence[str], n: int, seed: int
) -> Iterator[dict[str, Any]]:
    """One row per task and mode: exact match and what it loses against the first mode, each with its 95 % interval."""
    sampling = Sampling(max_new_tokens=40)
    for task, made in tasks.items():
        asked = [(prompt_of(reader, one), one.answers) for one in made.examples(n, seed)]
        top: list[float] = []
        for mode in modes:
            hits = [exact_match(answer(reader, prompt, MODES[mode], sampling), gold) for prompt, gold in asked]
            top = top or hits
            score, lost = bootstrap(hits), bootstrap([a - b for a, b in zip(top, hits, strict=True)])
            yield {"task": task, "mode": mode, "n": len(hits), "score": score.mean, "ci": (score.low, score.high),
                   "lost": lost.mean, "lost_ci": (lost.low, lost.high)}  # fmt: skip


def chosen(names: Sequence[str] | None, chunks: int | None) -> dict[str, Task]:
    """Tasks by name, all of them without; at another number of chunks, those that have one.

    Raises
    ------
    InvalidArgument
        If a task that was named has no number of chunks.
    """
    tasks = {name: TASKS[name] for name in names or TASKS}
    if chunks is None:
        return tasks
    able = {name: task for name, task in tasks.items() if hasattr(task, "chunks")}
    if names and (left := sorted(set(names) - set(able))):
        raise InvalidArgument(f"the task {left[0]!r} has no number of chunks; leave out --chunks, or name other tasks")
    return {name: replace(task, chunks=chunks) for name, task in able.items()}  # type: ignore[type-var]


def main() -> None:
    """Parse the command line and print a JSON line per task and mode."""
    parser = argparse.ArgumentParser(prog="python -m reader_training.measure", description=__doc__)
    parser.add_argument("--reader", type=Path, required=True)
    parser.add_argument("--task", action="append", choices=list(TASKS))
    parser.add_argument("--mode", action="append", choices=list(MODES))
    parser.add_argument("--chunks", type=int, help="chunks per question; without it the task's own number")
    parser.add_argument("-n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    tasks = chosen(given.task, given.chunks)
    reader = Reader.load(str(given.reader), dtype="float32")
    for row in measure(reader, tasks, given.mode or list(MODES), given.n, given.seed):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
