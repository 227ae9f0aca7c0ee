"""Public sets as tasks of the benchmark."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from ragcache.errors import InvalidArgument
from ragcache_bench.datasets.card import Card, card
from ragcache_bench.datasets.sample import load
from ragcache_bench.datasets.table import Dataset, find
from ragcache_bench.tasks.example import Example

_SPLIT = re.compile(r"test|train|validation|valid|dev|-\d{5}-of-\d{5}|\.gz$")  # what tells a task's files apart


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
    label : str
        What its questions are called by beside another file of the set; its name where it is empty.
    """

    name: str
    path: Path
    chunks: int | None = None
    size: int | None = None
    label: str = ""
    needs: ClassVar[bool] = False
    twin: ClassVar[bool] = False

    def examples(self, n: int, seed: int = 0) -> list[Example]:
        """Return `n` examples, at most as many as the file has; see `load`."""
        found = load(self.name, self.path, n, seed, self.chunks, self.size)
        return [self._labelled(example) for example in found] if self.label else found

    def _labelled(self, example: Example) -> Example:
        return replace(example, task=self.label, id=self.label + example.id.removeprefix(self.name))

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


def choose(specs: Sequence[str], chunks: int | None = None) -> dict[str, Public]:
    """Return the tasks of several specs, by name; one whose name is taken has its file's name behind it.

    Raises
    ------
    InvalidArgument
        As `named`, and if that name is taken too.
    """
    tasks: dict[str, Public] = {}
    for spec in specs:
        for task in named(spec, chunks).values():
            _add(tasks, task)
    return tasks


def _add(tasks: dict[str, Public], task: Public) -> None:
    own = f"{task.name}-{Path(task.path.name.removesuffix('.gz')).stem}"
    for one in (task, replace(task, label=own)):
        there = tasks.setdefault(one.label or one.name, one)
        if there.path.resolve() == task.path.resolve():
            return
    raise InvalidArgument(
        f"{there.path} and {task.path} are both {own}; rename one of the files, or ask them in two runs with another "
        "--out each"
    )


def named(spec: str, chunks: int | None = None, size: int | None = None) -> dict[str, Public]:
    """Return the tasks that a spec stands for, by name.

    "xquad:xquad.en.json" is one task, "xquad"; "babi:FOLDER" is one for each file, "babi-1", "babi-2" and on (of a
    task's test and training files, the test file).

    Raises
    ------
    InvalidArgument
        If there is no such set, no such path, nothing of the set in the folder, or two files of one task in it.
    """
    name, path = parse(spec)
    row = find(name)
    if not path.exists():
        raise InvalidArgument(f"{path} does not exist; write {name}:PATH with the path of a downloaded file")
    folder = path.is_dir() and row.files
    found = [file for file in _files(path, row) if row.asks(file)] if folder else [path] * path.is_file()
    if not found:
        raise InvalidArgument(f"{path}: expected {row.files or 'a file, not a folder'}; write {name}:PATH")
    tasks: dict[str, Public] = {}
    for file in found:
        full = f"{name.partition('-')[0]}-{row.task(file)}" if row.files else name
        there = tasks.setdefault(full, Public(full, file, chunks, size)).path
        if _task_file(there) != _task_file(file):
            raise InvalidArgument(f"{there} and {file} are both {full}; name one of them, as in {name}:{there}")
    return {key: tasks[key] for key in sorted(tasks, key=lambda key: (len(key), key))}


def unasked(spec: str) -> list[str]:
    """The tasks of a spec's folder that ask no question, which `named` leaves out."""
    name, path = parse(spec)
    row = find(name)
    return [row.task(file) for file in _files(path, row) if not row.asks(file)] if path.is_dir() else []


def _task_file(path: Path) -> tuple[Path, str]:
    """What the splits of a task, and the parts of a table, have in common."""
    return path.parent, _SPLIT.sub("", path.name)


def _files(folder: Path, row: Dataset) -> list[Path]:
    """A folder's files by the set's globs, but for hidden folders: a hub's client keeps notes of the same names there.

    Of the splits of one task the preferred one comes first.
    """
    found = (path for pattern in row.files.split() for path in folder.glob(pattern))
    seen = (path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))
    return sorted(seen, key=row.order)
