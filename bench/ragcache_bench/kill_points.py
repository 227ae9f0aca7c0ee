"""Ingestion, replacement and removal, killed behind every step that they ask of the disk, and then resumed."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ragcache.encode import Alone, Prefixed
from ragcache.errors import CorruptBlob
from ragcache.index.documents import Documents
from ragcache.index.index import Index
from ragcache.index.reconcile import reconcile
from ragcache.model.reader import Reader
from ragcache.store import Disk, LocalStore, unpack
from ragcache_bench.faulty_disk import Crash, FaultyDisk

_PAGES = {
    "bridge": ("The bridge was built in 1931.", "It is painted green."),
    "mill": ("The mill grinds rye.", "Nobody remembers why."),
    "harbour": ("The harbour master counts boats.",),
}
_CHANGED = ("The bridge was built in 1932.", "It is painted green.")


@dataclass(frozen=True)
class Killed:
    """A kill and what its resumption came to.

    Attributes
    ----------
    step : int
        How many steps there were before it; what the last of them was is `what`.
    same_keys : bool
        Whether the files are those of a run that nobody killed, bit for bit where they are named alike.
    bad, orphans, missing : int
        Files that fail their checks, that nothing names, and that are named and not there.
    """

    step: int
    what: str
    same_keys: bool
    bad: int
    orphans: int
    missing: int

    @property
    def clean(self) -> bool:
        """Whether nothing is left of the kill."""
        return self.same_keys and not (self.bad or self.orphans or self.missing)


def kill_everywhere(reader: Reader, folder: Path, every: int = 1) -> Iterator[Killed]:
    """Kill a run behind every step, or every few, one run each, and resume it."""
    names: list[str] = []
    expected = _keys(run(reader, folder / "whole", FaultyDisk(lambda step, what: names.append(what))))
    for step in range(1, len(names) + 1, every):
        path = folder / str(step)
        with suppress(Crash):
            run(reader, path, FaultyDisk(lambda now, what, step=step: "crash" if now == step else None))  # type: ignore[misc]
        yield resume(reader, path, expected, step, names[step - 1])
        shutil.rmtree(path)


def run(reader: Reader, path: Path, disk: Disk, acknowledge: Callable[[Index], None] = lambda index: None) -> Path:
    """Three documents, of which one is changed and one removed, each encoded alone and behind what precedes it.

    Whoever wants to know is told whenever something is promised.
    """
    path.mkdir(parents=True, exist_ok=True)
    (path / "secret").write_bytes(bytes(32))  # or no two runs had a key in common
    store = LocalStore(path / "kv", disk=disk)
    index = Index(path, reader, store=store)
    try:
        for source, texts in _PAGES.items():
            index.put(source, "", [(text, 0, len(text)) for text in texts], {})
            acknowledge(index)
        _encode(index)
        acknowledge(index)
        index.put("bridge", "changed", [(text, 0, len(text)) for text in _CHANGED], {})
        acknowledge(index)
        index.remove("mill")
        acknowledge(index)
        _encode(index)
        acknowledge(index)
    finally:
        index.catalog.close()  # as the system does
    return path


def _encode(index: Index) -> None:
    index.prefix()
    for encoder in (Alone(), Prefixed()):
        index.drop_missing()
        list(index.encode(encoder))


def resume(reader: Reader, path: Path, expected: dict[str, bytes], step: int, what: str) -> Killed:
    """Repeat a run on what was left of it, sweep, and compare with one that nobody stopped."""
    run(reader, path, FaultyDisk())
    with Index(path, reader) as index:
        Documents(path, index.catalog, index.forgotten, lambda chunks: None).clean()  # as `ragcache store gc` does
        LocalStore(path / "kv").sweep(0.0)
        differences = reconcile(index.catalog, list(index.store.list()), keep=(index.prefix_key,))
        bad = Counter[str]()
        for key in index.store.list():
            try:
                unpack(index.store.get(key), key)
            except CorruptBlob as error:
                bad[error.reason] += 1
        stray = len(list(path.glob("kv/*/.tmp-*"))) + len(differences.orphan_blobs)
        same = _keys(path) == expected
        return Killed(step, what, same, sum(bad.values()), stray, len(differences.missing_blobs))


def _keys(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.glob("kv/??/*.safetensors")}
