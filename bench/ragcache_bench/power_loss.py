"""Ingestion, replacement and removal, cut off behind every step as by a loss of power: what was not synced is gone.

A disk writes down what it is asked for. Every beginning of that log is replayed into a folder of its own, without what
was not synced by then, or with some of it: names without their bytes, and bytes in part. The catalogue is taken as of
its last commit, which SQLite has synced; what SQLite itself writes between two commits is not cut.
"""

import os
import random
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ragcache.errors import CorruptBlob, RagCacheError
from ragcache.index.index import Index
from ragcache.model.reader import Reader
from ragcache.store import Disk, LocalStore, unpack
from ragcache_bench.kill_points import resume, run

#: What is left of what was not synced: nothing, names whose bytes are gone, or some of both, drawn.
Survival = Literal["nothing", "names", "some"]
SURVIVALS: tuple[Survival, ...] = ("nothing", "names", "some")

#: Documents with their texts, and KV by chunk, recipe and key.
_Facts = frozenset[tuple[str, ...]]


@dataclass(frozen=True)
class _Event:
    """One step: what it was, of which file, and with what."""

    what: str
    path: str = ""
    about: Any = None


class RecordingDisk(Disk):
    """A disk that works, and writes down what it was asked for."""

    def __init__(self, root: Path) -> None:
        self.log: list[_Event] = []
        self._root = root

    def create(self, folder: Path, prefix: str) -> tuple[int, str]:
        """Make a file, which is known by its first name from then on."""
        handle, path = super().create(folder, prefix)
        self.log.append(_Event("create", path))
        return handle, path

    def write(self, handle: int, parts: Sequence[memoryview]) -> int:
        """Write, and keep a copy."""
        written = super().write(handle, parts)
        self.log.append(_Event("write", _path_of(handle), b"".join(parts)[:written]))
        return written

    def sync(self, handle: int) -> None:
        """Sync a file, or the names in a folder, those of its folders among them."""
        super().sync(handle)
        path = Path(_path_of(handle))
        folders = [str(one) for one in path.iterdir() if one.is_dir()] if path.is_dir() else None
        self.log.append(_Event("sync", str(path), folders))

    def link(self, path: str, name: Path) -> None:
        """Give a file another name."""
        super().link(path, name)
        self.log.append(_Event("link", str(name.absolute()), path))

    def remove(self, path: str | Path) -> None:
        """Take a name away."""
        super().remove(path)
        self.log.append(_Event("remove", str(Path(path).absolute())))

    def commit(self, connection: sqlite3.Connection) -> None:
        """Commit, and keep a copy of what SQLite has synced by now."""
        super().commit(connection)
        files = [self._root / f"catalog.sqlite{end}" for end in ("", "-wal")]
        self.log.append(_Event("commit", about={file.name: file.read_bytes() for file in files if file.exists()}))

    def acknowledge(self, index: Index) -> None:
        """Note what is promised by now."""
        self.log.append(_Event("acknowledged", about=_facts(index)))


@dataclass(frozen=True)
class Lost:
    """A loss of power, and what it came to.

    Attributes
    ----------
    step : int
        How many steps there were before it; what the last of them was is `what`.
    survived : str
        What was left of what had not been synced.
    unreadable : bool
        Whether the index opens no more.
    lost, wrong : int
        Acknowledged documents and KV that are gone, and others than were ever put.
    resumed : bool
        Whether the same run, repeated on what is left, ends as one without a loss.
    """

    step: int
    what: str
    survived: Survival
    unreadable: bool = False
    lost: int = 0
    wrong: int = 0
    resumed: bool = True

    @property
    def clean(self) -> bool:
        """Whether all that was promised is there, and nothing else."""
        return self.resumed and not (self.unreadable or self.lost or self.wrong)


def lose_power_everywhere(reader: Reader, folder: Path, every: int = 1, seed: int = 0) -> Iterator[Lost]:
    """Cut a run off behind every step, or every few, each in all ways; open what is left, and resume."""
    folder = folder.resolve()
    root, disk = folder / "whole", RecordingDisk(folder / "whole")
    run(reader, root, disk, disk.acknowledge)
    expected = {file.name: file.read_bytes() for file in root.glob("kv/??/*.safetensors")}
    made = _made(disk.log)
    for step in range(1, len(disk.log) + 1, every):
        for survived in SURVIVALS:
            path = folder / f"{step}-{survived}"
            _replay(disk.log[:step], root, path, survived, random.Random(seed * 1_000_003 + step))
            what = disk.log[step - 1].what
            lost = _check(reader, path, disk.log, step, made, Lost(step, what, survived))
            killed = None if lost.unreadable else resume(reader, path, expected, step, what)
            yield Lost(**{**vars(lost), "resumed": killed is not None and killed.clean})
            shutil.rmtree(path)


