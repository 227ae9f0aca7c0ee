"""Finding files: which ones there are to read under some paths, and why the others are left out."""

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ragcache.checks import check_not_blank
from ragcache.errors import InvalidArgument, NoDocuments, UnreadableDocument, UnsupportedDocument
from ragcache.report import make_printable
from ragcache.retrieve.formats import SUPPORTED, SUPPORTED_WORDS
from ragcache.retrieve.needs import needs

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILES = (".gitignore", ".ragcacheignore")
"""Files of patterns, obeyed in the folder where they lie and below it; the second overrules the first."""

DEFAULT_EXCLUDES = (
    ".*",  # .git, .venv, the caches of tools
    "__pycache__/",
    "*.egg-info/",
    "node_modules/",
    "bower_components/",
    "site-packages/",
    "venv/",
    "*.min.js",
    "*.min.css",
    "package-lock.json",
    "pnpm-lock.yaml",
    "desktop.ini",
    "~$*",  # what office programs leave beside an open file
)
"""Patterns that hold in every folder; one that begins with ``!`` in a later list takes an entry back in."""

_INDEX = {"catalog.sqlite", "secret"}  # a folder that has both is an index of ours
_KINDS = ((stat.S_ISDIR, "a directory"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))

_Level = tuple[str, "GitIgnoreSpec"]  # patterns, and the folder that they count from


@dataclass(frozen=True)
class Found:
    """What lies under some paths.

    Attributes
    ----------
    files : tuple of Path
        To be read: absolute, sorted, each once, whatever links lead to it.
    skipped : tuple of str
        Files of a type that no reader takes.
    ignored : tuple of str
        What patterns leave out: files, and folders with a slash at their end, which stand for all that is in them.
    errors : tuple of str
        A sentence for each entry that is not read: a folder that may not be listed, a pipe, a broken link, a link out
        of its folder.
    """

    files: tuple[Path, ...]
    skipped: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


def find(paths: Sequence[str | Path], *, exclude: Sequence[str] = (), ignore_files: bool = True) -> Found:
    """Find the files to read.

    Parameters
    ----------
    paths : Sequence[str | Path]
        Files, which are read whatever the patterns say, and folders to look through. Links to files of the same folder,
        or below it, are followed; others are named, and those to folders are, which may lead round in circles.
    exclude : Sequence[str]
        Patterns in the syntax of ``.gitignore``, as if they stood in each of the folders given. They overrule ignore
        files, which overrule `DEFAULT_EXCLUDES`.
    ignore_files : bool
        Whether `IGNORE_FILES` are obeyed.

    Returns
    -------
    Found
        At least one file.

    Raises
    ------
    NoDocuments
        If a path does not exist, or there is no supported file under any of them.
    UnsupportedDocument
        If a file that was named itself is of another type.
    UnreadableDocument
        If what was named itself is neither a file nor a folder, or nothing could be read under the paths.
    InvalidArgument
        If a pattern is not one, or a path is blank.
    """
    check_not_blank(*paths)
    named = [Path(path) for path in paths]
    search = _Search(_spec_of(exclude), IGNORE_FILES if ignore_files else ())
    roots = [os.path.realpath(path) for path in named if not search.add(path)]
    for root in roots:
        search.walk(root)
    found = search.found(roots)
    if not found.files:
        raise _nothing(named, found)
    return found


def place_of(path: str | Path) -> str:
    """Say where an entry is: the one path of its folder, whatever links the given one leads through, and its name."""
    folder, name = os.path.split(path)
    return os.path.realpath(path) if name in ("", ".", "..") else os.path.join(os.path.realpath(folder or "."), name)


def kind_of(mode: int) -> str:
    """Say what stands in a file's place; nothing for a regular file."""
    if stat.S_ISREG(mode):
        return ""
    return next((word for is_kind, word in _KINDS if is_kind(mode)), "a device")


def unreadable(path: str | Path, reason: str) -> UnreadableDocument:
    """Make the error that names a file and why it can't be read."""
    shown, why = make_printable(str(path)), " ".join(reason.split()).rstrip(".")
    return UnreadableDocument(f"{shown} can't be read: {why}; repair it or leave it out.")


