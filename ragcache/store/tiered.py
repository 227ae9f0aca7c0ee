"""Blobs in an object store, with a folder of this machine in front of it that keeps what was used lately."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

from ragcache.errors import CorruptBlob, StorageFull, UnreachableStore
from ragcache.model.lazy import Tensor, torch
from ragcache.store.attachment import read_attachment
from ragcache.store.blob import unpack
from ragcache.store.disk import Disk
from ragcache.store.eviction import Kept, choose_victims, saved_per_byte
from ragcache.store.local import LocalStore, hold_turn, is_key
from ragcache.store.protocol import BlobStore
from ragcache.store.remote import RemoteStore

#: Most that the files of a machine take that reads an object store, unless something else is said.
DEFAULT_BUDGET = 20 << 30

_BLOBS, _ASIDE, _SUFFIX = "kv/", "quarantine/", ".safetensors"


class TieredStore:
    """The blobs of an index that many machines read: the object store has all, the folder some within a budget.

    What arrives is checked before it is kept, and what the folder has is checked before it is given: a bad file there
    is dropped and fetched again. What the object store does not give is a miss with its reason.

    Parameters
    ----------
    tier : LocalStore
        The folder.
    remote : RemoteStore
        The object store.
    budget_bytes : int
        Most that the folder's files may take.
    read_only : bool
        Whether the object store is left as it is.
    check : callable
        Raises `CorruptBlob` for bytes that are not what was stored under a key.
    """

    shared = True
    durable = True  # the object store's word

    def __init__(
        self,
        tier: LocalStore,
        remote: RemoteStore,
        *,
        budget_bytes: int,
        read_only: bool = False,
        check: Callable[[Tensor, str], object] = unpack,
    ) -> None:
        self.tier = tier
        self.remote = remote
        self.budget_bytes = budget_bytes
        self.writable = not read_only
        self.disk = Disk()
        self._check = check
        self._served = Counter[str]()
        self._aged: dict[str, float] = {}
        self._clock = 0.0
        self._lock = Lock()

    def put_if_absent(self, key: str, parts: Sequence[bytes | memoryview]) -> bool:
        """Store bytes under a key unless the object store has some.

        Raises
        ------
        StorageFull
            The object store did not take them.
        """
        self._check_writable()
        won = self.remote.put_if_absent(_name(key), parts)
        self._keep(key, parts)
        return won

    def size_of(self, parts: Sequence[bytes | memoryview]) -> int:
        """Bytes that a blob of these parts takes in the tier on this machine."""
        return self.tier.size_of(parts)

    def get(self, key: str) -> Tensor:
        """Read a whole blob: from the folder, else from the object store.

        Raises
        ------
        CorruptBlob
            Neither has it, or it fails its checks there, too.
        """
        with suppress(CorruptBlob):
            found = self._checked(key, self.tier.get(key))
            self._serve(key)
            return found
        self.tier.delete(key)
        try:
            found = self._checked(key, self._fetch(key))
        except CorruptBlob as error:
            if not error.read:
                raise
            found = self._checked(key, self._fetch(key))  # the network may have been at fault
        self._keep(key, [found.numpy().data])
        return found

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> Sequence[Tensor]:
        """Read some byte ranges of a blob, each (start, stop), unchecked.

        Raises
        ------
        CorruptBlob
            The blob is missing, or ends before a range does.
        """
        with suppress(CorruptBlob):
            return self.tier.get_ranges(key, ranges)
        try:
            found = self.remote.get_ranges(_name(key), ranges)
        except UnreachableStore as error:
            raise CorruptBlob(key, str(error), read=False) from error
        if found is None:
            raise CorruptBlob(key, f"{self.remote.url} has no such bytes")
        return found

    def head(self, key: str) -> int | None:
        """Tell a blob's size in bytes, None if the key has no blob."""
        size = self.tier.head(key)
        return self.remote.head(_name(key)) if size is None else size

    def total_bytes(self) -> int:
        """What the folder's files take."""
        return self.tier.total_bytes()

    def list(self) -> Iterator[str]:
        """Yield the keys of all blobs of the object store, in order."""
        yield from self._keys(_BLOBS)

    def quarantined(self) -> Iterator[str]:
        """Yield the keys of all blobs that were moved aside there, in order."""
        yield from self._keys(_ASIDE)

    def delete(self, key: str) -> bool:
        """Remove a blob everywhere, and what was moved aside under its key; whether there may have been any."""
        self._check_writable()
        for name in (_name(key), _name(key, _ASIDE)):
            self.remote.delete(name)
        self.tier.delete(key)
        return True

    def quarantine(self, key: str) -> bool:
        """Move the object store's blob aside, so that the next write can replace it; a reader only drops its copy."""
        self.tier.delete(key)
        if not self.writable:
            return False
        with suppress(UnreachableStore):
            return self.remote.move(_name(key), _name(key, _ASIDE))
        return False

    def upload(self, progress: Callable[[int, int], object] = lambda done, total: None) -> int:
        """Give the object store what only the folder has, as of an index that had none; how many blobs."""
        there = set(self.list())
        todo = [key for key in self.tier.list() if key not in there]
        for done, key in enumerate(todo):
            progress(done, len(todo))
            self.remote.put_if_absent(_name(key), [self.tier.get(key).numpy().data])
        progress(len(todo), len(todo))
        return len(todo)

    def _check_writable(self) -> None:
        if not self.writable:
            raise StorageFull(f"this is a copy of {self.remote.url} that is only read; ingest where it is published")

    def _keys(self, prefix: str) -> Iterator[str]:
        names = sorted(self.remote.list(prefix))
        yield from filter(is_key, (name.rpartition("/")[2].removesuffix(_SUFFIX) for name in names))

    def _fetch(self, key: str) -> Tensor:
        try:
            found = self.remote.get(_name(key))
        except UnreachableStore as error:
            raise CorruptBlob(key, str(error), read=False) from error
        if found is None:
            raise CorruptBlob(key, f"{self.remote.url} does not have it")
        return found

    def _checked(self, key: str, data: Tensor) -> Tensor:
        self._check(data, key)
        return data

    def _keep(self, key: str, parts: Sequence[bytes | memoryview]) -> None:
        """A copy in the folder, if there is or can be made room; one that the disk refuses is done without."""
        nbytes = sum(memoryview(part).nbytes for part in parts)
        with suppress(StorageFull, OSError), self._lock:
            self.tier.root.mkdir(mode=0o700, exist_ok=True)  # somebody may have deleted it to make room
            with hold_turn(self.tier.root / "tier.lock"):
                self._served[key] += 1
                self._aged[key] = self._clock
                if self._make_room(nbytes):
                    self.tier.put_if_absent(key, parts)

    def _make_room(self, nbytes: int) -> bool:
        needed = nbytes + self.tier.total_bytes() - self.budget_bytes
        if needed <= 0:
            return True
        gone = choose_victims(self._kept(), needed)
        for one in gone or ():
            self._clock = max(self._clock, saved_per_byte(one))
            self.tier.delete(one.key)
        return gone is not None

    def _kept(self) -> Iterator[Kept]:
        """What may go. All of it costs its bytes to be fetched again, so what is used the most often stays."""
        for key in self.tier.list():
            with suppress(FileNotFoundError):
                about = self.tier.path_of(key).stat()
                yield Kept(
                    key, about.st_size, about.st_size, self._served[key], about.st_mtime, self._aged.get(key, 0.0)
                )

    def _serve(self, key: str) -> None:
        with self._lock, suppress(OSError):
            self._served[key] += 1
            self._aged[key] = self._clock
            os.utime(self.tier.path_of(key))  # other processes, and the next one, see that it was of use


def _name(key: str, prefix: str = _BLOBS) -> str:
    return f"{prefix}{key[:2]}/{key}{_SUFFIX}"


def open_store(folder: Path, device: "torch.device | None" = None, *, read_only: bool = False) -> BlobStore:
    """The store of an index's KV: files in its folder, or the object store that the folder belongs to.

    Parameters
    ----------
    folder : Path
        The index's.
    device : torch.device, optional
        Where blobs are on their way to.
    read_only : bool
        Whether it is left as it is found.
    """
    attached = read_attachment(folder)
    root = folder / "kv"
    if attached is None:
        return LocalStore(root, read_only=read_only) if device is None else LocalStore.near(device, root)
    tier = LocalStore(root, durable=False) if device is None else LocalStore.near(device, root, durable=False)
    budget = DEFAULT_BUDGET if attached.max_bytes is None else attached.max_bytes
    return TieredStore(tier, RemoteStore(attached.url), budget_bytes=budget, read_only=read_only or attached.replica)
