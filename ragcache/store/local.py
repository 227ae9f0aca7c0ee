"""Durable files: the KV blobs of one collection in a local folder.

Nothing here knows what the bytes mean. A file appears under its key whole or not at all, and once
`LocalStore.put_if_absent` has returned it survives a crash of the process or of the machine.
"""

import fcntl
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, Self

from ragcache.errors import CorruptBlob, InvalidArgument, StorageFull, remedy
from ragcache.model.lazy import Tensor, torch
from ragcache.store.disk import Disk
from ragcache.store.encryption import OVERHEAD, Encryption, SealBroken, encryption_of
from ragcache.store.publish import TEMPORARY, publish, sync_folder

_KEY = re.compile(r"[0-9a-f]{64}")
_LOCKS: dict[Path, tuple[AbstractContextManager[Any], AbstractContextManager[Any]]] = {}
_DISK = Disk()
_RETRY_SECONDS = 0.005
_SUFFIX = ".safetensors"


def _host_memory(nbytes: int) -> Tensor:
    return torch.empty(nbytes, dtype=torch.uint8)


def _pinned_memory(nbytes: int) -> Tensor:
    try:
        return torch.empty(nbytes, dtype=torch.uint8, pin_memory=True)
    except RuntimeError:  # the system grants a process only so much of it
        return _host_memory(nbytes)


def is_key(text: str) -> bool:
    """Whether a text is shaped as a key: 64 hexadecimal digits."""
    return _KEY.fullmatch(text) is not None


