"""A run written down: JSON for programs, Markdown for people, one picture."""

import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from ragcache.errors import DISTRIBUTION, InvalidArgument
from ragcache.model.reader import Reader
from ragcache.retrieve.needs import needs
from ragcache_bench.pages.columns import markdown
from ragcache_bench.pages.picture import draw
from ragcache_bench.table import Result, Row, withhold_times

BESIDE = (".json", ".jsonl", ".md", ".png")
"""What the files of a run end in: result, answers, tables, picture."""


def meta(*, device: torch.device, **given: Any) -> dict[str, Any]:
    """Everything needed to rerun: machine, versions, commit, command, and what is given beside."""
    return {
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "commit": _commit(),
        "hardware": hardware(device),
        "threads": torch.get_num_threads(),
        "versions": {name: _version(name) for name in (DISTRIBUTION, "torch", "transformers", "numpy")},
        **given,
    }


def about_reader(reader: Reader) -> dict[str, Any]:
    """Who answered, for `meta`."""
    adapter = {"adapter": Path(reader.adapter).name} if reader.adapter else {}
    return {
        "device": reader.device,
        "reader": reader.name,
        **adapter,
        **({"finetuned": reader.tuning.recipe} if reader.tuning else {}),
        "fingerprint": reader.fingerprint,
        "dtype": str(reader.model.dtype).removeprefix("torch."),
        "parameters": sum(p.numel() for p in reader.model.parameters()),
    }


def hardware(device: torch.device) -> str:
    """What it ran on."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{_processor()}, {os.cpu_count()} cores"


def check_plotting() -> None:
    """Fail now rather than after the run.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.
    """
    with needs("bench"):
        import matplotlib  # noqa: F401


def check_out(out: Path, taken: Iterable[Path] = ()) -> None:
    """Fail now rather than after the run, and before a file is written that was not meant.

    Parameters
    ----------
    out : Path
        JSON to write.
    taken : iterable of Path
        Files that the run reads, none of which may be written.

    Raises
    ------
    InvalidArgument
        If `out` is a folder or does not end in .json, or if one of the files beside it is among `taken`.
    """
    if out.is_dir():
        raise InvalidArgument(f"--out {out} is a folder; name a file in it, for example --out {out / 'quality.json'}")
    if out.suffix != ".json":
        stem = out.with_suffix("") if out.suffix in BESIDE else out
        raise InvalidArgument(f"--out {out} does not end in .json; write --out {stem}.json")
    inputs = {path.resolve() for path in taken}
    for file in map(out.with_suffix, BESIDE):
        if file.resolve() in inputs:
            other = out.with_name(f"{out.stem}-quality.json")
            raise InvalidArgument(f"--out {out} would write over {file}, which the run reads; write --out {other}")


def write(out: Path, found: Result, *, picture: Sequence[Row] | None = None) -> list[Path]:
    """Write `out` as JSON, and beside it Markdown tables and a picture; pooled rows come first in both.

    Times that cannot be trusted are in none of them, see `withhold_times`.

    Parameters
    ----------
    out : Path
        JSON to write.
    found : Result
        What a benchmark found.
    picture : sequence of Row, optional
        What the picture shows; everything otherwise.

    Returns
    -------
    list of Path
        The three files.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed; JSON and Markdown are written all the same.
    """
    found = withhold_times(found)
    out.parent.mkdir(parents=True, exist_ok=True)
    parts = {"rows": found.rows, "pooled": found.pooled, "gaps": found.gaps}
    tables = {name: [asdict(row) for row in part] for name, part in parts.items() if part or name == "rows"}
    content, rows = {"meta": dict(found.about), **tables}, [*found.pooled, *found.rows]
    out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    out.with_suffix(".md").write_text(markdown(rows, found.about, found.gaps), encoding="utf-8")
    draw(out.with_suffix(".png"), rows if picture is None else picture)
    return [out, out.with_suffix(".md"), out.with_suffix(".png")]


def read(file: Path) -> Result:
    """What `write` wrote, by this version or another one.

    Raises
    ------
    InvalidArgument
        If the file is not there or holds something else.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        parts = {name: [_row(values) for values in content.get(name, ())] for name in ("pooled", "gaps")}
        return withhold_times(Result([_row(values) for values in content["rows"]], dict(content["meta"]), **parts))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidArgument(
            f"{file} holds no result of a benchmark ({type(error).__name__}); name the JSON that "
            "`ragcache bench quality --out FILE` wrote"
        ) from error


def _row(values: Mapping[str, Any]) -> Row:
    known = {field.name for field in fields(Row)}
    return Row(**{name: value for name, value in values.items() if name in known})


def _commit() -> str | None:
    """The commit of the checkout that the package runs from, with a plus sign where files differ from it."""
    folder = Path(__file__).parent
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"],
            cwd=folder, capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return None
    return described.stdout.strip()


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
