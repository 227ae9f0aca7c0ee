"""The system calls by which KV files and the catalogue reach the disk, behind one interface: each can fail."""

import os
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path


class Disk:
    """What the store asks of the system. Its twin in `ragcache_bench.faulty_disk` fails where it is told to."""

    def create(self, folder: Path, prefix: str) -> tuple[int, str]:
        """Make a file with a name of its own; its handle and its path."""
        return tempfile.mkstemp(prefix=prefix, dir=folder)

    def write(self, handle: int, parts: Sequence[memoryview]) -> int:
        """Write as much of some parts as the system takes at once; how many bytes."""
        return os.writev(handle, parts)

    def read(self, handle: int, into: memoryview) -> int:
        """Read as much as the system gives at once; how many bytes."""
        return os.readv(handle, [into])

    def sync(self, handle: int) -> None:
        """Wait until what was written to a file, or what is named in a folder, survives a crash of the machine."""
        os.fsync(handle)

    def link(self, path: str, name: Path) -> None:
        """Give a file another name, which nobody holds."""
        os.link(path, name)

    def move(self, path: str | Path, name: Path) -> None:
        """Give a file another name in the place of its own, whoever holds it."""
        os.replace(path, name)

    def remove(self, path: str | Path) -> None:
        """Take a file's name away, if it is there."""
        Path(path).unlink(missing_ok=True)

    def begin(self, connection: sqlite3.Connection) -> None:
        """Begin a transaction that writes."""
        connection.execute("BEGIN IMMEDIATE")

    def commit(self, connection: sqlite3.Connection) -> None:
        """Make all of it durable, or nothing."""
        connection.commit()
