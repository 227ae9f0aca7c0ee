"""Measurements kept on disk as they come, so that a run that was killed goes on where it was."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import xxhash

from ragcache.errors import InvalidArgument


class Journal:
    """JSON lines by key; each line is written once and never changed.

    Parameters
    ----------
    path : Path
        Created with its folder at the first measurement; half a line at its end, left by a kill, is cut off.

    Raises
    ------
    InvalidArgument
        If the file is some other file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Any] = {}
        content = path.read_bytes() if path.exists() else b""
        whole = content.rfind(b"\n") + 1
        for number, line in enumerate(content[:whole].splitlines(), 1):
            try:
                entry = json.loads(line)
                self._known[entry["key"]] = entry["value"]
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidArgument(
                    f"line {number} of {path} is no measurement; move the file away, or name another --out"
                ) from error
        if whole < len(content):
            with path.open("r+b") as file:
                file.truncate(whole)

    def __contains__(self, parts: tuple[str, ...]) -> bool:
        return _digest(parts) in self._known

    def recall(self, parts: tuple[str, ...], measure: Callable[[], Any]) -> Any:
        """What was measured under these parts, measured now if it never was.

        Parameters
        ----------
        parts : tuple of str
            Everything that decides the outcome.
        measure : callable
            Gives something that JSON can hold.
        """
        key = _digest(parts)
        if key not in self._known:
            value = measure()
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps({"key": key, "value": value}, ensure_ascii=False) + "\n")
            self._known[key] = value
        return self._known[key]


def _digest(parts: tuple[str, ...]) -> str:
    return xxhash.xxh3_128_hexdigest("\0".join(parts).encode("utf-8", "surrogatepass"))
