"""A tuning run on disk: what is trained, its optimizer's state, and what the run says of itself."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from ragcache.errors import InvalidArgument

STATE, LOG = "state.safetensors", "log.jsonl"


def save(folder: Path, trained: Sequence[Tensor], adam: torch.optim.Optimizer, about: Mapping[str, Any]) -> None:
    """Write a checkpoint in the place of the last one."""
    state = {f"m.{i}": matrix.detach() for i, matrix in enumerate(trained)}
    for i, matrix in enumerate(trained):
        state |= {f"a.{i}.{key}": value for key, value in adam.state[matrix].items()}
    save_file(state, folder / "new.safetensors", metadata={"run": json.dumps(about)})
    (folder / "new.safetensors").replace(folder / STATE)


@torch.no_grad()
def load(
    folder: Path, trained: Sequence[Tensor], adam: torch.optim.Optimizer, ours: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Go on from a folder's checkpoint: what was saved with it, or None where there is none.

    Lines of the log behind it are cut off: what was lost is done again.

    Parameters
    ----------
    folder : Path
        Of the run.
    trained, adam
        Receive what was trained, and the optimizer's state.
    ours : mapping
        What the run is: the entries of `about` that must be the same.

    Raises
    ------
    InvalidArgument
        If the folder holds another run.
    """
    file = folder / STATE
    if not file.exists():
        return None
    with safe_open(file, "pt") as opened:
        about: dict[str, Any] = json.loads(opened.metadata()["run"])
    theirs = {name: about.get(name) for name in ours}
    if theirs != ours:
        raise InvalidArgument(
            f"{folder} holds a run with {theirs}, not {dict(ours)}; go on with the same, or name another --out"
        )
    log = folder / LOG
    lines = [one for one in log.read_text(encoding="utf-8").splitlines() if json.loads(one)["step"] <= about["step"]]
    log.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    state = load_file(file)
    for i, matrix in enumerate(trained):
        matrix.copy_(state[f"m.{i}"])
        kept = {key: state[f"a.{i}.{key}"] for key in ("step", "exp_avg", "exp_avg_sq") if f"a.{i}.{key}" in state}
        kept |= {key: kept[key].to(matrix.device) for key in kept if key != "step"}
        if kept:
            adam.state[matrix] = kept
    return about


def add_line(folder: Path, line: Mapping[str, Any]) -> None:
    """Append to the log."""
    with (folder / LOG).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
