"""What the index has for each segment of a prompt, loaded and put in its place in a buffer."""

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import torch
from torch import Tensor

from ragcache.encode import Encoder, PromptEncoder
from ragcache.engine.clock import Clock
from ragcache.index.chunks import Chunk, Loaded
from ragcache.index.copies import encoder_for
from ragcache.index.index import Index
from ragcache.model.buffer import ChunkKV, KVBuffer
from ragcache.model.cost import FlopCounter
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt


@dataclass(frozen=True, eq=False)
class SharedContext:
    """A context in its place, which every question over it starts from with a copy.

    Attributes
    ----------
    buffer : KVBuffer
        Nothing behind the context.
    found, computed : dict
        As of `ContextLoader`.
    recomputed, stale : Tensor
        (slots,) and (layers, slots) bool, as of `PrefillContext`: what was recomputed ahead of any question.
    """

    buffer: KVBuffer
    found: dict[int, Loaded]
    computed: dict[str, str]
    recomputed: Tensor
    stale: Tensor


@dataclass(frozen=True)
class SharedRecompute:
    """What is recomputed of a context that questions share, ahead of all of them.

    Attributes
    ----------
    name : str
        Tells it from any other.
    run : callable
        Does it.
    """

    name: str
    run: Callable[[PrefillContext], None]


#: Contexts that several questions are asked over at once, each loaded for the first of them.
SharedContexts = dict[Hashable, SharedContext]


@dataclass(eq=False)
class MadeKV:
    """KV that is missing and made for one request, each once, however often it is placed.

    Parameters
    ----------
    awaited : Counter of str
        How often each chunk is yet to be placed; what is made is held on to as long as it will be asked for again.
    """

    awaited: Counter[str] = field(default_factory=Counter)
    _made: set[str] = field(default_factory=set)
    _kept: dict[str, ChunkKV] = field(default_factory=dict)

    def __contains__(self, chunk: object) -> bool:
        """Whether a chunk's KV was made."""
        return chunk in self._made

    def find(self, chunk: str) -> ChunkKV | None:
        """A chunk's KV, if it was made and is held on to."""
        return self._kept.get(chunk)

    def add(self, chunk: str, kv: ChunkKV) -> None:
        """Enter a KV that was made."""
        self._made.add(chunk)
        self._kept[chunk] = kv

    def note_placed(self, chunk: str) -> None:
        """Let go of a chunk's KV if it was placed for the last time."""
        self.awaited[chunk] -= 1
        if self.awaited[chunk] <= 0:
            self._kept.pop(chunk, None)


