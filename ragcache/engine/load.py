"""From a prompt to a buffer full of KV: what was found for each segment, loaded, and put in its place."""

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import cast

import torch
from torch import Tensor

from ragcache.encode import Encoder
from ragcache.index.chunks import Chunk, Loaded
from ragcache.index.index import Index
from ragcache.model.buffer import ChunkKV, KVBuffer
from ragcache.model.cost import FlopCounter
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt
from ragcache.report import CacheReport, ChunkReport, Timings, Tokens


@dataclass(frozen=True)
class SharedRecompute:
    """What is recomputed of a context that questions share, ahead of all of them.

    Attributes
    ----------
    what : str
        Tells it from any other way to settle.
    run : callable
        Does it.
    """

    what: str
    run: Callable[[PrefillContext], None]


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


@dataclass(eq=False)
class ContextLoader:
    """One prompt's segments, what the index had for them, and the clock.

    Attributes
    ----------
    reader, index : Reader, Index
        Where KV comes from.
    prompt : Prompt
        As laid out.
    chunks : sequence of Chunk
        The prompt's chunks, in its order.
    flop_counter : FlopCounter
        What has been computed.
    ms : Timings
        Milliseconds per stage so far.
    found : dict of int to Loaded
        By segment.
    computed : dict of str to str
        Chunks whose KV was missing and was made now, and why it was missing.
    needs : sequence of str
        Extras that the method reads.
    shared : dict, optional
        Contexts that several questions are asked over at once: each is assembled for the first of them.
    """

    reader: Reader
    index: Index
    prompt: Prompt
    chunks: Sequence[Chunk]
    flop_counter: FlopCounter
    ms: Timings = field(default_factory=Timings)
    needs: Sequence[str] = ()
    found: dict[int, Loaded] = field(default_factory=dict)
    computed: dict[str, str] = field(default_factory=dict)
    shared: dict[Hashable, SharedContext] | None = None
    _chunk_ms: dict[int, float] = field(default_factory=dict)

    def fill(self, encoder: Encoder, room: int, recompute: SharedRecompute | None = None) -> PrefillContext:
        """Load every KV the encoder allows here, and place it in a buffer with `room` slots.

        A context that is shared is settled once, if it is to be.
        """
        if self.shared is None:
            return self._pass(self._assembled(encoder, room))
        return self._copied(encoder, room, self.shared, recompute)

    def _pass(self, buffer: KVBuffer) -> PrefillContext:
        kvs = {segment: found.kv for segment, found in self.found.items() if found.kv is not None}
        exact = frozenset(segment for segment in kvs if self.found[segment].exact)
        return PrefillContext(self.reader, self.prompt, buffer, kvs, exact, self.flop_counter)

    def _assembled(self, encoder: Encoder, room: int) -> KVBuffer:
        buffer = self.reader.buffer(room)
        began, loaded = self.now(), self.ms.load
        self.reader.place_all(buffer, self._loading(encoder))
        self.ms.place += self.now() - began - (self.ms.load - loaded)
        return buffer

    def _copied(
        self, encoder: Encoder, room: int, shared: dict[Hashable, SharedContext], recompute: SharedRecompute | None
    ) -> PrefillContext:
        """A copy of what was assembled, and settled, for the first question over these very segments."""
        count = self.prompt.question
        context = tuple((segment.chunk, segment.token_ids) for segment in self.prompt.segments[:count])
        how = (repr(encoder), tuple(self.needs), recompute.what if recompute else None)
        key = (how, tuple(self.prompt.starts[:count]), context)
        end = self.prompt.slots[count]
        if key not in shared:
            first = self._pass(self._assembled(encoder, end))
            if recompute is not None:
                recompute.run(first)
            shared[key] = SharedContext(
                first.buffer, dict(self.found), dict(self.computed), first.recomputed[:end], first.stale[:, :end]
            )
        held = shared[key]
        self.found.update(held.found)
        self.computed.update(held.computed)
        with self.timed("place"):
            p = self._pass(held.buffer.beginning(end, room))
        p.recomputed[:end], p.stale[:, :end] = held.recomputed, held.stale
        return p

    def report(self, name: str, recompute: float | None, recomputed: Tensor, notes: Sequence[str]) -> CacheReport:
        """What the answer is made from.

        Parameters
        ----------
        name, recompute : str, float or None
            The method's, and the nominal share.
        recomputed : Tensor
            (slots,) bool.
        notes : sequence of str
            Degradations worth saying.
        """
        chunks, layers, flop_counter = self._reports(recomputed), self.reader.layers, self.flop_counter
        context = sum(chunk.tokens for chunk in chunks)
        selectable = sum(chunk.tokens for chunk in chunks if chunk.cache == "hit" or chunk.id in self.computed)
        full = flop_counter.dims.forward(torch.arange(len(self.prompt)), layers, logits=True)
        return CacheReport(
            method=name,
            recompute=recompute,
            chunks=chunks,
            tokens=Tokens(
                context=context,
                question=len(self.prompt) - context,
                reused=sum(chunk.tokens - chunk.recomputed for chunk in chunks if chunk.cache != "miss"),
                recomputed=int(recomputed.sum()),
                charged=round(flop_counter.token_layers / layers),
            ),
            charged=flop_counter.token_layers / (selectable * layers) if selectable else 0.0,
            charged_flops=flop_counter.flops / full,
            ms=self.ms,
            notes=tuple(notes),
        )

    def _reports(self, recomputed: Tensor) -> tuple[ChunkReport, ...]:
        """What happened to each chunk; `recomputed` is (slots,) bool."""
        return tuple(
            self._report(segment, chunk, int(recomputed[self.span(segment)].sum()))
            for segment, chunk in zip(self.prompt.chunks(), self.chunks, strict=True)
        )

    def span(self, segment: int) -> slice:
        """Slots of a segment."""
        return slice(self.prompt.slots[segment], self.prompt.slots[segment + 1])

    def now(self, *, waits: bool = True) -> float:
        """Milliseconds; waits for an accelerator first, which would otherwise still be computing."""
        if waits and self.reader.device.type == "cuda":
            torch.cuda.synchronize(self.reader.device)
        return time.perf_counter() * 1e3

    @contextmanager
    def timed(self, stage: str, *, waits: bool = True) -> Iterator[None]:
        """Enter what happens inside as a stage of `ms`; an accelerator need not be done with it if nobody waits."""
        began = self.now(waits=waits)
        yield
        setattr(self.ms, stage, getattr(self.ms, stage) + self.now(waits=waits) - began)

    def _loading(self, encoder: Encoder) -> Iterator[tuple[ChunkKV, int, int]]:
        """Every KV that the encoder allows here, with its slot and position, loaded as it is asked for.

        Nothing here holds on to one: together they would take as much memory as the buffer that they are put into,
        beside what the memory tier keeps.
        """
        chunks = dict(zip(self.prompt.chunks(), self.chunks, strict=True))
        with self.timed("load", waits=False):  # meanwhile a GPU copies what was loaded before
            before: tuple[str, ...] | None = self._prefix()
        for number, (slot, start) in enumerate(zip(self.prompt.slots, self.prompt.starts, strict=False)):
            if number in chunks:
                with self.timed("load", waits=False):
                    before = self._load(number, chunks[number], encoder, before)
            elif number not in self.found and self.prompt.segments[number]:
                before = None
            if number in self.found and self.found[number].kv is not None:
                yield self._taken(number), slot, start

    def _load(
        self, number: int, chunk: Chunk, encoder: Encoder, before: tuple[str, ...] | None
    ) -> tuple[str, ...] | None:
        """Find a chunk's KV; the keys of everything up to it, where all of that is exact."""
        began = time.perf_counter()
        found = self.found[number] = self._found(number, chunk, encoder, before)
        self._chunk_ms[number] = (time.perf_counter() - began) * 1e3
        # Exactness is a chain: one inexact, unknown or shortened chunk, and nothing behind it is exact.
        whole = found.exact and len(self.prompt.segments[number]) == len(chunk.segment)
        return (*before, found.key) if before is not None and whole else None

    def _taken(self, number: int) -> ChunkKV:
        """A segment's KV, of which only tokens and extras are held on to."""
        found = self.found[number]
        kv = cast(ChunkKV, found.kv)
        self.found[number] = replace(found, kv=kv.placed(self.needs))
        return kv

    def _prefix(self) -> tuple[str, ...]:
        """Find the system prefix's KV, if the prompt begins with it; its key, behind which other KV may be exact."""
        own = self.index.prefix_segment.token_ids
        if self.prompt.segments[0].token_ids != own:
            return ()  # nothing yet; the first fresh segment ends the chain
        prefix = self.index.prefix()
        for kv, key in zip(prefix.kvs, prefix.keys, strict=True):
            self.found[0] = Loaded(kv, key, "system prefix", exact=True)
        return prefix.keys

    def _found(self, segment: int, chunk: Chunk, encoder: Encoder, before: tuple[str, ...] | None) -> Loaded:
        found = self.index.load(chunk, encoder, before)
        exact = found.exact and found.kv is not None and found.kv.start == self.prompt.starts[segment]
        size = len(self.prompt.segments[segment])
        kv = self._made(chunk, encoder, found.reason, size) if found.kv is None else found.kv
        return replace(found, kv=kv.first(size) if kv is not None and len(kv) > size else kv, exact=exact)

    def _made(self, chunk: Chunk, encoder: Encoder, reason: str, size: int) -> ChunkKV | None:
        """A missing KV, computed now for its first `size` tokens; None where the encoder would not use it here."""
        if encoder.exact_only:
            return None
        kv = self.index.make(chunk, encoder)
        self.flop_counter.charge(torch.arange(encoder.discarded_tokens), self.reader.layers, selectable=0)
        self.flop_counter.charge(torch.arange(kv.start, kv.start + len(kv)), self.reader.layers, selectable=size)
        self.computed[chunk.id] = reason
        return kv

    def _report(self, segment: int, chunk: Chunk, recomputed: int) -> ChunkReport:
        found = self.found.get(segment, Loaded(None, "", "the method loads nothing"))
        loaded = found.kv is not None and chunk.id not in self.computed
        return ChunkReport(
            id=chunk.id,
            source=chunk.source,
            tokens=len(self.prompt.segments[segment]),
            cache="miss" if not loaded else "exact" if found.exact else "hit",
            reason=self.computed.get(chunk.id, found.reason),
            left=found.left,
            recomputed=recomputed,
            ms=self._chunk_ms.get(segment, 0.0),
        )
