"""Public sets as tasks of the benchmark."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ragcache.errors import InvalidArgument
from ragcache_bench.datasets.card import Card, card
from ragcache_bench.datasets.sample import load
from ragcache_bench.datasets.table import find
from ragcache_bench.tasks.example import Example


@dataclass(frozen=True, repr=False)
class Public:
    """A file of a public set, as a task.

    Attributes
    ----------
    name : str
        Of the set, or of one of its tasks, "babi-15".
    path : Path
        The file.
    chunks : int, optional
        Chunks per question; without it the set's own number.
    size : int, optional
        How large a chunk is, where chunks are made here; see `load`.
    """

    name: str
    path: Path
    chunks: int | None = None
    size: int | None = None
    needs: ClassVar[bool] = False
    twin: ClassVar[bool] = False

    def examples(self, n: int, seed: int = 0) -> list[Example]:
        """Return `n` examples, at most as many as the file has; see `load`."""
        return load(self.name, self.path, n, seed, self.chunks, self.size)

    def card(self, n: int = 200, seed: int = 0) -> Card:
        """Describe the same `n` examples."""
        return card(self.examples(n, seed))

    @property
    def chance(self) -> float | None:
        """Exact match of always giving the most frequent answer, over a thousand questions; None where none has one."""
        found = self.card(1000)
        return found.majority if found.unstated < 1 else None

    def __repr__(self) -> str:
        """Name the file without its folder, for results are published."""
        return f"Public({self.name!r}, {self.path.name!r}, chunks={self.chunks}, size={self.size})"


def parse(spec: str) -> tuple[str, Path]:
    """Split "xquad:PATH" into the set's name and the path.

    Raises
    ------
    InvalidArgument
        If there is no path, or no such set.
    """
    name, _, path = spec.partition(":")
    find(name)
    if not path:
        raise InvalidArgument(f"{spec!r} names no file; write {name}:PATH")
    return name, Path(path).expanduser()


def named(spec: str, chunks: int | None = None, size: int | None = None) -> dict[str, Public]:
    """Return the tasks that a spec stands for, by name.

    "xquad:xquad.en.json" is one task, "xquad"; "babi:FOLDER" is one for each file, "babi-1", "babi-2" and on (of a
    task's test and training files, the test file).

    Raises
    ------
    InvalidArgument
        If there is no such set, no such path, or nothing of the set in the folder.
    """
    name, path = parse(spec)
    row = find(name)
    if not path.exists():
        raise InvalidArgument(f"{path} does not exist; write {name}:PATH with the path of a downloaded file")
    found = sorted(_visible(path, row.files), key=row.order) if path.is_dir() and row.files else [path] * path.is_file()
    if not found:
        raise InvalidArgument(f"{path}: expected {row.files or 'a file, not a folder'}; write {name}:PATH")
    tasks: dict[str, Public] = {}
    for file in found:
        full = f"{name.partition('-')[0]}-{row.task(file)}" if row.files else name
        tasks.setdefault(full, Public(full, file, chunks, size))
    return {key: tasks[key] for key in sorted(tasks, key=lambda key: (len(key), key))}


def _visible(folder: Path, pattern: str) -> Iterator[Path]:
    """Files by a pattern, but for hidden folders: a hub's client keeps notes under the same names there."""
    for path in folder.glob(pattern):
        if not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path
