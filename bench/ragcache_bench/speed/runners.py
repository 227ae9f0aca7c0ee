"""Whoever is timed: our methods and what people run instead, on the same token ids, taking turns."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from ragcache import methods
from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.report import CacheReport
from ragcache_bench.contenders import Contender
from ragcache_bench.speed.clock import milliseconds
from ragcache_bench.speed.machine import added
from ragcache_bench.speed.peers import Peer
from ragcache_bench.speed.peers.peer import Parts

STORES = ("memory", "warm", "cold")


@dataclass(frozen=True)
class Turn:
    """One prompt that everybody answers.

    Attributes
    ----------
    question : str
        Its words.
    chunks : sequence of Chunk
        In prompt order.
    parts : sequence of sequence of int
        Its token ids: system prefix, chunks, question.
    """

    question: str
    chunks: Sequence[Chunk]
    parts: Parts

    @classmethod
    def of(cls, index: Index, question: str, chunks: Sequence[Chunk]) -> "Turn":
        """The prompt as the index's template writes it."""
        segments = [chunk.segment for chunk in chunks]
        prompt = index.template.prompt(segments, question, prefix=index.prefix_segment)
        ids = [segment.token_ids for segment in prompt.segments]
        behind = [token for part in ids[1 + len(chunks) :] for token in part]
        return cls(question, chunks, [*ids[: 1 + len(chunks)], behind])


@dataclass(frozen=True)
class Taken:
    """What one turn took.

    Attributes
    ----------
    ms : float
        Milliseconds to the first token's logits.
    report : CacheReport or None
        Ours only.
    passes : float or None
        Passes over the model's weights; ours only.
    peak : int or None
        Most bytes that it added to those of the process in memory; ours only, where the system says.
    """

    ms: float
    report: CacheReport | None = None
    passes: float | None = None
    peak: int | None = None


@dataclass(frozen=True)
class Runner:
    """Somebody who is timed.

    Attributes
    ----------
    method : str
        A row's name, or a peer's.
    recompute : float or None
        Nominal share.
    run : callable
        Takes a turn.
    held : callable
        Tells the bytes that it holds for later questions.
    remembers : bool
        Whether an earlier prompt makes a later one cheaper.
    """

    method: str
    recompute: float | None
    run: Callable[[Turn], Taken]
    held: Callable[[], int]
    remembers: bool = False


def own(engine: Engine, contender: Contender, store: str) -> Runner:
    """One of our methods, with its KV where the store says: "cold" drops every file from the page cache each turn."""
    row, layers = contender.method, engine.reader.layers

    def run(turn: Turn) -> Taken:
        if store == "cold":
            drop_pages(Path(engine.index.path))
        with added() as most:
            ready = engine.prefill(turn.question, turn.chunks, method=row, recompute=contender.recompute)
        passes = ready.context.flop_counter.layer_passes / layers if ready.context else 1.0
        return Taken(ready.report.ms.first_token, ready.report, passes, *most)

    return Runner(row.name, contender.recompute, run, engine.index.store.total_bytes, remembers=store == "memory")


def other(peer: Peer) -> Runner:
    """What people run instead."""

    def run(turn: Turn) -> Taken:
        peer.ready(turn.parts)
        taken = milliseconds(lambda: peer.first_token(turn.parts))
        peer.settle()
        return Taken(taken)

    return Runner(peer.name, None, run, lambda: peer.held, peer.remembers)


def with_full(field: Sequence[Contender]) -> list[Contender]:
    """Full prefill first, which all are compared with."""
    return [Contender(methods.find_method("full")), *(one for one in field if one.method.name != "full")]


def line_up(engine: Engine, field: Sequence[Contender], store: str, peers: Sequence[Peer]) -> list[Runner]:
    """Everybody who takes turns: contenders, then peers."""
    return [*(own(engine, one, store) for one in field), *map(other, peers)]


def drop_pages(folder: Path) -> None:
    """Have the operating system forget what it holds of a folder's files, as if they had not been read for long."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fdatasync(descriptor)  # pages not yet written cannot be dropped
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


def shuffled(chunks: Sequence[Chunk], seed: int) -> list[Chunk]:
    """The chunks in another order, the same one for a seed."""
    order = torch.randperm(len(chunks), generator=torch.Generator().manual_seed(seed))
    return [chunks[i] for i in order.tolist()]
