"""What an index asks of whatever keeps its KV: a folder, or an object store behind a folder."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from ragcache.model.lazy import Tensor
from ragcache.store.disk import Disk


class BlobStore(Protocol):
    """Immutable blobs by key.

    Attributes
    ----------
    durable : bool
        Whether what was stored survives a crash of the machine.
    writable : bool
        Whether this process may store anything.
    shared : bool
        Whether other machines read it, so that a limit for this one's disk is none for the store.
    disk : Disk
        Carries out what the catalogue beside it asks of the system.
    """

    durable: bool
    writable: bool
    shared: bool
    disk: Disk

    def put_if_absent(self, key: str, parts: Sequence[bytes | memoryview]) -> bool:
        """Store bytes under a key unless it has some; whether this call did."""
        ...

    def size_of(self, parts: Sequence[bytes | memoryview]) -> int:
        """Tell the bytes that a blob of these parts takes on this machine's disk."""
        ...

    def get(self, key: str) -> Tensor:
        """Read a whole blob: uint8, (bytes,)."""
        ...

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> Sequence[Tensor]:
        """Read some byte ranges of a blob, each (start, stop)."""
        ...

    def head(self, key: str) -> int | None:
        """Tell a blob's size in bytes, None if the key has no blob."""
        ...

    def total_bytes(self) -> int:
        """What all files on this machine take."""
        ...

    def list(self) -> Iterator[str]:
        """Yield the keys of all blobs, in order."""
        ...

    def quarantined(self) -> Iterator[str]:
        """Yield the keys of all blobs that were moved aside, in order."""
        ...

    def delete(self, key: str) -> bool:
        """Remove a blob, and what was quarantined under its key; tell whether there was any."""
        ...

    def quarantine(self, key: str) -> bool:
        """Move a blob that failed its checks aside; whether that was possible."""
        ...
