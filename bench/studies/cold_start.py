"""How long is `ragcache ask` in a process of its own, and what of it do the lean start and our own embedding spare?

    python bench/studies/cold_start.py --out docs/benchmarks/cold-start.json

The built-in model answers one question over a few pages of the demo corpus. Each time a new process does, from its
start to its end: as the command is, and as it was before, with everything imported that transformers imports by
itself, and the question embedded by sentence-transformers. In turning order, behind a warm-up of each, so that files
lie in the page cache. The processor's seconds (user and system) stand beside wall clock, which a busy machine
stretches.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import write
from ragcache_bench.markdown import table
from ragcache_cli.terminal import progress
from speculation import spread

from ragcache.bundled import corpus_path, questions

_COMMAND = "from ragcache_cli.main import app; app()"
_BEFORE = """
import contextlib
import ragcache.retrieve.embed, ragcache_cli.opening
ragcache_cli.opening.lean_start = contextlib.nullcontext
ragcache.retrieve.embed.is_mean_pooling = lambda folder: False
"""
#: What a process runs, by how it starts.
STARTS = {"before": _BEFORE + _COMMAND, "lean": _COMMAND}
MEASURES = ("processor", "wall")
_HEAD = ("", "before s", "lean s", "before / lean")


def main(
    n: Annotated[int, typer.Option(help="Processes of each kind.")] = 9,
    pages: Annotated[int, typer.Option(help="Documents of the demo corpus.")] = 4,
    out: Annotated[Path, typer.Option(help="JSON to write, and a table beside it.")] = Path("cold-start.json"),
) -> None:
    """Ingest once, then ask by either start in turns."""
    asked = questions()[0]
    first = [corpus_path() / source for source in asked.sources]
    paths = [*first, *(one for one in sorted(corpus_path().rglob("*.md")) if one not in first)][:pages]
    taken: dict[str, list[dict[str, float]]] = {start: [] for start in STARTS}
    with tempfile.TemporaryDirectory(prefix="ragcache-bench-") as folder, progress() as shown:
        index = ["--index", str(Path(folder) / "index"), "--model", "bundled"]
        _run(_COMMAND, ["ingest", *map(str, paths), *index])
        for turn in range(n + 1):
            for start in list(STARTS)[:: 1 if turn % 2 else -1]:
                taken[start].append(_run(STARTS[start], ["ask", asked.question, *index]))
            shown("turns", turn + 1, n + 1)
    measured = {start: found[1:] for start, found in taken.items()}
    about = report.meta(device=torch.device("cpu"), processes=n, pages=len(paths), load=os.getloadavg())
    result = {"meta": about, "rows": [make_row(name, measured) for name in MEASURES]}
    write(out, result)
    out.with_suffix(".md").write_text(markdown(result), encoding="utf-8")
    typer.echo(markdown(result))


def _run(code: str, arguments: Sequence[str]) -> dict[str, float]:
    """A process from its start to its end: seconds of the processor and of the clock on the wall."""
    began, before = time.perf_counter(), os.times()
    subprocess.run([sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - began, os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return {"processor": spent, "wall": wall}


def make_row(name: str, taken: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, Any]:
    """Medians over the processes, with the least and the most, and of their ratio turn by turn."""
    times = {start: [one[name] for one in found] for start, found in taken.items()}
    ratios = [before / lean for before, lean in zip(times["before"], times["lean"], strict=True)]
    return {
        "seconds": name,
        **{start: spread(found) for start, found in times.items()},
        "ratio": spread(ratios),
        "twice": median(ratios) >= 2,
    }


def markdown(result: Mapping[str, Any]) -> str:
    """The same for people."""
    about = result["meta"]
    rows = [
        [f"{row['seconds']} time", *("{median:.2f} [{least:.2f}, {most:.2f}]".format(**row[name]) for name in
         ("before", "lean", "ratio"))] for row in result["rows"]
    ]  # fmt: skip
    return (
        f"Made by `{about['command']}` on {about['hardware']}: {about['processes']} processes of each, median, least "
        f"and most. The machine was busy: a load of {about['load'][1]:.1f}.\n\n{table(_HEAD, rows)}"
    )


if __name__ == "__main__":
    typer.run(main)
