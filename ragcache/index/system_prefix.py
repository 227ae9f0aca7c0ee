"""The system prefix, which every prompt begins with: frozen when the index was made, and its KV."""

from contextlib import suppress

from ragcache.encode import LeftContext
from ragcache.errors import CorruptBlob
from ragcache.index.stored_kv import REFUSED, StoredKV
from ragcache.model.buffer import ChunkKV
from ragcache.model.reader import Reader
from ragcache.prompt import Segment
from ragcache.store import PREFIX, Catalog


class SystemPrefix:
    """An index's system prefix.

    Parameters
    ----------
    catalog : Catalog
        Knows its text.
    kv : StoredKV
        Reads and writes its KV.
    reader : Reader
        Makes it.
    writable : bool
        Whether this account may store it.
    """

    def __init__(self, catalog: Catalog, kv: StoredKV, reader: Reader, *, writable: bool) -> None:
        self._catalog = catalog
        self._kv = kv
        self._reader = reader
        self._writable = writable
        self._made: ChunkKV | None = None

    @property
    def segment(self) -> Segment:
        """Its ids and text as of when the index was made: a template that prints a date would drift."""
        return Segment(tuple(self._catalog.setting("prefix_ids")), self._catalog.setting("prefix_text"))

    @property
    def key(self) -> str:
        """The key of its KV."""
        return self._kv.make_key(PREFIX, (), self.segment.token_ids)

    def load(self) -> LeftContext:
        """Its KV, made once in a process at the most, whether or not it can be stored; nothing where it is empty."""
        segment = self.segment
        if not segment.token_ids:
            return LeftContext()
        key = self.key
        try:
            kv = self._kv.read(key, segment.token_ids)
        except CorruptBlob as error:
            kv = self._made = self._made or self._reader.encode(segment.token_ids)
            if self._writable and error.read:
                self._kv.quarantine(key)
                with suppress(*REFUSED):
                    self._kv.write(key, kv, PREFIX, evict=True)  # no prompt does without it
        return LeftContext((kv,), (key,), "system prefix")
