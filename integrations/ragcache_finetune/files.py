"""The small files of a run: each is written whole or not at all."""

import json
import os
from pathlib import Path
from typing import Any


def write_whole(file: Path, text: str) -> None:
    """Write a text beside a file and put it in its place, so that a kill or a full disk leaves the old one."""
    part = file.with_name(f".{file.name}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, file)


def write_json(file: Path, value: Any) -> None:
    """Write a value as JSON, whole or not at all."""
    write_whole(file, json.dumps(value, indent=1) + "\n")


def read_json(file: Path) -> Any:
    """What stands in a JSON file; None where there is none."""
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
