"""A limit for an index's KV files: ingestion fills them up to it, and questions decide what stays."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import torch

from ragcache.errors import InvalidArgument, StorageFull, UnusableIndex
from ragcache.index.settings import KV_FORM, MAX_BYTES, bytes_of_form
from ragcache.model.buffer import ChunkKV
from ragcache.model.cost import ModelDims
from ragcache.store import BlobStore, Catalog, Codec, Kept, Uses, choose_victims, hold_turn, saved_per_byte

_CLOCK = "kv_clock"  # setting: the priority of what was evicted last
_PER_TOKEN = 6  # bytes of a file that name a token
_log = logging.getLogger(__name__)


class DiskBound:
    """Keeps the KV files of an index within a number of bytes, whoever writes; without a limit it does nothing.

    What a question had to make is stored in the place of what saves the least work per byte. Ingestion evicts nothing:
    what does not fit is made when it is asked about.

    Parameters
    ----------
    catalog : Catalog
        Remembers the limit, and uses.
    store : BlobStore
        Has the files.
    path : Path
        A file that stands for the right to write; processes take turns.
    writing : context manager
        The index's lock, which is taken first.
    codec : Codec
        How KV is written.
    work : callable
        FLOPs that a KV takes to be made.
    evict : callable
        Lets go of the KV of some keys.
    """

    def __init__(
        self,
        catalog: Catalog,
        store: BlobStore,
        path: Path,
        writing: AbstractContextManager[Any],
        *,
        codec: Codec,
        work: Callable[[ChunkKV], float],
        evict: Callable[[Sequence[str]], None],
    ) -> None:
        self._catalog = catalog
        self._uses = Uses(catalog)
        self._store = store
        self._path = path
        self._writing = writing
        self._codec = codec
        self._work = work
        self._evict = evict
        self._is_open = not store.shared
        self._has_counted = False
        self._lock = Lock()
        self._served: dict[str, tuple[int, float]] = {}  # how often since the last eviction, and when last
        self._pins = Counter[str]()

    @property
    def limit(self) -> int | None:
        """Most bytes of the files, as whichever process has set it; None without a limit."""
        return self._catalog.setting(MAX_BYTES) if self._is_open else None

    def set_limit(self, nbytes: int) -> None:
        """Limit the files to so many bytes from now on; what is over goes at once, but for the system prefix's KV.

        Raises
        ------
        InvalidArgument
            If that is not one byte or more.
        """
        if nbytes < 1:
            raise InvalidArgument(f"the KV of an index is limited to one byte or more, not to {nbytes}")
        self._catalog.set_setting(MAX_BYTES, nbytes)
        with self._writing, hold_turn(self._path):
            self._make_room(0, None)

    def serve(self, key: str) -> None:
        """Note that a KV was of use."""
        if self.limit is not None:
            with self._lock:
                count, _ = self._served.get(key, (0, 0.0))
                self._served[key] = count + 1, time.time()

    @contextmanager
    def pin(self, chunks: Sequence[str]) -> Iterator[None]:
        """Keep the KV of some chunks as long as an answer loads it, whatever else has to be stored."""
        with self._lock:
            self._pins.update(chunks)
        try:
            yield
        finally:
            with self._lock:
                self._pins.subtract(chunks)
                self._pins = +self._pins  # those that are left

    @contextmanager
    def room(self, key: str, nbytes: int, kv: ChunkKV, *, evict: bool, behind: Sequence[str] = ()) -> Iterator[bool]:
        """Room for a KV file as long as it is written; False where there is none, and it is not to be written."""
        if self.limit is None:
            yield True
            return
        with self._writing, hold_turn(self._path):
            new = Kept(key, nbytes, self._work(kv), 1, time.time(), self._catalog.setting(_CLOCK, 0.0))
            fits = self._reserve(nbytes) or (evict and self._make_room(nbytes, new, behind) and self._reserve(nbytes))
            yield fits
            if fits:
                self._uses.put([new])

    def fitting(self, chunks: Sequence[int]) -> int:
        """How many KV files fit, one after the other, without anything going, by the tokens of each; about."""
        form = self._catalog.setting(KV_FORM)
        if self.limit is None or form is None:
            return len(chunks)
        free = self.free()
        for count, tokens in enumerate(chunks):
            free -= bytes_of_form(form, self._codec, tokens) + _PER_TOKEN * tokens
            if free < 0:
                return count
        return len(chunks)

    def free(self) -> int:
        """Bytes that are left."""
        return (self.limit or 0) - self._store.total_bytes()

    def close(self) -> None:
        """Write down what was of use, if the disk takes it."""
        if self.limit is not None and self._catalog.writable:
            with suppress(StorageFull, UnusableIndex):
                self._flush()
                self._uses.prune()
        self._is_open = False

    def _flush(self) -> None:
        """Write down what was of use since the last eviction, before the clock goes on."""
        with self._lock:
            self._uses.put(self._read({key: self._store.head(key) or 0 for key in self._served}))
            self._served.clear()

    def _reserve(self, nbytes: int) -> bool:
        """Whether a file fits, and if so, count it.

        The count stands in the file of the turns. While processes run it is never less than what the files take, since
        nothing is taken off it when one goes. So the files are looked at, each of them, only by a process that begins,
        for the machine may have stopped, and where the count says that there is no room.
        """
        words, limit = self._path.read_bytes(), self.limit or 0
        counted = int(words) if self._has_counted and words.isdigit() else limit
        if counted + nbytes > limit:
            counted = self._store.total_bytes()
        self._has_counted, fits = True, counted + nbytes <= limit
        self._path.write_text(str(counted + nbytes if fits else counted), encoding="ascii")
        return fits

    def _make_room(self, nbytes: int, new: Kept | None, behind: Sequence[str] = ()) -> bool:
        """Evict what saves the least, but nothing that the newcomer was made behind; whether there is room now."""
        self._flush()
        needed = nbytes - self.free()
        if needed <= 0:
            return True
        with self._lock:
            in_use = list(self._pins)
        pinned = self._catalog.keys_of_chunks(in_use) | set(behind)
        named = self._catalog.keys() - pinned
        sizes = {key: self._store.head(key) or 0 for key in self._store.list() if key in named}
        kept = self._read(sizes)
        if new is not None:  # what was stored before there was a limit is taken to have been as much work per byte
            kept = [one if one.work else replace(one, work=one.nbytes * new.work / new.nbytes) for one in kept]
        gone = choose_victims(kept, needed)
        if gone is None and new is None:
            gone = kept  # a limit below what cannot go: all that can
            _log.warning(
                "KV of %s cannot be kept within %d bytes: what must stay takes %d more", self._path.parent, self.limit,
                needed - sum(one.nbytes for one in kept),
            )  # fmt: skip
        if not gone:
            return False
        clock = self._catalog.setting(_CLOCK, 0.0)
        self._catalog.set_setting(_CLOCK, max(clock, *map(saved_per_byte, gone)))
        self._evict([one.key for one in gone])
        return True

    def _read(self, sizes: dict[str, int]) -> list[Kept]:
        clock = self._catalog.setting(_CLOCK, 0.0)
        kept = []
        for one in self._uses.read(sizes):
            served, used = self._served.get(one.key, (0, one.used))
            aged = clock if served else one.aged
            kept.append(replace(one, uses=one.uses + served, used=used, aged=aged))
        return kept


def work_of(dims: ModelDims, layers: int, kv: ChunkKV) -> float:
    """FLOPs that a KV takes to be made behind what stood in front of it."""
    return dims.forward(torch.arange(kv.start, kv.start + len(kv)), range(layers), logits=False)
