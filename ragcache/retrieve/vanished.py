"""Files that an index knows and that are there no more."""

import os
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from pathlib import Path

from ragcache.checks import check_not_blank
from ragcache.errors import NoDocuments
from ragcache.retrieve.discover import Found, find, place_of


def find_standing(
    paths: Sequence[str | Path], known: Collection[str], *, exclude: Sequence[str] = (), ignore_files: bool = True
) -> Found:
    """Find the files to read, as `find` does, among what is left of what the index knows.

    Parameters
    ----------
    paths : sequence of path
        Files and folders. One where nothing is any more will do if the index knows files from there.
    known : collection of str
        Absolute paths of the files that the index knows.
    exclude, ignore_files
        As in `find`.

    Returns
    -------
    Found
        Without files where all that the index knew under the paths is gone.

    Raises
    ------
    InvalidArgument
        If a path is blank.
    """
    check_not_blank(*paths)
    standing = [path for path in paths if not (absent(path) and _under(known, [path]))]
    try:
        return find(standing, exclude=exclude, ignore_files=ignore_files) if standing else Found(())
    except NoDocuments:
        if any(map(absent, standing)) or not gone(known, paths):
            raise
        return Found(())


def gone(
    known: Collection[str], paths: Iterable[str | Path] | None = None, *, found: Iterable[str | Path] = ()
) -> list[str]:
    """Of files that are known under some paths, or anywhere, those that are there no more.

    One that is known by another path too, since a link led to it, or is `found` by that one now, is so as well.
    """
    others = {*known, *map(str, found)}
    return [source for source in (known if paths is None else _under(known, paths)) if _is_gone(source, others)]


def _is_gone(source: str, others: set[str]) -> bool:
    return absent(source) or not others.isdisjoint({place_of(source), os.path.realpath(source)} - {source})


def absent(path: str | Path) -> bool:
    """Whether there is nothing of that path. A folder that may not be looked into does not say so."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _under(known: Iterable[str], paths: Iterable[str | Path]) -> list[str]:
    """Those of the known files that are one of these paths or below one, by any way, with links and without."""
    roots = {way for path in paths for way in (os.path.abspath(path), place_of(path), os.path.realpath(path))}

    @cache  # many files lie in few folders
    def look(folder: str) -> tuple[str, bool]:
        place = os.path.realpath(folder)
        return place, any(str(one) in roots for way in {folder, place} for one in (Path(way), *Path(way).parents))

    def is_under(source: str) -> bool:
        folder, name = os.path.split(source)
        place, below = look(folder)
        return below or not roots.isdisjoint({source, os.path.join(place, name)})

    return list(filter(is_under, known))
