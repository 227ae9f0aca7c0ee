"""`python -m reader_tuning.curves READERS NAME ... --out JSON`: how readers were tuned, and what they answer.

Of each name, what there is: its log, `READERS/NAME/log.jsonl`, and what `reader_tuning.independent` wrote to
`READERS/NAME.json`.
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from ragcache_bench.report import meta

_EVERY = 30
"""Steps between two losses that are kept."""


def main() -> None:
    """Parse the command line, and write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m reader_tuning.curves", description=__doc__)
    parser.add_argument("readers", type=Path, help="folder of the readers")
    parser.add_argument("names", nargs="+", help="readers in it")
    parser.add_argument("--out", type=Path, required=True, help="JSON to write")
    given = parser.parse_args()
    found = {"meta": meta(device=torch.device("cpu")), **gather(given.readers, given.names)}
    given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def gather(readers: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Curves, and shares of the independent questions, by reader."""
    curves, shares = {}, {}
    for name in names:
        log, answers = readers / name / "log.jsonl", readers / f"{name}.json"
        if log.exists():
            lines = map(json.loads, log.read_text(encoding="utf-8").splitlines())
            curves[name] = [line for line in lines if "validation" in line or line["step"] % _EVERY == 0]
        if answers.exists():
            found = json.loads(answers.read_text(encoding="utf-8"))
            shares[name] = {"seed": found["meta"]["seed"]} | {t: task["shares"] for t, task in found["tasks"].items()}
    return {"curves": curves, "shares": shares}


if __name__ == "__main__":
    main()
