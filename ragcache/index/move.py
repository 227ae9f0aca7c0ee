"""Give an index another place on the disk, while nobody uses it: at every moment it is whole at one of the two."""

import errno
import os
import shutil
import tempfile
from contextlib import closing
from pathlib import Path

import xxhash

from ragcache.errors import InvalidArgument, StorageFull
from ragcache.index.archive import check_free
from ragcache.index.settings import find_catalog
from ragcache.store import Catalog
from ragcache.store.publish import sync_folder

_CATALOG = "catalog.sqlite"


def move_index(path: str | Path, to: str | Path) -> Path:
    """Move an index's folder; to another disk it is copied, compared, and only then removed.

    Parameters
    ----------
    path : str or Path
        The index's folder.
    to : str or Path
        The folder to make; it must not exist, or be empty.

    Returns
    -------
    Path
        Where it is now.

    Raises
    ------
    EmptyIndex
        If there is no index.
    InvalidArgument
        If something is there already, or it would stand inside itself.
    UnusableIndex
        If another process has it open.
    StorageFull
        If the disk refused; the message says where the index is.
    """
    path, to = Path(path), Path(to)
    file = find_catalog(path)
    check_free(to, "TO")
    if to.resolve().is_relative_to(path.resolve()):
        raise InvalidArgument(f"{to} lies in the index {path} itself; name a folder outside of it.")
    with closing(Catalog(file)) as catalog:
        catalog.hold_alone()
        try:
            to.absolute().parent.mkdir(parents=True, exist_ok=True)
            _rename_or_copy(path, to, catalog)
        except OSError as error:
            if (to / _CATALOG).is_file():  # it has its name only when it is whole
                raise StorageFull(
                    f"the index is in {to} now, but the disk refused the rest ({error.strerror or error}); delete what "
                    f"is left in {path}."
                ) from error
            raise StorageFull(
                f"the disk refused to move {path} to {to} ({error.strerror or error}); the index is where it was."
            ) from error
    return to


def _rename_or_copy(path: Path, to: Path, catalog: Catalog) -> None:
    folder = to.absolute().parent
    try:
        path.rename(to)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        place = Path(tempfile.mkdtemp(prefix=f".{to.name[:60]}-", dir=folder))
        try:
            _copy(path, place / "index", catalog)
            (place / "index").rename(to)
            sync_folder(folder)
        finally:
            shutil.rmtree(place, ignore_errors=True)
        shutil.rmtree(path)
    sync_folder(folder)
    sync_folder(path.absolute().parent)


def _copy(path: Path, to: Path, catalog: Catalog) -> None:
    """All files but the catalogue's as they are; that one by SQLite, since to read it would give up our lock on it."""
    shutil.copytree(path, to, symlinks=True, ignore=shutil.ignore_patterns(f"{_CATALOG}*"))
    catalog.copy_to(to / _CATALOG)
    for file in [to, *to.rglob("*")]:
        if file.is_dir():
            sync_folder(file)
        elif file.name != _CATALOG and _digest(file) != _digest(path / file.relative_to(to)):
            raise OSError(errno.EIO, f"{file} is not what was copied")
        else:
            with file.open("rb") as copied:
                os.fsync(copied.fileno())


def _digest(path: Path) -> bytes:
    digest = xxhash.xxh3_128()
    with path.open("rb") as file:
        while data := file.read(1 << 22):
            digest.update(data)
    return digest.digest()
