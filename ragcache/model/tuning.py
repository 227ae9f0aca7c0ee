"""What a finetuned adapter was trained for: the record that `ragcache finetune` leaves in its folder.

PEFT's own files say which matrices change; this one says under which attention and at which positions the model
learnt to read, so that it is asked to read in that way only. Read without torch.
"""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from ragcache.errors import UnusableAdapter

RECORD, LINKS = "ragcache_finetune.json", "links.safetensors"
VERSION = 1

#: Whom a chunk's tokens attended to in training: all before them, their own chunk, or each in turn.
Attention = Literal["full", "independent", "alternating"]
#: Where tokens stood in training: each at its place in the prompt, or every chunk where the first begins.
PositionScheme = Literal["reordered", "composite"]


@dataclass(frozen=True)
class Tuning:
    """How an adapter was trained.

    Attributes
    ----------
    recipe : str
        Name of the recipe, as in `ragcache finetune --recipe NAME`.
    attention : str
        "full": everything before it. "independent": a chunk's tokens attend to their own chunk only, everything else
        to all that stands before it. "alternating": a sample is read under one in one pass, and under the other in
        the next.
    positions : str
        "reordered": every token at its place in the prompt (TurboRAG, 2410.07590). "composite": every chunk begins
        where the first one does, and what follows begins behind the longest.
    links : int
        Link tokens after each chunk (KVLink, 2502.16002); 0 where there are none.
    documents : int
        How many chunks of a prompt have link tokens of their own; 0 where `links` is 0.
    base : str
        Name of the model that was trained.
    steps : int
        Optimiser steps.
    """

    recipe: str
    attention: Attention
    positions: PositionScheme
    links: int
    documents: int
    base: str
    steps: int


def read_tuning(folder: str | Path) -> Tuning | None:
    """Read the record in an adapter's folder; None where there is none, as beside an adapter from elsewhere.

    Raises
    ------
    UnusableAdapter
        If the record is damaged, lacks a key, or has a version that is not known here.
    """
    file = Path(folder) / RECORD
    if not file.exists():
        return None
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged(folder, str(error)) from error
    if not isinstance(record, dict):
        raise _damaged(folder, "no object stands in it")
    if record.get("version") != VERSION:
        raise UnusableAdapter(
            f"cannot load the adapter {str(folder)!r}: its {RECORD} has version {record.get('version')!r}, and this "
            f"ragcache reads version {VERSION}; train it again with `ragcache finetune`, or use the ragcache it is from"
        )
    return _parse(folder, record)


def write_tuning(folder: str | Path, tuning: Tuning) -> None:
    """Write the record into an adapter's folder, in place of an earlier one."""
    record = {"version": VERSION, **asdict(tuning)}
    (Path(folder) / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _parse(folder: str | Path, record: dict[str, Any]) -> Tuning:
    for field in fields(Tuning):
        if field.name not in record:
            raise _damaged(folder, f"it has no {field.name!r}")
        value = record[field.name]
        if not _fits(value, field.type):
            raise _damaged(folder, f"its {field.name!r} is {value!r}")
    tuning = Tuning(**{field.name: record[field.name] for field in fields(Tuning)})
    if (tuning.links > 0) != (tuning.documents > 0):
        raise _damaged(folder, f"it says {tuning.links} links for {tuning.documents} documents")
    return tuning


def _fits(value: object, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if kind is int:
        return type(value) is int and value >= 0  # not True, which is an int too
    return isinstance(value, str)


def _damaged(folder: str | Path, why: str) -> UnusableAdapter:
    return UnusableAdapter(
        f"cannot load the adapter {str(folder)!r}: its {RECORD} is damaged ({why}); copy it anew from where it came "
        "from, or train it again with `ragcache finetune`"
    )
