"""Measurements kept on disk as they come, so that a run that was killed goes on where it was."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ragcache.errors import InvalidArgument
from ragcache.evaluate.records import digest


class Notes:
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
        return digest(*parts) in self._known

    def __getitem__(self, parts: tuple[str, ...]) -> Any:
        return self._known[digest(*parts)]

    def recall(self, parts: tuple[str, ...], measure: Callable[[], Any]) -> Any:
        """What was measured under these parts, measured now if it never was.

        Parameters
        ----------
        parts : tuple of str
            Everything that decides the outcome.
        measure : callable
            Gives something that JSON can hold.
        """
        key = digest(*parts)
        if key not in self._known:
            value = measure()
            self._path.parent.mkdir(parents=True, exist_ok=True)
            line = json.dumps({"key": key, "value": value}, ensure_ascii=False) + "\n"
            with self._path.open("ab", buffering=0) as file:  # in one write, so that two runs may share the file
                file.write(line.encode())
            self._known[key] = value
        return self._known[key]
