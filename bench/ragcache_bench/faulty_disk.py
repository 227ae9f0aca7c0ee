"""A disk that fails where it is told to, and what a store must keep whatever happens: replayed from one number."""

import errno
import os
import random
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import torch

from ragcache.errors import CorruptBlob, RagCacheError
from ragcache.store import (
    Blob,
    Catalog,
    ChunkRow,
    Disk,
    DocumentRow,
    EncodingRow,
    Forgotten,
    LocalStore,
    kv_key,
    pack,
    unpack,
)

FAULTS = ("short write", "ENOSPC", "EIO", "failing fsync", "crash")
_SECRET = b"s" * 32
_Done = TypeVar("_Done")


class Crash(BaseException):
    """The process is gone: nothing that it would have done afterwards happens."""


#: Names the fault of a step, by its number and what it does; None for none.
Plan = Callable[[int, str], str | None]


class FaultyDisk(Disk):
    """A disk of which single steps fail, and which does nothing more once it has crashed.

    Parameters
    ----------
    plan : callable
        Says which steps fail, and how; a crash comes behind its step.
    """

    def __init__(self, plan: Plan = lambda step, what: None) -> None:
        self.steps = 0
        self.crashed = False
        self.met = Counter[str]()
        self._plan = plan

    def create(self, folder: Path, prefix: str) -> tuple[int, str]:
        return self._do("create", lambda: Disk.create(self, folder, prefix))

    def write(self, handle: int, parts: Sequence[memoryview]) -> int:
        def short() -> None:
            first = parts[0]
            Disk.write(self, handle, [first[: len(first) // 2]])

        return self._do("write", lambda: Disk.write(self, handle, parts), short)

    def read(self, handle: int, into: memoryview) -> int:
        return self._do("read", lambda: Disk.read(self, handle, into))

    def sync(self, handle: int) -> None:
        self._do("sync", lambda: Disk.sync(self, handle))

    def link(self, path: str, name: Path) -> None:
        self._do("link", lambda: Disk.link(self, path, name))

    def move(self, path: str | Path, name: Path) -> None:
        self._do("move", lambda: Disk.move(self, path, name))

    def remove(self, path: str | Path) -> None:
        self._do("remove", lambda: Disk.remove(self, path))

    def begin(self, connection: sqlite3.Connection) -> None:
        self._do("begin", lambda: Disk.begin(self, connection))

    def commit(self, connection: sqlite3.Connection) -> None:
        self._do("commit", lambda: Disk.commit(self, connection))

    def _do(self, what: str, work: Callable[[], _Done], half: Callable[[], None] | None = None) -> _Done:
        if self.crashed:
            raise Crash
        self.steps += 1
        fault = self._plan(self.steps, what)
        fitting = {"short write": what == "write", "failing fsync": what == "sync", None: False}.get(fault, True)
        if fault is None or not fitting:
            return work()
        self.met[fault] += 1
        if fault == "crash":
            done = work()
            self.crashed = True
            raise Crash(done)
        if half is not None and fault == "short write":
            half()
        raise _error(what, errno.ENOSPC if fault in ("ENOSPC", "short write") else errno.EIO)


def _error(what: str, number: int) -> Exception:
    """What the system says, or SQLite of the system."""
    if what not in ("begin", "commit"):
        return OSError(number, os.strerror(number))
    error = sqlite3.OperationalError(os.strerror(number))
    error.sqlite_errorname = "SQLITE_FULL" if number == errno.ENOSPC else "SQLITE_IOERR"
    return error


def draw_faults(seed: int) -> Plan:
    """Faults at a rate of their own for every seed, a crash among them; the same for the same seed."""
    rng = random.Random(seed)
    rate, kinds = rng.choice([0.01, 0.03, 0.1]), rng.sample(FAULTS, rng.randint(1, len(FAULTS)))

    def plan(step: int, what: str) -> str | None:
        return rng.choice(kinds) if rng.random() < rate else None

    return plan


@dataclass
class Outcome:
    """What a seeded run came to; everything but `met`, `crashes` and `acknowledged` must be 0."""

    wrong: int = 0
    lost: int = 0
    unreadable: int = 0
    orphans: int = 0
    kept_removed: int = 0
    acknowledged: int = 0
    crashes: int = 0
    met: Counter[str] = field(default_factory=Counter)

    @property
    def clean(self) -> bool:
        """Whether the store kept what it promises."""
        return not (self.wrong or self.lost or self.unreadable or self.orphans or self.kept_removed)


class _Open:
    """A catalogue and files, in the order of writes that an index has."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self.store = LocalStore(path / "kv", disk=disk)
        self.catalog = Catalog(path / "catalog.sqlite", disk=disk)
        try:
            self.forgotten = Forgotten(self.catalog, self.store)
            self.forgotten.delete()
        except BaseException:
            self.catalog.close()
            raise

    def put(self, name: str, content: int) -> None:
        chunk = ChunkRow(f"{name}-{content}", name, 0, f"{name} says {content}", (content,), 0, 1)
        self.catalog.put_document(DocumentRow(name, name, str(content), {}), [chunk])
        self.forgotten.delete()
        key = key_of(name, content)
        self.store.put_if_absent(key, pack(_blob(key, content)))
        now = time.time()
        row = EncodingRow(chunk.id, "alone", key, (), self.store.head(key) or 0, "", now, now)
        if self.catalog.put_standing([row], lambda key: self.store.head(key) is not None):
            self.forgotten.delete()

    def remove(self, name: str) -> None:
        self.catalog.remove_document(name)
        self.forgotten.delete()

    def read(self, name: str) -> int | None:
        """What a document's KV says; None for a miss, after which it is moved aside as an index does."""
        for chunk in self.catalog.chunks_of(name):
            for row in self.catalog.encodings(chunk.id, "alone"):
                try:
                    blob = unpack(self.store.get(row.key), row.key)
                except CorruptBlob as error:
                    if error.read:
                        self.store.quarantine(row.key)
                        self.catalog.drop_key(row.key)
                    return None
                return int(blob.layers[0][0, 0, 0, 0])
        return None


def key_of(name: str, content: int) -> str:
    """The key of a document's KV."""
    return kv_key(_SECRET, fingerprint="f", recipe=name, left=(), token_ids=(content,))


def _blob(key: str, content: int) -> Blob:
    return Blob(key, (content,), 0, (torch.full((2, 1, 1, 16), float(content)),))


def run_seed(seed: int, path: Path, operations: int = 24) -> Outcome:
    """One run: documents put, removed, and read over a disk that fails, against a dictionary that does not.

    What was acknowledged must be there after every crash, what was removed gone, and nothing else be read than what
    was put. An operation that was not acknowledged may have happened or not.
    """
    rng, out, disk = random.Random(seed), Outcome(), FaultyDisk(draw_faults(seed))
    held: dict[str, int] = {}  # acknowledged
    doubtful: dict[str, set[int | None]] = {}  # what an operation that failed may have left
    opened: _Open | None = None
    for _ in range(operations):
        name, content, what = rng.choice("abcde"), rng.randrange(1, 200), rng.choice(("put", "put", "remove", "read"))
        try:
            opened = opened or _Open(path, disk)
            if what == "read":
                _compare(opened.read(name), {held.get(name), *doubtful.get(name, set())}, out)
                continue
            doubtful.setdefault(name, set()).update((held.get(name), content if what == "put" else None))
            opened.put(name, content) if what == "put" else opened.remove(name)
            held.pop(name, None)
            held |= {name: content} if what == "put" else {}
            doubtful.pop(name)
            out.acknowledged += 1
        except RagCacheError:  # said in our words, and the next operation goes on
            pass
        except OSError:
            pass
        except Crash:
            out.crashes += 1
            if opened is not None:
                opened.catalog.close()  # as the system closes what a process had open
            out.met += disk.met
            opened, disk = None, FaultyDisk(draw_faults(seed + 1_000_003 * out.crashes))
    if opened is not None:
        opened.catalog.close()
    out.met += disk.met
    _check(path, held, doubtful, out)
    return out


def _compare(found: int | None, allowed: set[int | None], out: Outcome) -> None:
    """A miss is no loss while the disk fails; anything but what was put is wrong."""
    out.wrong += found is not None and found not in allowed


def _check(path: Path, held: dict[str, int], doubtful: dict[str, set[int | None]], out: Outcome) -> None:
    """The store as a disk that works again shows it."""
    try:
        opened = _Open(path, Disk())
    except RagCacheError:
        out.unreadable += 1
        return
    for name in "abcde":
        found = opened.read(name)
        allowed = {held.get(name), *doubtful.get(name, set())}
        _compare(found, allowed, out)
        if name in held and name not in doubtful:
            out.lost += found is None or [one.token_ids for one in opened.catalog.chunks_of(name)] != [(held[name],)]
    opened.forgotten.sweep(())
    opened.store.sweep(0.0)
    stored = set(opened.store.list())
    out.orphans += len(stored - opened.catalog.keys()) + len(list(path.glob("kv/*/.tmp-*")))
    texts = {chunk.token_ids[0] for name in "abcde" for chunk in opened.catalog.chunks_of(name)}
    for key in stored:
        with suppress(CorruptBlob):
            out.kept_removed += unpack(opened.store.get(key), key).token_ids[0] not in texts
    opened.catalog.close()
