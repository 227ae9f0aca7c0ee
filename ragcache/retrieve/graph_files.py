"""The files of Chroma's search graph: cleared of what memory held, and known by their checksums.

Chroma reads its graph without a check, and one flipped bit in it may end the whole program.
"""

import json
import os
import sqlite3
import struct
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import xxhash

from ragcache.errors import IndexFormat, ingest

_DATABASE = "chroma.sqlite3"
_SUMS = "ragcache-sums.json"
_HEADER = struct.Struct("<iQQQ")  # of hnswlib: version, offset, room for how many vectors, how many there are
_RESERVED = "data_level0.bin", "length.bin"  # memory for vectors, as it was found until there are some
_BLOCK = 1 << 24

_Stat = tuple[int, int, int]


class GraphFiles:
    """What stands in a Chroma folder beside its database.

    Checksums hold for the state of the graph that the database names. Behind a writer that was killed, and behind
    another program's, nothing is checked until somebody records them again. What no vector has taken yet is not read,
    and Chroma writes it anew when it is asked: it is not checked, or a program that was killed while it asked would
    leave checksums that are wrong. Whoever calls has the turn to write.

    Parameters
    ----------
    path : Path
        Chroma's folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: dict[str, _Stat] = {}  # the files as they were at the last look
        self._sums: dict[str, str] = {}  # of those of them that were checked, or read, here

    def check(self) -> None:
        """Read files that this process has not seen so far, and hold them against their checksums.

        Raises
        ------
        IndexFormat
            If one is not what was written.
        """
        found = self._stats()
        if found == self._seen:
            return
        recorded = self._recorded()
        self._sums = recorded["sums"] if recorded.get("state") == self._state() else {}
        if self._sums:
            gone = sorted({*self._sums} - {*found})
            if wrong := gone or [name for name in found if not self._holds(name)]:
                raise IndexFormat(
                    f"{self.path / wrong[0]} is not what was written: its checksum is another. Delete {self.path} and "
                    f"run `{ingest(self.path.parent)}`, which makes it anew."
                )
        self._seen = found

    def record(self) -> None:
        """Write down the checksums where the files have changed, or there are none."""
        found = self._stats()
        if found == self._seen and (not found or (self.path / _SUMS).is_file()):
            return
        same = {name for name in self._sums if self._seen.get(name) == found.get(name)}
        self._sums = {name: self._sums[name] if name in same else self._sum(name) for name in found}
        self._seen = found
        part = self.path / f".{_SUMS}.part"
        try:
            part.write_text(json.dumps({"state": self._state(), "sums": self._sums}), encoding="utf-8")
            os.replace(part, self.path / _SUMS)
        except OSError:  # a full disk: without checksums nothing is checked, and nothing is refused
            self.forget()

    def forget(self) -> None:
        """Drop the checksums before the files are written to: whoever is killed then leaves none that are wrong."""
        (self.path / _SUMS).unlink(missing_ok=True)

    def _state(self) -> str:
        """How far the database says that the graph has come."""
        found = read_database(self.path, "SELECT * FROM max_seq_id")
        return repr(sorted(found[0])) if found else ""

    def _stats(self) -> dict[str, _Stat]:
        found = {}
        for file in self.path.glob("*/*"):
            with suppress(FileNotFoundError):
                about = file.stat()
                found[f"{file.parent.name}/{file.name}"] = (about.st_ino, about.st_size, about.st_mtime_ns)
        return found

    def _recorded(self) -> dict[str, Any]:
        """What was written down; nothing where it is not there or is not whole."""
        with suppress(OSError, ValueError):
            found = json.loads((self.path / _SUMS).read_bytes())
            if isinstance(found, dict) and isinstance(found.get("sums"), dict):
                return found
        return {}

    def _holds(self, name: str) -> bool:
        """Whether a file is what was written, as far as anything reads it."""
        file = self.path / name
        unread = file.name in _RESERVED and _is_unused(file.with_name("header.bin"))
        return name in self._sums and (unread or self._sum(name) == self._sums[name])

    def _sum(self, name: str) -> str:
        digest = xxhash.xxh3_128()
        with (self.path / name).open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        return digest.hexdigest()


def read_database(path: Path, *queries: str) -> list[list[tuple[Any, ...]]]:
    """What each query finds in the database of a Chroma folder, read beside Chroma; nothing where it can't be read."""
    file = quote(str((path / _DATABASE).absolute()))
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        return [list(database.execute(query)) for query in queries]
    return []


def clear_unused(path: Path) -> None:
    """Overwrite with zeros what no vector has taken yet in the files of a new search graph.

    Chroma writes the memory that it has reserved for them as it found it, with whatever the process had freed there:
    texts, keys, headers of requests. Nobody may write to the folder meanwhile.
    """
    for header in path.glob("*/header.bin"):
        if _is_unused(header):  # later all of a file is in use
            for file in map(header.with_name, _RESERVED):
                with suppress(FileNotFoundError), file.open("r+b") as opened:
                    reserved = opened.read()
                    if reserved.strip(b"\0"):  # or every question would write
                        opened.seek(0)
                        opened.write(bytes(len(reserved)))


def _is_unused(header: Path) -> bool:
    """Whether a search graph holds no vector, by the file that tells."""
    try:
        about = header.read_bytes()[: _HEADER.size]
    except FileNotFoundError:
        return False
    return len(about) == _HEADER.size and _HEADER.unpack(about)[-1] == 0
