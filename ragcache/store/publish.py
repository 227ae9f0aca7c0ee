"""How a file appears under its name whole or not at all, and stays there whatever happens to the machine."""

import errno
import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ragcache.store.disk import Disk

TEMPORARY = ".tmp-"
"""How the names of files begin that are being written."""

_DISK = Disk()
_UNLINKABLE = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)
_AT_ONCE = 1024  # parts of one vectored write: POSIX systems' usual IOV_MAX


def publish(
    path: Path,
    parts: Sequence[bytes | memoryview],
    *,
    durable: bool = True,
    mode: int | None = None,
    disk: Disk = _DISK,
) -> bool:
    """Write a file durably under a name that nobody holds yet.

    The bytes go to a temporary file beside `path` and are synced before the name is linked, so a reader
    sees all of them or no file, and of several writers exactly one wins.

    Parameters
    ----------
    path : Path
        Final name; its folder must exist.
    parts : sequence of bytes-like
        What to write, one after the other.
    durable : bool
        Whether the file survives a crash of the machine.
    mode : int, optional
        Of the file; by default whoever may read and write the folder's files may do so with this one.
    disk : Disk
        Carries it out.

    Returns
    -------
    bool
        False if the name was taken; the file found there is left as it is.

    Raises
    ------
    OSError
        The disk refused; no temporary file is left behind.
    """
    handle, temporary = disk.create(path.parent, TEMPORARY)
    try:
        try:
            _write(handle, parts, disk)
            os.fchmod(handle, path.parent.stat().st_mode & 0o666 if mode is None else mode)
            if durable:
                disk.sync(handle)
        finally:
            os.close(handle)
        won = _link(temporary, path, disk)
    finally:
        disk.remove(temporary)
    if durable:
        sync_folder(path.parent, disk)  # the loser too: it must not acknowledge a name that may still vanish
    return won


def _write(handle: int, parts: Sequence[bytes | memoryview], disk: Disk) -> None:
    views = [memoryview(part).cast("B") for part in parts]
    while views:  # one call moves at most 2 GiB, and takes at most `_AT_ONCE` parts
        written = disk.write(handle, views[:_AT_ONCE])
        while views and written >= len(views[0]):
            written -= len(views.pop(0))
        if views:
            views[0] = views[0][written:]


def _link(temporary: str, path: Path, disk: Disk) -> bool:
    try:
        disk.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _UNLINKABLE:
            raise
        return _rename(temporary, path, disk)
    return True


def _rename(temporary: str, path: Path, disk: Disk) -> bool:
    """The same where the file system knows no links: those who rename take turns, as far as it knows locks."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_EX)
        if path.exists():
            return False
        disk.move(temporary, path)
        return True
    finally:
        os.close(folder)


def sync_folder(folder: Path, disk: Disk = _DISK) -> None:
    """Wait until the names in a folder survive a crash of the machine."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        disk.sync(handle)
    finally:
        os.close(handle)