def locks_of(folder: Path) -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Two locks, the same for all that have an index open in this process.

    The first is held by whoever reads documents in order to change them, the second by whoever makes KV for others; a
    thread that has one may take it again, and the first while it has the second.
    """
    return _LOCKS.setdefault(folder.resolve(), (RLock(), RLock()))


@contextmanager
def hold_turn(path: Path, seconds: float = math.inf) -> Iterator[None]:
    """Do something while no other process, and no other thread, does it; a process that is killed lets go.

    Parameters
    ----------
    path : Path
        A file that stands for it, created if absent. Where the file system knows no locks nobody waits.
    seconds : float
        How long to wait for the others.

    Raises
    ------
    TimeoutError
        It was somebody else's turn all the time.
    """
    handle, until = os.open(path, os.O_RDWR | os.O_CREAT, 0o600), time.monotonic() + seconds
    try:
        while not _try_lock(handle, wait=math.isinf(seconds)):
            if time.monotonic() > until:
                raise TimeoutError(f"{path} was locked for {seconds:.0f} seconds")
            time.sleep(_RETRY_SECONDS)
        yield
    finally:
        with suppress(OSError):  # a forked process may have the handle, too
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _try_lock(handle: int, *, wait: bool) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # the file system knows no locks
        return True
    return True


class LocalStore:
    """A folder of immutable blobs, one file per key, readable by its owner only, or by those who may read the folder.

    Safe for several threads and several processes at once; there is no lock, only first writer wins. Where the folder
    above is encrypted, so is every blob. It is a `ragcache.store.BlobStore`.

    Parameters
    ----------
    root : str or Path
        Folder, created if absent. Its parent must not be writable by people you don't trust.
    allocate : callable, optional
        Number of bytes to a one-dimensional uint8 CPU tensor of that length. Blobs are read straight
        into it.
    durable : bool
        Whether what was stored survives a crash of the machine; a store that is thrown away anyway need not wait for
        the disk.
    read_only : bool
        Whether the folder is left as it is found, for a process that only reads what others write.
    disk : Disk
        Carries out what is asked of the system.

    Raises
    ------
    StorageFull
        The folder cannot be created.
    """

    shared = False

    def __init__(
        self,
        root: str | Path,
        allocate: Callable[[int], Tensor] = _host_memory,
        *,
        durable: bool = True,
        read_only: bool = False,
        disk: Disk = _DISK,
    ) -> None:
        self.root = Path(root)
        self.disk = disk
        self._allocate = allocate
        self.durable = durable
        self._known_shards: set[Path] = set()
        self.writable = not read_only and (not self.root.exists() or os.access(self.root, os.W_OK))
        if not self.writable:
            return
        try:
            self._make_folder(self.root)
            self.sweep()
        except OSError as error:
            raise self._refused(error) from error

    @classmethod
    def near(cls, device: "torch.device", root: str | Path, *, durable: bool = True) -> Self:
        """A store whose blobs are on their way to a device: a GPU copies from pinned memory while the host goes on."""
        return cls(root, _pinned_memory if device.type == "cuda" else _host_memory, durable=durable)

    @cached_property
    def _encryption(self) -> Encryption | None:
        """Looked for when the first blob is written or read: by then the catalogue has said what the index is."""
        return encryption_of(self.root.parent)

    def size_of(self, parts: Sequence[bytes | memoryview]) -> int:
        """Bytes of the file that some parts make."""
        return sum(memoryview(part).nbytes for part in parts) + (OVERHEAD if self._encryption else 0)

    def put_if_absent(self, key: str, parts: Sequence[bytes | memoryview]) -> bool:
        """Store bytes under a key unless it has some; durable on return.

        Parameters
        ----------
        key : str
            64 lower-case hexadecimal digits.
        parts : sequence of bytes-like
            The file's content in order, as `ragcache.store.pack` gives it.

        Returns
        -------
        bool
            True if this call published the file, False if the key had one.

        Raises
        ------
        InvalidArgument
            `key` is no key.
        StorageFull
            The disk refused; nothing was published.
        """
        path = self._path(key)
        try:
            self._make_shard(path.parent)
            if path.exists():
                self._sync(path.parent)
                return False
            sealed = parts if self._encryption is None else list(self._encryption.seal(key, parts))
            return self._publish(path, sealed)
        except OSError as error:
            raise self._refused(error) from error

    def _publish(self, path: Path, parts: Sequence[bytes | memoryview]) -> bool:
        try:
            return publish(path, parts, durable=self.durable, disk=self.disk)
        except FileNotFoundError:  # somebody has deleted the folders since they were made
            self._known_shards.clear()
            self._make_folder(self.root)
            self._make_shard(path.parent)
            return publish(path, parts, durable=self.durable, disk=self.disk)

    def get(self, key: str) -> Tensor:
        """Read a whole blob into freshly allocated memory.

        Returns
        -------
        Tensor
            uint8, (bytes,).

        Raises
        ------
        InvalidArgument
            `key` is no key.
        CorruptBlob
            The file is missing or cannot be read.
        """
        return self._read(key, None)[0]

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> Sequence[Tensor]:
        """Read some byte ranges of a blob.

        Parameters
        ----------
        key : str
            64 lower-case hexadecimal digits.
        ranges : sequence of (start, stop)
            Offsets in bytes from the beginning of the file, `stop` exclusive.

        Returns
        -------
        sequence of Tensor
            One uint8 tensor, (stop - start,), per range.

        Raises
        ------
        InvalidArgument
            `key` is no key, or a range runs backwards.
        CorruptBlob
            The file is missing, ends before a range does, or cannot be read.
        """
        for start, stop in ranges:
            if not 0 <= start <= stop:
                raise InvalidArgument(f"a byte range must have 0 <= start <= stop, not ({start}, {stop}).")
        return self._read(key, ranges)

    def head(self, key: str) -> int | None:
        """Tell a blob's size in bytes, None if the key has no blob."""
        try:
            return self._path(key).stat().st_size
        except FileNotFoundError:
            return None

    def total_bytes(self) -> int:
        """What all its files take, those that are being written and those that were moved aside among them."""
        found: dict[int, int] = {}
        for path in self.root.glob("*/*"):
            with suppress(FileNotFoundError):
                about = path.stat()
                found[about.st_ino] = about.st_size  # a file that is being published has two names
        return sum(found.values())

    def list(self) -> Iterator[str]:
        """Yield the keys of all published blobs, in order."""
        return self.list_keys(self.root)

    @staticmethod
    def list_keys(root: Path) -> Iterator[str]:
        """Yield the keys of all blobs in a folder, in order; none where there is no folder."""
        for shard in sorted(root.glob("[0-9a-f][0-9a-f]")):
            names = sorted(path.name.removesuffix(_SUFFIX) for path in shard.glob(f"*{_SUFFIX}"))
            yield from filter(_KEY.fullmatch, names)

    def quarantined(self) -> Iterator[str]:
        """Yield the keys of all blobs that were moved aside, in order."""
        names = sorted(path.name.removesuffix(_SUFFIX) for path in (self.root / "quarantine").glob(f"*{_SUFFIX}"))
        yield from filter(_KEY.fullmatch, names)

    def delete(self, key: str) -> bool:
        """Remove a blob, and what was quarantined under its key; tell whether there was any.

        A deletion that a power failure undoes leaves an orphan, never a wrong KV; readers that hold
        the file open keep their bytes.
        """
        found = False
        for path in (self._path(key), self._quarantined(key)):
            if path.exists():
                found = True
                try:
                    self.disk.remove(path)
                except OSError as error:
                    raise self._refused(error) from error
        return found

    def quarantine(self, key: str) -> bool:
        """Move a blob that failed its checks aside, so that the next write can replace it.

        Returns
        -------
        bool
            False if the key has no blob, or the disk does not let it be moved: it stays a miss then.
        """
        try:
            self._quarantined(key).parent.mkdir(mode=0o700, exist_ok=True)
            self.disk.move(self._path(key), self._quarantined(key))
        except OSError:
            return False
        return True

    def sweep(self, older_than: float = 600.0) -> int:
        """Remove what killed writers left half-written; done once when a store is opened.

        Parameters
        ----------
        older_than : float
            Seconds since the last write to the file, so that a living writer keeps its own.

        Returns
        -------
        int
            How many files were removed.
        """
        horizon = time.time() - older_than
        stale = [path for path in self.root.glob(f"*/{TEMPORARY}*") if _modified(path) <= horizon]
        for path in stale:
            self.disk.remove(path)
        return len(stale)

    def _read(self, key: str, ranges: Sequence[tuple[int, int]] | None) -> Sequence[Tensor]:
        read = self._read_once if self._encryption is None else self._read_sealed
        try:
            return read(key, ranges)
        except CorruptBlob as error:
            if error.read:
                raise
        return read(key, ranges)  # what a disk refuses once it often gives at the next try

    def _read_sealed(self, key: str, ranges: Sequence[tuple[int, int]] | None) -> Sequence[Tensor]:
        """The same of an encrypted blob, which is decrypted as a whole: nothing of it is known before its end."""
        [sealed] = self._read_once(key, None)
        plain = self._allocate(max(len(sealed) - OVERHEAD, 0))
        try:
            assert self._encryption is not None  # for mypy
            self._encryption.open(key, sealed.numpy().data, plain.numpy().data)
        except SealBroken as error:
            raise CorruptBlob(key, str(error)) from error
        spans = [(0, len(plain))] if ranges is None else ranges
        if any(stop > len(plain) for _, stop in spans):
            raise CorruptBlob(key, f"it has only {len(plain):,} bytes")
        return [plain[start:stop] for start, stop in spans]

    def _read_once(self, key: str, ranges: Sequence[tuple[int, int]] | None) -> Sequence[Tensor]:
        path = self._path(key)
        try:
            with path.open("rb", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                spans = [(0, size)] if ranges is None else ranges
                if any(stop > size for _, stop in spans):
                    raise CorruptBlob(key, f"it has only {size:,} bytes")
                return [self._read_span(key, file.fileno(), *span) for span in spans]
        except FileNotFoundError as error:
            raise CorruptBlob(key, "its file is missing") from error
        except OSError as error:
            raise CorruptBlob(key, f"its file cannot be read ({error.strerror})", read=False) from error

    def _read_span(self, key: str, handle: int, start: int, stop: int) -> Tensor:
        buffer = self._allocate(stop - start)
        view = buffer.numpy().data
        os.lseek(handle, start, os.SEEK_SET)
        while len(view):
            count = self.disk.read(handle, view)
            if count == 0:
                raise CorruptBlob(key, "its file shrank while it was read")
            view = view[count:]
        return buffer

    def _path(self, key: str) -> Path:
        if not is_key(key):
            raise InvalidArgument(f"a KV key is 64 lower-case hexadecimal digits, not {key[:80]!r}.")
        return self.root / key[:2] / (key + _SUFFIX)

    def path_of(self, key: str) -> Path:
        """The file of a key's blob, whether or not there is one."""
        return self._path(key)

    def _quarantined(self, key: str) -> Path:
        return self.root / "quarantine" / self._path(key).name

    def _make_shard(self, shard: Path) -> None:
        if shard not in self._known_shards:
            self._make_folder(shard)
            self._known_shards.add(shard)

    def _make_folder(self, folder: Path) -> None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        mode = 0o700 if folder == self.root else self.root.stat().st_mode & 0o777
        folder.mkdir(mode=mode, exist_ok=True)
        self._sync(folder.parent)

    def _sync(self, folder: Path) -> None:
        if self.durable:
            sync_folder(folder, self.disk)

    def _refused(self, error: OSError) -> StorageFull:
        return StorageFull(f"the disk refused a write under {self.root} ({error.strerror}); {remedy(error)}.")


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # its writer finished meanwhile
        return float("inf")
