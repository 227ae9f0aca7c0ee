"""A store over a disk that fails: seeded runs against a dictionary, and a kill behind every step of ingestion.

    python bench/studies/store_faults.py --out docs/benchmarks/store-faults.json

Every run is replayed by its seed: `--seed N --n 1`. A crash is one in this process: nothing that the store asks of the
disk happens after it, and what was asked before has happened. Power loss, which may undo what was not synced, is not
tried.
"""

import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import write
from ragcache_bench.faulty_disk import Outcome, run_seed
from ragcache_bench.kill_points import kill_everywhere

from ragcache.model.loading import load_reader


def main(
    n: Annotated[int, typer.Option(help="Seeded runs.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the first one.")] = 0,
    kills: Annotated[bool, typer.Option(help="Whether ingestion is killed, too.")] = True,
    out: Annotated[Path, typer.Option(help="JSON to write.")] = Path("store-faults.json"),
) -> None:
    """Run all seeds, then kill at every step."""
    torch.set_num_threads(1)
    total, met, failed = Counter[str](), Counter[str](), list[int]()
    with tempfile.TemporaryDirectory() as place:
        for number in range(seed, seed + n):
            path = Path(place) / f"run{number}"
            path.mkdir()
            outcome: Outcome = run_seed(number, path)
            total.update({name: value for name, value in asdict(outcome).items() if name != "met"})
            met.update(outcome.met)
            failed += [] if outcome.clean else [number]
        found: list[dict[str, Any]] = []
        if kills:
            for killed in kill_everywhere(load_reader("bundled"), Path(place) / "kills"):
                found.append({**asdict(killed), "clean": killed.clean})
    about = report.meta(device=torch.device("cpu"), runs=n, seed=seed)
    result = {
        "seeded": {"runs": n, **total, "faults": dict(met), "failed_seeds": failed},
        "kills": {"points": len(found), "clean": sum(one["clean"] for one in found),
                  "steps": dict(Counter(one["what"] for one in found)),
                  "not_clean": [one for one in found if not one["clean"]]},
    }  # fmt: skip
    write(out, {"meta": about, **result})
    typer.echo(result)


if __name__ == "__main__":
    typer.run(main)
