"""One chunk's KV at rest: the key it has, and whether what a blob holds is what the key says."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from ragcache.errors import CorruptBlob, UnusableIndex
from ragcache.index.bound import DiskBound
from ragcache.index.chunks import Chunk, Loaded
from ragcache.model.buffer import ChunkKV
from ragcache.model.upload import download
from ragcache.store import Blob, BlobStore, EncodingRow, KeyMaker, MemoryTier, find_codec, pack, unpack

#: How a disk, an object store or the catalogue refuses a write; a question is answered all the same.
REFUSED = (OSError, UnusableIndex)


class StoredKV:
    """Reads and writes KV by key. Whatever fails a check on the way back is a miss with its reason, never a wrong KV.

    Parameters
    ----------
    store : BlobStore
        Has the blobs.
    memory : MemoryTier
        Keeps some of them at hand.
    keys : KeyMaker
        Names the index's KV, and says how it is written.
    bound : DiskBound
        Says whether there is room.
    limit : int
        Most tokens that the model takes.
    drop : callable
        Told a key whose blob is of no use.
    """

    def __init__(
        self,
        store: BlobStore,
        memory: MemoryTier,
        keys: KeyMaker,
        *,
        bound: DiskBound,
        limit: int,
        drop: Callable[[str], object],
    ) -> None:
        self._store = store
        self._memory = memory
        self._keys = keys
        self.codec = find_codec(keys.codec)
        self._bound = bound
        self._limit = limit
        self._drop = drop

    def make_key(self, recipe: str, left: Sequence[str], token_ids: Sequence[int]) -> str:
        """The key of a KV that a recipe makes of tokens behind a left context."""
        return self._keys.make(recipe, left, token_ids)

    def load(self, chunk: Chunk, row: EncodingRow, *, exact: bool) -> Loaded:
        """The KV of a chunk that a row names, or the reason for having none."""
        if self.make_key(row.recipe, row.left, chunk.segment.token_ids) != row.key:
            return Loaded(None, row.key, "its KV was made by another model, or for other tokens")
        try:
            kv = self.read(row.key, chunk.segment.token_ids)
        except CorruptBlob as error:
            if error.read:  # the disk may give the others the next time
                self.quarantine(row.key)
            return Loaded(None, row.key, str(error))
        return Loaded(kv, row.key, row.recipe, row.kind, exact, row.about)

    def read(self, key: str, token_ids: tuple[int, ...]) -> ChunkKV:
        """The KV of a key, which must be of these tokens.

        Raises
        ------
        CorruptBlob
            If there is none, or it fails a check.
        """
        blob = self._memory.get(key, lambda: unpack(self._store.get(key), key))
        if blob.token_ids != token_ids:
            raise CorruptBlob(key, "it holds other tokens")
        if blob.start + len(token_ids) > self._limit:  # as an older version made it behind many neighbours
            raise CorruptBlob(key, f"it was made beyond the {self._limit:,} tokens that the model takes")
        return ChunkKV(blob.layers, blob.start, blob.token_ids, dict(blob.extras))

    def write(self, key: str, kv: ChunkKV, recipe: str, *, evict: bool = False, behind: Sequence[str] = ()) -> int:
        """Store a KV by its key; its size in bytes, 0 where the store is full and nothing is to go for it.

        What it was made `behind` does not go, for without that it is not entered.
        """
        about = {"fingerprint": self._keys.fingerprint, "recipe": recipe}
        blob = Blob(key, kv.token_ids, kv.start, download(list(kv.layers)), kv.extras, about)
        parts = pack(blob, self.codec)
        with self._bound.room(key, self._store.size_of(parts), kv, evict=evict, behind=behind) as fits:
            if fits:
                self._store.put_if_absent(key, parts)
        return self._store.head(key) or 0

    def quarantine(self, key: str) -> None:
        """Put a blob that failed a check aside; where that is refused it stays a miss."""
        self._memory.discard(key)
        with suppress(*REFUSED):
            self._store.quarantine(key)
            self._drop(key)
