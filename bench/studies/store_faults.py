"""A store over a disk that fails: seeded runs against a dictionary, and a kill and a power loss behind every step.

    python bench/studies/store_faults.py --out docs/benchmarks/store-faults.json
    python bench/studies/store_faults.py --n 0 --no-kills --power --out docs/benchmarks/power-loss.json

Every run is replayed by its seed: `--seed N --n 1`. A crash and a kill are of this process: nothing that the store asks
of the disk happens after it, and what was asked before has happened. A loss of power undoes what was not synced, in
three ways each.
"""

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import write
from ragcache_bench.faulty_disk import Outcome, run_seed
from ragcache_bench.kill_points import Killed, kill_everywhere
from ragcache_bench.power_loss import Lost, lose_power_everywhere

from ragcache.model.loading import load_reader


def run_seeds(n: int, seed: int, folder: Path) -> dict[str, Any]:
    """So many seeded runs, added up."""
    total, met, failed = Counter[str](), Counter[str](), list[int]()
    for number in range(seed, seed + n):
        path = folder / f"run{number}"
        path.mkdir()
        outcome: Outcome = run_seed(number, path)
        total.update({name: value for name, value in asdict(outcome).items() if name != "met"})
        met.update(outcome.met)
        failed += [] if outcome.clean else [number]
    return {"runs": n, **total, "faults": dict(met), "failed_seeds": failed}


def count_clean(found: Sequence[Killed | Lost]) -> dict[str, Any]:
    """How many ends a run came to, behind which steps, and those that left something."""
    return {
        "points": len(found),
        "clean": sum(one.clean for one in found),
        "steps": dict(Counter(one.what for one in found)),
        "not_clean": [asdict(one) for one in found if not one.clean],
    }


def main(
    n: Annotated[int, typer.Option(help="Seeded runs.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the first one.")] = 0,
    kills: Annotated[bool, typer.Option(help="Whether ingestion is killed, too.")] = True,
    power: Annotated[bool, typer.Option(help="Whether it loses power, too.")] = False,
    out: Annotated[Path, typer.Option(help="JSON to write.")] = Path("store-faults.json"),
) -> None:
    """Run all seeds, then kill, and cut the power, at every step."""
    torch.set_num_threads(1)
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        if n:
            result["seeded"] = run_seeds(n, seed, Path(place))
        if kills:
            result["kills"] = count_clean(list(kill_everywhere(load_reader("bundled"), Path(place) / "kills")))
        if power:
            lost = list(lose_power_everywhere(load_reader("bundled"), Path(place) / "power", seed=seed))
            left = dict(Counter(one.survived for one in lost))
            result["power"] = count_clean(lost) | {"survived": left}
    about = report.meta(device=torch.device("cpu"), runs=n, seed=seed)
    write(out, {"meta": about, **result})
    typer.echo(result)


if __name__ == "__main__":
    typer.run(main)
