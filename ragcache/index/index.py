"""Index: documents, chunks, and the KV of each chunk, on disk; knows no vector store.

Order of writes: blob, then catalogue row. A row never names a blob that is not there, and whatever fails its checks on
the way back is a miss with its reason, never a wrong KV.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from ragcache.checks import check_text
from ragcache.encode import Encoder, LeftContext, Prefixed, PromptEncoder
from ragcache.errors import InvalidArgument, ingest
from ragcache.index.binding import bind_codec, bind_model, bind_template
from ragcache.index.bound import DiskBound, work_of
from ragcache.index.chunks import Chunk, Loaded, chunk_id, document_id, is_text_id, read_chunks, text_id
from ragcache.index.encoding_batches import batches, capacity
from ragcache.index.encoding_context import STRUCTURAL, IndexEncodingContext, displaced, lacking_extras
from ragcache.index.on_demand import WITHOUT_DOCUMENT, OnDemand, make_on_demand
from ragcache.index.reconcile import find_missing
from ragcache.index.second_sight import SecondSight
from ragcache.index.settings import KV_FORM, form_of, make_folder
from ragcache.index.stored_kv import StoredKV
from ragcache.index.system_prefix import SystemPrefix
from ragcache.index.variants import fit_variant, rank_rows
from ragcache.model.buffer import ChunkKV
from ragcache.model.reader import Reader
from ragcache.prompt import Segment
from ragcache.store import (
    CODECS,
    Access,
    BlobStore,
    Catalog,
    ChunkRow,
    Codec,
    DocumentRow,
    EncodingRow,
    Forgotten,
    KeyMaker,
    MemoryTier,
    bind_secret,
    hold_turn,
    is_key,
    locks_of,
    may_precede,
    open_store,
)

MEMORY_BYTES = 1 << 30
_COMPLETE = "extras_of_recipes"  # setting: per encoding, extras that all of its KV has

#: Gives the ids of the most similar other chunks, most similar first.
Neighbours = Callable[[str, int], Sequence[str]]


class Index:
    """The life of documents, chunks and encodings in one folder, for one reader.

    Parameters
    ----------
    path : Path
        Folder, created if absent, readable by its owner only.
    reader : Reader
        The model whose KV the index holds.
    memory_bytes : int
        Budget of the tier that keeps blobs in memory.
    codec : Codec, optional
        How KV is written; the index's own by default, raw for a new one.
    store : BlobStore, optional
        Where KV is written; files in the folder, or its object store, by default. The catalogue is as durable.
    system : str, optional
        The instruction in front of the chunks; the index's own by default.
    second_sight_bytes : int
        Most bytes of KV of texts that are no document's, kept in memory from their second prompt on; none by default.

    Raises
    ------
    IndexMismatch
        If the index was made by another model, tokenizer, dtype, system prompt or codec.
    IndexFormat
        If the folder holds something else, or a newer format.
    """

    def __init__(
        self,
        path: str | Path,
        reader: Reader,
        *,
        memory_bytes: int = MEMORY_BYTES,
        codec: Codec | None = None,
        store: BlobStore | None = None,
        system: str | None = None,
        second_sight_bytes: int = 0,
    ) -> None:
        self.path = Path(path)
        make_folder(self.path)
        self.reader = reader
        self.store = store or open_store(self.path, reader.device)
        self.catalog = Catalog(self.path / "catalog.sqlite", durable=self.store.durable, disk=self.store.disk)
        self.template = bind_template(self.catalog, reader, system, self.path)
        self._memory = MemoryTier(memory_bytes)
        #: Texts that are no document's, and came in prompts before.
        self.second_sight = SecondSight(second_sight_bytes, self.catalog.edition)
        written = bind_codec(self.catalog, codec, self.path)
        made_by = bind_model(self.catalog, reader, self.path)
        keys = KeyMaker(bind_secret(self.catalog, self.path), made_by, written)
        self.writing, self.encoding = locks_of(self.path)
        work = partial(work_of, reader.dims, reader.layers)
        self.bound = DiskBound(
            self.catalog, self.store, self.path / "bound.lock", self.writing, codec=CODECS[written], work=work,
            evict=self.evict,
        )  # fmt: skip
        self._kv = StoredKV(
            self.store,
            self._memory,
            keys,
            bound=self.bound,
            limit=reader.limit,
            drop=self.catalog.drop_key if self.catalog.writable else lambda key: None,
        )
        self.forgotten = Forgotten(self.catalog, self.store, self._memory.discard)
        #: Whether this account may write to it; otherwise questions are answered, and nothing is stored.
        self.writable = self.catalog.writable and self.store.writable
        self._prefix = SystemPrefix(self.catalog, self._kv, reader, writable=self.writable)
        if self.writable:
            with self.writing:
                self.forgotten.delete()  # what a killed process left
                self.catalog.forget_words()

    def close(self) -> None:
        """Close the catalogue."""
        self.bound.close()
        self.catalog.close()

    @property
    def codec(self) -> Codec:
        """How its KV is written."""
        return self._kv.codec

    def release(self, keys: Sequence[str] | None = None) -> None:
        """Let go of KV that is held in memory, of all of it or of some keys'; files have that of documents."""
        if keys is None:
            self._memory.clear()
            self.second_sight.clear()
        for key in keys or ():
            self._memory.discard(key)

    def held(self) -> dict[str, int]:
        """Bytes of the KV that is held in memory, by key."""
        return self._memory.sizes()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- documents and chunks

    def put(
        self,
        source: str,
        digest: str,
        pieces: Sequence[tuple[str, int, int]],
        metadata: Mapping[str, Any],
        access: Sequence[Access] = (),
    ) -> None:
        """Put a document in the place of what the index had from that source.

        Parameters
        ----------
        source : str
            Where it came from; one document per source.
        digest : str
            Digest of its content.
        pieces : sequence of (str, int, int)
            Text and character offsets of each chunk, in reading order.
        metadata : mapping
            Whatever JSON can hold.
        access : sequence of Access
            Who may read each chunk; everybody, where nothing is said.
        """
        document = document_id(source)
        known = {row.id: row.token_ids for row in self.catalog.chunks_of(document)}  # no text is tokenised twice
        seen, rows = Counter[str](), list[ChunkRow]()
        labels = [*access, *[None] * (len(pieces) - len(access))]
        for ordinal, ((text, start, end), label) in enumerate(zip(pieces, labels, strict=True)):
            # By content, so that a chunk keeps its KV when text is put before it; equal texts are numbered.
            name = chunk_id(document, text, seen[text])
            seen[text] += 1
            rows.append(ChunkRow(name, document, ordinal, text, known.get(name) or self._ids(text), start, end, label))
        with self.writing:
            self._put(DocumentRow(document, source, digest, dict(metadata)), rows)

    def remove(self, *sources: str) -> None:
        """Remove documents, their chunks, and every KV that carries their content."""
        with self.writing:
            rows = [row for source in sources if (row := self.catalog.document_by_source(source))]
            if rows:
                self.catalog.remove_document(*(row.id for row in rows))
                self.forgotten.delete()
                self.catalog.purge()

    def chunks(self, ids: Sequence[str]) -> list[Chunk]:
        """Chunks by id, in the order asked for; those that are gone are left out."""
        return read_chunks(self.catalog, ids)

    def count_readable(self, chunks: Sequence[str]) -> int:
        """How many chunks, from the first on, are in the index and may be read by all who may read one behind them."""
        rows = {row.id: row for row in self.catalog.chunks(chunks)}
        for count, chunk in enumerate(chunks):
            ahead = [rows[one].access for one in chunks[:count]]
            if chunk not in rows or not all(may_precede(access, rows[chunk].access) for access in ahead):
                return count
        return len(chunks)

    def uncached_chunk(self, text: str) -> Chunk:
        """A chunk that was never ingested."""
        name = text_id(text)
        return Chunk(name, "", text, Segment(self._ids(text), text, name))

    # -- encodings

    @property
    def prefix_segment(self) -> Segment:
        """The system prefix, frozen when the index was made."""
        return self._prefix.segment

    @property
    def prefix_key(self) -> str:
        """The key of the system prefix's KV."""
        return self._prefix.key

    def prefix(self) -> LeftContext:
        """The system prefix's KV, made on first use; nothing where the prefix is empty."""
        return self._prefix.load()

    def encode(self, encoder: Encoder, *, neighbours: Neighbours | None = None) -> Iterator[str]:
        """Make what is missing of an encoding, several chunks at once; resumes by itself after a kill.

        Parameters
        ----------
        encoder : Encoder
            What it takes first (`encoder.base_encoding`) is made first.
        neighbours : callable, optional
            For encoders that fuse a chunk with others.

        Yields
        ------
        str
            The id of each chunk once its KV is stored.
        """
        if encoder.base_encoding is not None:
            yield from self.encode(encoder.base_encoding)
        todo = (self.catalog.missing(encoder.recipe, document) for document in self.lacking(encoder))
        yield from self._encode_in_turn(encoder, todo, neighbours, anew=False)

    def encode_chunks(
        self, encoder: Encoder, documents: Iterable[Sequence[ChunkRow]], *, neighbours: Neighbours | None = None
    ) -> Iterator[str]:
        """Make an encoding of some chunks, by document and in reading order, whether or not they have one already."""
        yield from self._encode_in_turn(encoder, documents, neighbours, anew=True)

    def _encode_in_turn(
        self,
        encoder: Encoder,
        documents: Iterable[Sequence[ChunkRow]],
        neighbours: Neighbours | None,
        *,
        anew: bool,
    ) -> Iterator[str]:
        """One batch after the other, in turns with other processes: what one of them has made is not made again."""
        self.prefix()  # before what leaves no room for it: each question needs it
        context = self._encoding_context(encoder, neighbours)
        for batch in batches(documents, lambda row: encoder.left(row.id, context), capacity(self.reader.device)):
            with hold_turn(self.path / "encoding.lock"):
                todo = [
                    (row, left) for row, left in batch if anew or not self.catalog.encodings(row.id, encoder.recipe)
                ]
                fitting = self.bound.fitting([len(row) for row, _ in todo])
                todo, full = todo[:fitting], fitting < len(todo)
                self.encode_batch(encoder, todo)
            yield from (row.id for row, _ in todo)
            if full:
                return
            context.turn()

    def drop_missing(self) -> int:
        """Let go of KV whose files are gone, so that it is made again; how many files."""
        gone = find_missing(self.catalog, self.store)
        self.catalog.drop_key(*gone)
        self.release([*gone, self.prefix_key])  # which no row names: whether its file is there is seen when it is read
        return len(gone)

    def encode_batch(self, encoder: Encoder, batch: Sequence[tuple[ChunkRow, LeftContext]]) -> None:
        """Make and store the KV of a few chunks behind their left contexts, in one forward."""
        duplicates = {
            row.id: duplicate for row, left in batch if (duplicate := self._find_duplicate(row, encoder, left))
        }
        new = [(row, left) for row, left in batch if row.id not in duplicates]
        todo = [(Segment(row.token_ids, row.text, row.id), left) for row, left in new]
        made = zip(new, encoder.encode(self.reader, todo) if todo else (), strict=True)
        stored = [self._stored(row.id, encoder, kv, left, evict=False) for (row, left), kv in made]
        self.enter([*duplicates.values(), *stored])

    def missing(self, encoder: Encoder) -> list[ChunkRow]:
        """Chunks whose KV `encode` would make; what an older version made without the encoder's extras is dropped."""
        self._renew(encoder)
        return [] if isinstance(encoder, PromptEncoder) else self.catalog.missing(encoder.recipe)

    def lacking(self, encoder: Encoder) -> dict[str, int]:
        """The same, counted, by document."""
        self._renew(encoder)
        return {} if isinstance(encoder, PromptEncoder) else self.catalog.lacking(encoder.recipe)

    def make(self, chunk: Chunk, encoder: Encoder) -> OnDemand:
        """A chunk's KV, computed now; stored too where the chunk is one of the index's, or kept at its second sight."""
        chosen = encoder.base_encoding or encoder  # neighbours are found at ingestion only
        return make_on_demand(self, chunk, chosen, self._encoding_context(chosen, None))

    def keep(self, chunk: Chunk, encoder: Encoder, kv: ChunkKV, left: LeftContext | None) -> None:
        """Store a KV where the chunk is one of the index's, or note it for its second sight; without `left` neither."""
        if left is None:
            return
        if is_text_id(chunk.id):
            words = chunk.text if chunk.text == chunk.text.strip() else ""  # as a prompt is searched for it
            self.second_sight.note(chunk.id, encoder.recipe, kv, left.keys, words)
        elif self.writable and self.catalog.chunk(chunk.id) is not None:
            self.save(chunk.id, encoder, kv, left)

    def learn(self, text: str, encoder: Encoder) -> None:
        """Make the KV of a text that is no document's, and keep it as from its second prompt on, if there is room."""
        chunk, chosen = self.uncached_chunk(text.strip()), encoder.base_encoding or encoder
        if chosen.exact_only or isinstance(chosen, PromptEncoder) or not self.second_sight.limit:
            return
        left = self._encoding_context(chosen, None).prefix()
        [kv] = chosen.encode(self.reader, [(chunk.segment, left)])
        self.second_sight.keep(chunk.id, chosen.recipe, kv, left.keys, chunk.text)

    def save(self, chunk: str, encoder: Encoder, kv: ChunkKV, left: LeftContext) -> None:
        """Store a chunk's KV: blob first, then the row that names it."""
        self.enter([self._stored(chunk, encoder, kv, left, evict=True)])

    def enter(self, rows: Sequence[EncodingRow]) -> None:
        """Enter KV that is stored; what was made of text that is gone meanwhile goes, too."""
        with self.writing:
            if self.catalog.put_standing(rows, self._stands):
                self.forgotten.delete()

    def make_key(self, encoder: Encoder, left: Sequence[str], chunk: Segment) -> str:
        """The key of the KV that an encoder makes of a chunk behind a left context."""
        return self._kv.make_key(encoder.recipe, left, chunk.token_ids)

    def forget(self, keys: Sequence[str]) -> None:
        """Delete KV, and all that was made with it, and with that."""
        with self.writing:
            self.forgotten.add(keys)

    def evict(self, keys: Sequence[str]) -> None:
        """Let go of KV, to make room; what was made with it stays, and goes when the chunk does."""
        if keys:
            with self.writing:
                self.catalog.evict(keys)
                self.forgotten.delete()

    def load(self, chunk: Chunk, encoder: Encoder, before: tuple[str, ...] | None, ahead: Sequence[str] = ()) -> Loaded:
        """A chunk's stored KV for use behind what stands `before` it.

        Parameters
        ----------
        chunk : Chunk
            Of this index, or uncached.
        encoder : Encoder
            Its encoding is taken, else the one it builds on; either where it is exact. Without either, prefixed KV is
            taken within a limit.
        before : tuple of str or None
            Keys of everything in front where all of it is exact; None otherwise.
        ahead : sequence of str
            Ids of the chunks in front, by which harvested KV is chosen.
        """
        recipes = [encoder.recipe, *([encoder.base_encoding.recipe] if encoder.base_encoding else [])]
        rows = [row for recipe in recipes for row in self.catalog.encodings(chunk.id, recipe)]
        reason = ""
        if not rows and self.does_without_document(encoder.base_encoding or encoder):
            rows = self.catalog.encodings(chunk.id, Prefixed.recipe)
            reason = WITHOUT_DOCUMENT if rows else ""
        for row in rank_rows(rows, before, ahead):
            exact = row.left == before
            if encoder.exact_only and not exact:
                reason = "what stands in front of it is not what its KV was made behind"
                continue
            found = self._kv.load(chunk, row, exact=exact)
            if found.kv is None:
                reason = found.reason
            elif row.recipe == encoder.recipe and (lacking := lacking_extras(encoder, found.kv)):
                reason = f"its KV lacks {', '.join(lacking)}; run `{ingest(self.path, method='NAME')}` to renew it"
            else:
                self.bound.serve(row.key)
                found = fit_variant(found, row, ahead)
                return replace(found, reason=f"{found.reason}; {reason}") if reason else found
        if is_text_id(chunk.id) and (kept := self.second_sight.load(chunk, recipes, before, self._kv.make_key)):
            return kept
        if not (reason or rows) and self.catalog.has_damaged(chunk.id):
            reason = f"what the catalogue says of its KV fails its checksum; run `{ingest(self.path)}`"
        return Loaded(None, "", reason or f"no {encoder.recipe} KV was made for it")

    def left(self, chunk: Chunk, encoder: Encoder) -> tuple[ChunkKV, ...]:
        """What a chunk's KV is made behind in its document, which its readers may read; empty if nothing is stored."""
        if not self.follows_document(encoder):
            return ()
        context = self._encoding_context(encoder, None)
        left = encoder.left(chunk.id, context)
        return left.kvs[len(context.prefix().kvs) :] if left else ()

    def follows_document(self, encoder: Encoder) -> bool:
        """Whether an encoder makes a chunk's KV behind what stands before it in its document."""
        return encoder.recipe in self.catalog.setting(STRUCTURAL, [])

    def does_without_document(self, encoder: Encoder) -> bool:
        """Whether prefixed KV serves where an encoder's is not stored: within a limit not all documents have room."""
        return self.bound.limit is not None and not encoder.extras and self.follows_document(encoder)

    # -- inside

    def _stands(self, key: str) -> bool:
        """Whether a part of a left context is still there; what is no KV's key is a part of the recipe."""
        return not is_key(key) or self.store.head(key) is not None

    def _find_duplicate(self, row: ChunkRow, encoder: Encoder, left: LeftContext) -> EncodingRow | None:
        """The row of a KV that is stored already, since another chunk has these tokens behind this left context."""
        key = self._kv.make_key(encoder.recipe, left.keys, row.token_ids)
        size = self.store.head(key) if self.catalog.referenced(key) else None
        return None if size is None else self._row(row.id, encoder, key, left, size)

    def _encoding_context(self, encoder: Encoder, neighbours: Neighbours | None) -> IndexEncodingContext:
        room = self.reader.limit - len(self.prefix_segment)
        return IndexEncodingContext(encoder.recipe, self.catalog, self.prefix, self._part, neighbours, room)

    def _part(self, chunk: str, recipe: str) -> LeftContext | None:
        """A chunk's stored KV as part of a left context."""
        rows = self.catalog.encodings(chunk, recipe)
        for known in self.chunks([chunk]) if rows else []:
            found = self._kv.load(known, rows[0], exact=False)
            if found.kv is not None:
                return LeftContext((found.kv,), (found.key,), known.source)
        return None

    def _put(self, document: DocumentRow, rows: Sequence[ChunkRow]) -> None:
        """Replace a document; what depends on where a chunk stands in it goes if that changes, the rest stays."""
        moved = displaced(self.catalog, document.id, rows)
        replaced = self.catalog.document_by_source(document.source)
        self.catalog.put_document(document, rows, anew=moved)
        self.forgotten.delete()
        if replaced is not None:
            self.catalog.truncate_log()

    def _renew(self, encoder: Encoder) -> None:
        """Drop what an older version made without the encoder's extras.

        Extras live in the blobs, so every blob is read, but only once for each encoding and what it stores.
        """
        complete = self.catalog.setting(_COMPLETE, {})
        if not set(encoder.extras) <= set(complete.get(encoder.recipe, ())):
            self.forget(list(self._incomplete(encoder)))
            self.catalog.set_setting(_COMPLETE, {**complete, encoder.recipe: list(encoder.extras)})

    def _incomplete(self, encoder: Encoder) -> Iterator[str]:
        """Keys of an encoder's KV that lacks one of its extras."""
        for chunk in self.chunks([row.id for row in self.catalog.all_chunks()]):
            for row in self.catalog.encodings(chunk.id, encoder.recipe):
                kv = self._kv.load(chunk, row, exact=False).kv
                if kv is not None and lacking_extras(encoder, kv):
                    yield row.key

    def _ids(self, text: str) -> tuple[int, ...]:
        check_text(text, "chunk")
        ids = self.template.chunk(text, "").token_ids
        if not text.strip():
            raise InvalidArgument("a chunk of nothing but white space has no KV; leave it out")
        return ids

    def _stored(self, chunk: str, encoder: Encoder, kv: ChunkKV, left: LeftContext, *, evict: bool) -> EncodingRow:
        """The row of a KV whose blob is stored; one for which there is no room is not entered."""
        key = self._kv.make_key(encoder.recipe, left.keys, kv.token_ids)
        if self.catalog.setting(KV_FORM) is None:
            self.catalog.set_setting(KV_FORM, form_of(kv.layers))
        size = self._kv.write(key, kv, encoder.recipe, evict=evict, behind=left.keys)
        return self._row(chunk, encoder, key, left, size)

    def _row(self, chunk: str, encoder: Encoder, key: str, left: LeftContext, size: int) -> EncodingRow:
        now = time.time()
        return EncodingRow(chunk, encoder.recipe, key, left.keys, size, left.words, now, now, left.about)