@dataclass(eq=False)
class ContextLoader:
    """One prompt's segments, and what the index had for them.

    Attributes
    ----------
    index : Index
        Where KV comes from, and its reader.
    prompt : Prompt
        As the method's layout arranges it.
    chunks : sequence of Chunk
        The prompt's chunks, in its order.
    clock : Clock
        Of the request.
    flop_counter : FlopCounter
        What has been computed.
    needs : sequence of str
        Extras that the method reads.
    found : dict of int to Loaded
        By segment.
    computed : dict of str to str
        Chunks whose KV was missing and was made now, and why it was missing.
    made_kv : MadeKV
        What was made of that for this request, rather than for another one over the same context.
    chunk_ms : dict of int to float
        Milliseconds that each segment's KV took.
    """

    index: Index
    prompt: Prompt
    chunks: Sequence[Chunk]
    clock: Clock
    flop_counter: FlopCounter
    needs: Sequence[str] = ()
    found: dict[int, Loaded] = field(default_factory=dict)
    computed: dict[str, str] = field(default_factory=dict)
    made_kv: MadeKV = field(default_factory=MadeKV)
    chunk_ms: dict[int, float] = field(default_factory=dict)

    @property
    def reader(self) -> Reader:
        """The model."""
        return self.index.reader

    @property
    def made(self) -> frozenset[int]:
        """Segments whose KV was made for this prompt; of a chunk whose KV was when it was arranged, its first place."""
        here = {segment for segment, found in self.found.items() if found.made}
        ids, first = {self.prompt.segments[segment].chunk for segment in here}, dict[str, int]()
        for segment, chunk in zip(self.prompt.chunks(), self.chunks, strict=True):
            if chunk.id in self.computed and chunk.id not in ids:
                first.setdefault(chunk.id, segment)
        return frozenset({*here, *first.values()})

    def load(self, encoder: Encoder, room: int) -> PrefillContext:
        """Load every KV the encoder allows here, and place it in a buffer with `room` slots."""
        return self._build_context(self._fill_buffer(encoder, room), encoder)

    def copy_shared(
        self, encoder: Encoder, room: int, shared: SharedContexts, recompute: SharedRecompute | None
    ) -> PrefillContext:
        """The same by a copy of what was loaded, and recomputed, for the first question over these very segments."""
        count = self.prompt.question
        segments = tuple((segment.chunk, segment.token_ids) for segment in self.prompt.segments[:count])
        how = (repr(encoder), tuple(self.needs), recompute.name if recompute else None)
        key = (how, tuple(self.prompt.starts[:count]), segments)
        end = self.prompt.slots[count]
        if key not in shared:
            first = self.load(encoder, end)
            if recompute is not None:
                recompute.run(first)
            shared[key] = SharedContext(
                first.buffer, dict(self.found), dict(self.computed), first.recomputed[:end], first.stale[:, :end]
            )
        held = shared[key]
        self.found.update(held.found)
        self.computed.update(held.computed)
        with self.clock.stage("place"):
            p = self._build_context(held.buffer.beginning(end, room), encoder)
        p.recomputed[:end], p.stale[:, :end] = held.recomputed, held.stale
        return p

    def _build_context(self, buffer: KVBuffer, encoder: Encoder) -> PrefillContext:
        chunks = dict(zip(self.prompt.chunks(), self.chunks, strict=True))

        def left(segment: int) -> Sequence[ChunkKV]:
            return self.index.left(chunks[segment], encoder) if chunks[segment].origin == "known" else ()

        kvs = {segment: found.kv for segment, found in self.found.items() if found.kv is not None}
        exact = frozenset(segment for segment in kvs if self.found[segment].exact)
        p = PrefillContext(self.reader, self.prompt, buffer, kvs, exact, self.flop_counter, left)
        for segment in self.made:
            if self.prompt.segments[segment].chunk in self.made_kv:
                p.charged[:, p.span(segment)] = True
        return p

    def _fill_buffer(self, encoder: Encoder, room: int) -> KVBuffer:
        buffer, ms = self.reader.buffer(room), self.clock.ms
        began, loaded = self.clock.now(waits=False), ms.load
        with self.index.bound.pin([chunk.id for chunk in self.chunks]):
            self.reader.place_all(buffer, self._load_each(encoder))
        ms.place += self.clock.now() - began - (ms.load - loaded)
        return buffer

    def _load_each(self, encoder: Encoder) -> Iterator[tuple[ChunkKV, int, int]]:
        """Every KV that the encoder allows here, with its slot and position, loaded as it is asked for.

        Nothing here holds on to one: together they would take as much memory as the buffer that they are put into,
        beside what the memory tier keeps.
        """
        chunks = dict(zip(self.prompt.chunks(), self.chunks, strict=True))
        with self.clock.stage("load", waits=False):  # meanwhile a GPU copies what was loaded before
            before: tuple[str, ...] | None = self._load_prefix()
        for number, (slot, start) in enumerate(zip(self.prompt.slots, self.prompt.starts, strict=False)):
            if number in chunks:
                with self.clock.stage("load", waits=False):
                    before = self._load(number, chunks[number], encoder, before)
            elif number not in self.found and self.prompt.segments[number]:
                before = None
            if number in self.found and self.found[number].kv is not None:
                yield self._hand_over(number), slot, start

    def _load(
        self, number: int, chunk: Chunk, encoder: Encoder, before: tuple[str, ...] | None
    ) -> tuple[str, ...] | None:
        """Find a chunk's KV; the keys of everything up to it, where all of that is exact."""
        began = time.perf_counter()
        found = self.found[number] = self._find(number, chunk, encoder, before)
        self.made_kv.note_placed(chunk.id)
        self.chunk_ms[number] = (time.perf_counter() - began) * 1e3
        # Exactness is a chain: one inexact, unknown or shortened chunk, and nothing behind it is exact.
        whole = found.exact and len(self.prompt.segments[number]) == len(chunk.segment)
        return (*before, found.key) if before is not None and whole else None

    def _hand_over(self, number: int) -> ChunkKV:
        """A segment's KV, of which only tokens and extras are held on to."""
        found = self.found[number]
        kv = cast(ChunkKV, found.kv)
        self.found[number] = replace(found, kv=kv.placed(self.needs))
        return kv

    def _load_prefix(self) -> tuple[str, ...]:
        """Find the system prefix's KV, if the prompt begins with it; its key, behind which other KV may be exact."""
        own = self.index.prefix_segment.token_ids
        if self.prompt.segments[0].token_ids != own or len(self.prompt.segments) == 1:  # of which a token must be fresh
            return ()  # nothing yet; the first fresh segment ends the chain
        prefix = self.index.prefix()
        for kv, key in zip(prefix.kvs, prefix.keys, strict=True):
            self.found[0] = Loaded(kv, key, "system prefix", exact=True)
        return prefix.keys

    def _find(self, segment: int, chunk: Chunk, encoder: Encoder, before: tuple[str, ...] | None) -> Loaded:
        usable, reason = encoder_for(chunk, encoder, follows_document=self.index.follows_document(encoder))
        if usable is None:
            return Loaded(None, "", reason)
        encoder = usable
        ahead = [one.chunk for one in self.prompt.segments[:segment] if one.chunk is not None]
        found = self.index.load(chunk, encoder, before, ahead)
        exact = found.exact and found.kv is not None and found.kv.start == self.prompt.starts[segment]
        size = len(self.prompt.segments[segment])
        if size < len(chunk.segment) and self.reader.states:
            return Loaded(None, "", "only a part of it stands in the prompt, and a state's change cannot be cut")
        kv, made = found.kv, False
        if kv is None and (kv := self.made_kv.find(chunk.id)) is not None:
            found = replace(found, reason="made for this prompt")
        elif kv is None:
            kv = self._make(chunk, encoder, found.reason, size)
            made = kv is not None
        whole = kv.first(size) if kv is not None and len(kv) > size else kv
        return replace(found, kv=whole, exact=exact, made=made)

    def _make(self, chunk: Chunk, encoder: Encoder, reason: str, size: int) -> ChunkKV | None:
        """A missing KV, computed now for its first `size` tokens; None where the encoder would not use it here."""
        if encoder.exact_only or isinstance(encoder, PromptEncoder):
            return None
        made = self.index.make(chunk, encoder)
        kv = made.kv
        self.made_kv.add(chunk.id, kv)
        self.flop_counter.charge(torch.arange(encoder.discarded_tokens), range(self.reader.layers), selectable=0)
        self.flop_counter.charge(torch.arange(kv.start, kv.start + len(kv)), range(self.reader.layers), selectable=size)
        self.computed[chunk.id] = "; ".join((reason, *made.notes))
        return kv
