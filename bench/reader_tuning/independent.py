"""`python -m reader_tuning.independent READER --out JSON`: what a reader answers of questions written apart.

By full prefill, greedily. A reader that answers less than .85 of a task is not to be compared by it. Seeds 1
to 3 are for choosing among readers and sittings; readers of other shapes are compared by seed 4.
"""

import argparse
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from ragcache_bench.tasks.independent import INDEPENDENT

from reader_tuning.contexts import Context
from reader_tuning.examine import examine, shares
from reader_tuning.readers import load_reader
from reader_tuning.rows import Layout

TASKS = ("fresh-facts", "fresh-sections")


def main() -> None:
    """Parse the command line, ask, and write shares and replies."""
    parser = argparse.ArgumentParser(prog="python -m reader_tuning.independent", description=__doc__)
    parser.add_argument("reader", type=Path, help="folder of a reader, or of an adapter of the tuned SmolLM2")
    parser.add_argument("--n", type=int, default=64, help="questions of each task")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True, help="JSON to write")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    model, tokenizer = load_reader(given.reader)
    found = ask(model.eval(), Layout(tokenizer), given.n, given.seed)
    about = {"reader": given.reader.name, "n": given.n, "seed": given.seed}
    given.out.write_text(json.dumps({"meta": about, "tasks": found}, indent=1) + "\n", encoding="utf-8")
    for name, task in found.items():
        print(name, task["shares"])


def ask(model: Any, layout: Layout, n: int, seed: int, tasks: Iterable[str] = TASKS) -> dict[str, Any]:
    """Shares and replies, by task."""
    found = {}
    for name in tasks:
        examples = INDEPENDENT[name].examples(n, seed)
        contexts = [Context(one.chunks, ((one.question, one.answers),)) for one in examples]
        replies = examine(model, layout, contexts)
        found[name] = {"shares": shares(replies), "replies": [asdict(reply) for reply in replies]}
    return found


if __name__ == "__main__":
    main()
