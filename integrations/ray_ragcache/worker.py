"""One worker: a model that is loaded once, and makes the KV of one document's chunks after the other's."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from ragcache import methods
from ragcache.encode import Encoder, LeftContext
from ragcache.errors import DISTRIBUTION, CorruptBlob, IndexMismatch, RagCacheError, UnreachableStore, UnusableIndex
from ragcache.index.encoding_batches import batches, capacity
from ragcache.index.encoding_context import STRUCTURAL, IndexEncodingContext
from ragcache.model.buffer import ChunkKV
from ragcache.model.loading import load_reader
from ragcache.model.reader import Reader
from ragcache.prompt import Segment
from ragcache.store import (
    Blob,
    BlobStore,
    Catalog,
    ChunkRow,
    KeyMaker,
    LocalStore,
    MemoryTier,
    RemoteStore,
    TieredStore,
    find_codec,
    pack,
    unpack,
)
from ray_ragcache.messages import Job, Status, WorkerSpec

_NEAR_BYTES = 1 << 30  # most KV that a worker keeps in memory, as left contexts; none of it lies on its disk


class ChunkWorker:
    """Makes KV and publishes it under its key, unless it is there already; a chunk that fails stops no other.

    Parameters
    ----------
    spec : WorkerSpec
        Of the index.
    """

    def __init__(self, spec: WorkerSpec) -> None:
        self._spec = spec
        self._keys = KeyMaker(spec.secret, spec.fingerprint, spec.codec)
        self._codec = find_codec(spec.codec)
        self._near = MemoryTier(_NEAR_BYTES)

    def ready(self) -> str:
        """Load the model; why this worker cannot be used, if it cannot."""
        try:
            self._check_version()
            self._store = _open_store(self._spec)
            self._reader = self._load_reader()
            self._prefix = self._load_prefix()
        except RagCacheError as error:
            return str(error)
        return ""

    def encode(self, job: Job) -> list[Status]:
        """Make what a job asks for, in reading order; a status of each chunk."""
        encoder, document = find_encoder(job.recipe), _Document(job, self._load)
        context = IndexEncodingContext(
            encoder.recipe, cast(Catalog, document), lambda: self._prefix, document.part, None,
            self._reader.limit - len(self._spec.prefix_ids),
        )  # fmt: skip
        said = dict[str, Status]()
        todo = [row for row in document.rows if row.id in set(job.todo)]
        for batch in batches([todo], lambda row: encoder.left(row.id, context), capacity(self._reader.device)):
            new = [(row, left) for row, left in batch if not self._find(encoder, document, row, left, said)]
            if new:
                self._make(encoder, document, new, said)
        waiting = "what stands before it in its document has no KV"
        return [said.get(chunk) or Status(chunk, error=waiting) for chunk in job.todo]

    def _find(
        self, encoder: Encoder, document: "_Document", row: ChunkRow, left: LeftContext, said: dict[str, Status]
    ) -> bool:
        """Whether a KV is stored already, by a worker that was killed before it could say so, or for another chunk."""
        key = self._keys.make(encoder.recipe, left.keys, row.token_ids)
        try:
            size = self._store.head(key)
            if size is None:
                return False
            document.parts[row.id] = self._load(key, document.source)
        except CorruptBlob as error:
            if error.read:
                self._store.quarantine(key)
            return False
        except UnreachableStore:
            return False  # publishing it says so, or the object store is there again by then
        said[row.id] = Status(row.id, key, left.keys, size, left.words)
        return True

    def _make(
        self,
        encoder: Encoder,
        document: "_Document",
        batch: Sequence[tuple[ChunkRow, LeftContext]],
        said: dict[str, Status],
    ) -> None:
        """One forward; where it fails, one for each chunk."""
        try:
            todo = [(Segment(row.token_ids, row.text, row.id), left) for row, left in batch]
            made = encoder.encode(self._reader, todo)
        except (RagCacheError, RuntimeError, ValueError) as error:
            if len(batch) > 1:
                for one in batch:
                    self._make(encoder, document, [one], said)
            else:
                said[batch[0][0].id] = Status(batch[0][0].id, error=f"{type(error).__name__}: {error}")
            return
        for (row, left), kv in zip(batch, made, strict=True):
            try:
                said[row.id] = self._publish(encoder, row, left, kv)
            except RagCacheError as error:
                said[row.id] = Status(row.id, error=str(error))
            else:
                document.parts[row.id] = LeftContext((kv,), (said[row.id].key,), document.source)

    def _publish(self, encoder: Encoder, row: ChunkRow, left: LeftContext, kv: ChunkKV) -> Status:
        key = self._keys.make(encoder.recipe, left.keys, kv.token_ids)
        about = {"fingerprint": self._spec.fingerprint, "recipe": encoder.recipe}
        layers = tuple(layer.cpu() for layer in kv.layers)
        parts = pack(Blob(key, kv.token_ids, kv.start, layers, kv.extras, about), self._codec)
        stored = self._store.put_if_absent(key, parts)
        form = tuple((one.shape[1], one.shape[3], one.itemsize) for one in kv.layers)
        size = sum(memoryview(part).nbytes for part in parts)
        return Status(row.id, key, left.keys, size, left.words, stored=stored, form=form)

    def _load(self, key: str, words: str) -> LeftContext:
        """A stored KV as a part of a left context.

        Raises
        ------
        CorruptBlob
            If there is none, or it fails its checks.
        """
        blob = self._near.get(key, lambda: unpack(self._store.get(key), key))
        return LeftContext((ChunkKV(blob.layers, blob.start, blob.token_ids, dict(blob.extras)),), (key,), words)

    def _load_prefix(self) -> LeftContext:
        """The system prefix's KV, which the index's own process has stored: the same for all workers, bit for bit."""
        return self._load(self._spec.prefix_key, "system prefix") if self._spec.prefix_ids else LeftContext()

    def _load_reader(self) -> Reader:
        spec = self._spec
        reader = load_reader(spec.model, dtype=spec.dtype, device=spec.device, adapter=spec.adapter)
        if reader.fingerprint != spec.reader:
            raise IndexMismatch(
                f"the model {spec.model} of a worker is another one ({reader.fingerprint[:12]}) than the index's "
                f"({spec.reader[:12]}); put the same weights and tokenizer on every machine, and repeat the command"
            )
        return reader

    def _check_version(self) -> None:
        own = version(DISTRIBUTION)
        if own != self._spec.version:
            raise IndexMismatch(
                f"a worker has ragcache {own}, and the index's machine {self._spec.version}; install the same"
            )


class _Document:
    """A job's document, in the place of a catalogue that knows nothing else."""

    writable = False

    def __init__(self, job: Job, load: Callable[[str, str], LeftContext]) -> None:
        self.source = job.source
        self.parts = dict[str, LeftContext]()
        self._keys = {piece.id: piece.key for piece in job.pieces if piece.key}
        self._load = load
        self.rows = [
            ChunkRow(piece.id, job.document, place, piece.text, piece.token_ids, 0, len(piece.text), piece.access)
            for place, piece in enumerate(job.pieces)
        ]
        self._by_id = {row.id: row for row in self.rows}
        self._recipe = job.recipe

    def part(self, chunk: str, recipe: str) -> LeftContext | None:
        if chunk not in self.parts and chunk in self._keys:
            with suppress(CorruptBlob):
                self.parts[chunk] = self._load(self._keys[chunk], self.source)
        return self.parts.get(chunk)

    def chunk(self, id: str) -> ChunkRow | None:
        return self._by_id.get(id)

    def chunks_of(self, document: str) -> list[ChunkRow]:
        return self.rows

    def setting(self, name: str, default: Any = None) -> Any:
        return [self._recipe] if name == STRUCTURAL else default


def find_encoder(recipe: str) -> Encoder:
    """The encoder of a recipe, from the table of methods.

    Raises
    ------
    IndexMismatch
        If no row here has it.
    """
    for row in methods.list_methods().values():
        for encoder in (row.encode, row.encode.base_encoding if row.encode else None):
            if encoder is not None and encoder.recipe == recipe:
                return encoder
    raise IndexMismatch(f"no method of this worker makes {recipe} KV; install the same packages on every machine")


def _open_store(spec: WorkerSpec) -> BlobStore:
    if spec.url is not None:
        folder = Path(tempfile.mkdtemp(prefix="ragcache-worker-"))  # stays empty: workers are killed, and leave no KV
        return TieredStore(LocalStore(folder, durable=False), RemoteStore(spec.url), budget_bytes=0)
    path = Path(spec.path)
    if not (path / "catalog.sqlite").is_file():
        raise UnusableIndex(
            f"the index {path} is not on this worker's machine; keep its KV in an object store, by "
            "`ragcache ingest PATH… --remote URL --ray ADDRESS`, or put the folder where all machines have it"
        )
    return LocalStore(path / "kv")
