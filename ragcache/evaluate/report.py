"""A run written down: JSON for programs, Markdown for people, one picture."""

import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path
from typing import Any

import torch

from ragcache.evaluate.table import Row
from ragcache.model.reader import Reader
from ragcache.retrieve.needs import needs

_COLUMNS = (
    ("method", "method"),
    ("recompute", "recompute"),
    ("charged", "charged"),
    ("FLOPs", "charged_flops"),
    ("EM", "score"),
    ("F1", "f1"),
    ("EM where full is right", "adjusted"),
    ("EM - full (95 %)", "delta"),
    ("recovered", "recovered"),
    ("agrees with full", "agreement"),
    ("TTFT full ÷ this", "ttft_ratio"),
)
_LINES = {"full": "-", "naive": "--", "chance": ":"}
_PANELS = 4  # in a row
_LEGEND = """
charged: share of the reused, inexact tokens computed again, every pass included. FLOPs: of everything before the first
token, over full prefill's. EM - full: with its 95 % interval by paired bootstrap. recovered: of what naive loses, where
that loss is more than noise. agrees with full: same answer, right or wrong. TTFT: medians of the same run.
"""


def meta(*, device: torch.device, **given: Any) -> dict[str, Any]:
    """Everything needed to rerun: machine, versions, commit, command, and what is given beside."""
    return {
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "commit": _commit(),
        "hardware": hardware(device),
        "threads": torch.get_num_threads(),
        "versions": {name: _version(name) for name in ("ragcache", "torch", "transformers", "numpy")},
        **given,
    }


def about_reader(reader: Reader) -> dict[str, Any]:
    """Who answered, for `meta`."""
    return {
        "device": reader.device,
        "reader": reader.name,
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
    with needs("ragcache[bench]"):
        import matplotlib  # noqa: F401


def write(out: Path, rows: Sequence[Row], about: Mapping[str, Any]) -> list[Path]:
    """Write `out` as JSON, and beside it a Markdown table and a picture.

    Returns
    -------
    list of Path
        The three files.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed; JSON and Markdown are written all the same.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    content = {"meta": dict(about), "rows": [asdict(row) for row in rows]}
    out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    out.with_suffix(".md").write_text(markdown(rows, about), encoding="utf-8")
    _draw(out.with_suffix(".png"), rows)
    return [out, out.with_suffix(".md"), out.with_suffix(".png")]


def markdown(rows: Sequence[Row], about: Mapping[str, Any]) -> str:
    """One table per task, and what made it."""
    parts = [f"Made by `{about['command']}` with the reader `{about['reader']}` on {about['hardware']}.\n"]
    for task, of_task in groupby(rows, lambda row: row.task):
        group = list(of_task)
        parts.append(f"\n## {task} ({max(row.n for row in group)} questions)\n\n")
        parts.append("| " + " | ".join(title for title, _ in _COLUMNS) + " |\n")
        parts.append("|---" * len(_COLUMNS) + "|\n")
        parts += ["| " + " | ".join(_cell(row, name) for _, name in _COLUMNS) + " |\n" for row in group]
    return "".join([*parts, _LEGEND])


def _cell(row: Row, name: str) -> str:
    value = getattr(row, name)
    if value is None:
        return "-"
    if name == "method":
        return str(value)
    if name == "delta":
        return f"{value:+.3f} [{row.ci_low:+.3f}, {row.ci_high:+.3f}]"
    return f"{value:.2f}" if name in ("ttft_ratio", "recompute") else f"{value:.3f}"


def _draw(file: Path, rows: Sequence[Row]) -> None:
    """Quality against charged recompute, one panel per task; full prefill, naive and chance as lines across."""
    with needs("ragcache[bench]"):
        from matplotlib import colormaps
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    tasks = {task: list(group) for task, group in groupby(rows, lambda row: row.task)}
    points = dict.fromkeys(row.method for row in rows if row.charged is not None and row.method not in _LINES)
    colours = {name: colormaps["tab10"](number % 10) for number, name in enumerate(points)}
    columns = min(len(tasks), _PANELS)
    lines = -(-len(tasks) // columns)
    figure = Figure(figsize=(3.4 * columns + 1.4, 3.4 * lines), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(lines, columns, sharey=True, squeeze=False)
    for panel, (task, group) in zip(panels.flat, tasks.items(), strict=False):
        _draw_task(panel, group, colours)
        panel.set(title=task, ylim=(-0.02, 1.02))
    for panel in panels.flat[len(tasks) :]:
        panel.set_axis_off()
    figure.supxlabel("charged recompute")
    figure.supylabel("exact match")
    seen = {label: handle for panel in panels.flat for handle, label in zip(*panel.get_legend_handles_labels())}  # noqa: B905
    figure.legend(seen.values(), seen.keys(), loc="outside right upper", frameon=False)
    figure.savefig(file, dpi=130)


def _draw_task(panel: Any, rows: Sequence[Row], colours: Mapping[str, Any]) -> None:
    for row in rows:
        if row.method in _LINES:
            panel.axhline(row.score, color="black", linestyle=_LINES[row.method], linewidth=1, label=row.method)
    for name, colour in colours.items():
        points = [(row.charged, row.score) for row in rows if row.method == name and row.charged is not None]
        if points:
            panel.plot(*zip(*points, strict=True), marker="o", ms=4, color=colour, label=name, alpha=0.8)


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