def _check(reader: Reader, path: Path, log: Sequence[_Event], step: int, made: dict[str, bytes], about: Lost) -> Lost:
    """What is there, against what was promised before and after."""
    before, after = _promised(log[:step], last=True), _promised(log[step:], last=False)
    try:
        with Index(path, reader) as index:
            found, good = _facts(index), {key for key in made if _is_good(index, key, made[key])}
            others = {key for key in index.store.list() if key not in good and _reads(index, key)}
    except RagCacheError:
        return Lost(about.step, about.what, about.survived, unreadable=True)
    kept = before & (before if after is None else after)
    lost = [fact for fact in kept if fact not in found or (fact[0] == "KV" and fact[3] not in good)]
    strange = [fact for fact in found if fact[0] == "document" and fact not in before and fact not in (after or before)]
    return Lost(about.step, about.what, about.survived, lost=len(lost), wrong=len(strange) + len(others))


def _promised(log: Sequence[_Event], *, last: bool) -> Any:
    found = [event.about for event in log if event.what == "acknowledged"]
    return (found[-1 if last else 0]) if found else (frozenset() if last else None)


def _facts(index: Index) -> _Facts:
    catalog = index.catalog
    texts = {row.id: "\n".join(one.text for one in catalog.chunks_of(row.id)) for row in catalog.documents()}
    documents = {("document", row.source, row.digest, texts[row.id]) for row in catalog.documents()}
    rows = [row for recipe in catalog.recipes() for row in catalog.by_recipe(recipe)]
    return frozenset({*documents, *(("KV", row.chunk, row.recipe, row.key) for row in rows)})


def _is_good(index: Index, key: str, expected: bytes) -> bool:
    store = index.store
    return isinstance(store, LocalStore) and store.head(key) is not None and store.path_of(key).read_bytes() == expected


def _reads(index: Index, key: str) -> bool:
    try:
        unpack(index.store.get(key), key)
    except CorruptBlob:
        return False
    return True


def _path_of(handle: int) -> str:
    return os.readlink(f"/proc/self/fd/{handle}")


def _made(log: Sequence[_Event]) -> dict[str, bytes]:
    """What was written under each key."""
    files = _Files()
    made = {}
    for event in log:
        files.do(event)
        if event.what == "link":
            made[Path(event.path).stem] = b"".join(files.written[event.about])
    return made


@dataclass
class _Files:
    """Files as the system shows them, and as the disk has them."""

    written: dict[str, list[bytes]] = field(default_factory=dict)
    synced: dict[str, int] = field(default_factory=dict)  # how many of those writes
    names: dict[str, str] = field(default_factory=dict)
    pending: list[tuple[str, str | None]] = field(default_factory=list)  # a name, and the file that it is to be of
    folders: set[str] = field(default_factory=set)
    catalog: dict[str, bytes] = field(default_factory=dict)

    def do(self, event: _Event) -> None:
        """One more step."""
        if event.what == "create":
            self.written[event.path], self.synced[event.path] = [], 0
            self.pending.append((event.path, event.path))
        elif event.what == "write":
            self.written[event.path].append(event.about)
        elif event.what == "link":
            self.pending.append((event.path, event.about))
        elif event.what == "remove":
            self.pending.append((event.path, None))
        elif event.what == "commit":
            self.catalog = event.about
        elif event.what == "sync" and event.about is None:
            self.synced[event.path] = len(self.written[event.path])
        elif event.what == "sync":
            self.folders |= set(event.about)
            done = [one for one in self.pending if os.path.dirname(one[0]) == event.path]
            self.pending = [one for one in self.pending if one not in done]
            for name, file in done:
                self.name(name, file)

    def name(self, name: str, file: str | None) -> None:
        """Let a name be of a file, or of none."""
        if file is None:
            self.names.pop(name, None)
        else:
            self.names[name] = file


def _replay(log: Sequence[_Event], root: Path, path: Path, survived: Survival, rng: random.Random) -> None:
    """What the disk has behind the last step, in another folder."""
    files = _Files()
    for event in log:
        files.do(event)
    for name, file in files.pending:
        if survived == "names" or (survived == "some" and rng.random() < 0.5):
            files.name(name, file)
    path.mkdir()
    (path / "secret").write_bytes((root / "secret").read_bytes())
    for name, data in files.catalog.items():
        (path / name).write_bytes(data)
    for folder in sorted(files.folders):
        if all(str(above) in files.folders or above in (root, *root.parents) for above in Path(folder).parents):
            (path / Path(folder).relative_to(root)).mkdir(parents=True, exist_ok=True)
    for name, file in files.names.items():
        place = path / Path(name).relative_to(root)
        if place.parent.is_dir():
            place.write_bytes(_left(files, file, survived, rng))


def _left(files: _Files, file: str, survived: Survival, rng: random.Random) -> bytes:
    """The bytes of a file that are left: all that were synced, and of the others what may be."""
    parts, synced = files.written[file], files.synced[file]
    kept, unsynced = b"".join(parts[:synced]), b"".join(parts[synced:])
    if survived != "some" or not unsynced:
        return kept
    return kept + rng.choice((b"", unsynced, unsynced[: len(unsynced) // 2], bytes(len(unsynced))))