@dataclass
class _Search:
    """Collects what lies under the paths given."""

    exclude: "GitIgnoreSpec"
    ignore_files: Sequence[str]
    files: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)
    errors: dict[str, str] = field(default_factory=dict)

    def add(self, path: Path) -> bool:
        """Take in a file that was named itself; False for a folder."""
        try:
            kind = kind_of(path.stat().st_mode)
        except FileNotFoundError as error:
            raise NoDocuments(f"there is no {path}; give the path of a file or folder.") from error
        except OSError as error:
            raise unreadable(path, error.strerror or str(error)) from error
        if path.is_dir():
            return False
        if kind:
            raise unreadable(path, f"it is {kind}, not a file")
        if reason := _obstacle(str(path)):
            raise unreadable(path, reason)
        if path.suffix.lower() not in SUPPORTED:
            raise UnsupportedDocument(f"{path} can't be read: supported are {SUPPORTED_WORDS}.")
        self.files.add(place_of(path))
        return True

    def walk(self, root: str) -> None:
        """Take in what lies below a folder."""
        inherited: dict[str, tuple[_Level, ...]] = {root: ((root, _spec_of(DEFAULT_EXCLUDES)),)}
        for folder, folders, files in os.walk(root, onerror=self._refuse):
            levels = inherited.pop(folder)
            if set(files) >= _INDEX:
                self.ignored.add(_slashed(folder))
                folders.clear()
                continue
            levels += self._levels_of(folder, files)
            folders[:] = [name for name in folders if self._enters(root, os.path.join(folder, name), levels)]
            inherited |= {os.path.join(folder, name): levels for name in folders}
            for name in files:
                self._sort(root, os.path.join(folder, name), levels)

    def found(self, roots: Iterable[str]) -> Found:
        """Return what was collected; what was named itself does not count as ignored below another path."""
        ignored = self.ignored - self.files - {_slashed(root) for root in roots}
        errors = tuple(self.errors[path] for path in sorted(self.errors))
        return Found(
            tuple(map(Path, _distinct(self.files))), tuple(sorted(self.skipped)), tuple(sorted(ignored)), errors
        )

    def _levels_of(self, folder: str, files: Sequence[str]) -> tuple[_Level, ...]:
        """Read the ignore files of a folder."""
        lines: list[str] = []
        for path in (Path(folder, name) for name in self.ignore_files if name in files):
            try:
                lines += path.read_text("utf-8", "replace").splitlines() if path.is_file() else ()
            except OSError as error:
                self._refuse(error)
        valid = [line for line in lines if _is_pattern(line)]  # git passes over the others, too
        return ((folder, _spec_of(valid)),) if valid else ()

    def _enters(self, root: str, folder: str, levels: Sequence[_Level]) -> bool:
        if self._leaves_out(root, _slashed(folder), levels):
            self.ignored.add(_slashed(folder))
        elif os.path.islink(folder):
            self._name(folder, "it is a link to a folder, and those are not followed")
        else:
            return True
        return False

    def _sort(self, root: str, path: str, levels: Sequence[_Level]) -> None:
        if self._leaves_out(root, path, levels):
            self.ignored.add(path)
        elif os.path.splitext(path)[1].lower() not in SUPPORTED:
            self.skipped.add(path)
        elif os.path.islink(path) and not Path(os.path.realpath(path)).is_relative_to(root):
            self._name(path, "it is a link that leads out of the folder; name its file itself")
        elif reason := _obstacle(path):
            self._name(path, reason)
        else:
            self.files.add(path)

    def _leaves_out(self, root: str, path: str, levels: Sequence[_Level]) -> bool:
        """Whether an entry is left out: the last pattern that mentions it decides."""
        for folder, spec in ((root, self.exclude), *reversed(levels)):
            said = spec.check_file(path[len(folder) :].lstrip(os.sep)).include
            if said is not None:
                return bool(said)
        return False

    def _refuse(self, error: OSError) -> None:
        self._name(str(error.filename), error.strerror or str(error))

    def _name(self, path: str, reason: str) -> None:
        self.errors[path] = str(unreadable(path, reason))


def _spec_of(patterns: Sequence[str]) -> "GitIgnoreSpec":
    with needs():
        from pathspec import GitIgnoreSpec
    try:
        return GitIgnoreSpec.from_lines([patterns] if isinstance(patterns, str) else patterns)
    except ValueError as error:
        wrong = next(pattern for pattern in patterns if not _is_pattern(pattern))
        raise InvalidArgument(f"{wrong!r} is no pattern as in a .gitignore file; give one such as '*.log'.") from error


def _is_pattern(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def _obstacle(path: str) -> str:
    """Say why a file can't be opened, or must not be: reading a pipe would wait for ever."""
    try:
        kind = kind_of(os.stat(path).st_mode)
    except OSError as error:
        return "it is a link that leads nowhere" if os.path.islink(path) else error.strerror or str(error)
    if kind:
        return f"it is {kind}, not a file"
    return "" if path.encode("utf-8", "ignore").decode() == path else "its name is not valid UTF-8"


def _distinct(files: Iterable[str]) -> list[str]:
    """Files without the links to others of them."""
    links = {True: list[str](), False: list[str]()}
    for path in sorted(files):
        links[os.path.islink(path)].append(path)
    found = {path: path for path in links[False]}
    for path in links[True]:
        found.setdefault(os.path.realpath(path), path)
    return sorted(found.values())


def _slashed(folder: str) -> str:
    return os.path.join(folder, "")


def _nothing(named: Sequence[Path], found: Found) -> NoDocuments | UnreadableDocument:
    if found.errors:
        return UnreadableDocument(found.errors[0])
    where = ", ".join(map(str, named)) or "no path"
    said = f"no document under {where}; give files or folders with {SUPPORTED_WORDS}"
    if found.ignored:
        said += f" (patterns leave out {len(found.ignored):,} entries, such as {found.ignored[0]})"
    return NoDocuments(f"{said}.")
