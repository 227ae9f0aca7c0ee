"""The hot tier: blobs kept in memory up to a budget of bytes."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from ragcache.store.blob import Blob


class _Flight:
    """One load in progress; whoever waits on the lock finds the blob."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.blob: Blob | None = None


class MemoryTier:
    """Least-recently-used blobs in memory, shared read-only between threads.

    Parameters
    ----------
    budget_bytes : int
        What the blobs held may take together; 0 holds none. Blobs handed out stay valid after they
        were dropped here.
    """

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self.nbytes = 0
        self._held: OrderedDict[str, Blob] = OrderedDict()
        self._flights: dict[str, _Flight] = {}
        self._lock = Lock()

    def get(self, key: str, load: Callable[[], Blob]) -> Blob:
        """Give the blob under a key, loading it if it isn't held.

        Threads that ask for the same key while it is loaded wait for that one load. If it fails, its
        error is raised where it happened and the next thread tries for itself.
        """
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
            flight = self._flights.setdefault(key, _Flight())
        with flight.lock:
            if flight.blob is None:
                try:
                    flight.blob = load()
                finally:
                    self._land(key, flight)
            return flight.blob

    def discard(self, key: str) -> None:
        """Forget a key, even one that is being loaded."""
        with self._lock:
            self._flights.pop(key, None)
            if key in self._held:
                self.nbytes -= self._held.pop(key).nbytes

    def sizes(self) -> dict[str, int]:
        """Bytes of each blob that is held, by key."""
        with self._lock:
            return {key: blob.nbytes for key, blob in self._held.items()}

    def clear(self) -> None:
        """Forget every blob that is held."""
        with self._lock:
            self._held.clear()
            self.nbytes = 0

    def _land(self, key: str, flight: _Flight) -> None:
        with self._lock:
            if self._flights.get(key) is not flight:  # discarded while it was loaded
                return
            del self._flights[key]
            if flight.blob is not None and flight.blob.nbytes <= self.budget_bytes:
                self._held[key] = flight.blob
                self.nbytes += flight.blob.nbytes
                self._evict()

    def _evict(self) -> None:
        while self.nbytes > self.budget_bytes:
            _, blob = self._held.popitem(last=False)
            self.nbytes -= blob.nbytes
