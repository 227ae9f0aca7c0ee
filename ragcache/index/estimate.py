"""How long encoding takes: an ingestion's batches, drawn up from lengths alone, and a few of them made and timed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import torch

from ragcache.encode import Encoder, LeftContext
from ragcache.index.encoding_batches import batches, capacity
from ragcache.index.encoding_context import Order
from ragcache.index.index import Index
from ragcache.model.buffer import ChunkKV
from ragcache.model.reader import Reader
from ragcache.prompt import Segment
from ragcache.store import ChunkRow, DocumentRow

_TIMED = 6  # batches of an encoding that are timed: one of each sixth of its work, from the lightest to the heaviest
_REPEATS, _QUICK = 3, 0.5  # times that a batch is timed which takes less than so many seconds
_SHARE = 8  # at most one batch in so many is timed, but for one: it must not take as long as making them all
_SECONDS = 10.0  # after so many no further batch is timed


@dataclass(frozen=True)
class Planned:
    """A chunk of a batch: its tokens, tokens and number of the KVs in front of it, and the FLOPs of its rows."""

    tokens: int
    left: int
    parts: int
    flops: float


Batch = tuple[Planned, ...]


@dataclass(frozen=True)
class Estimate:
    """What encoding costs: FLOPs, counted, and seconds, from what a few batches took."""

    flops: float
    seconds: float


def estimate(
    reader: Reader,
    prefix: int,
    todo: Sequence[tuple[Encoder, Sequence[Sequence[int]]]],
    sample: Sequence[int],
    progress: Callable[[int, int], None],
) -> Estimate:
    """What encodings of some documents will cost on this machine.

    Parameters
    ----------
    reader : Reader
        The model.
    prefix : int
        Tokens of the system prefix.
    todo : sequence of (Encoder, documents)
        Of each encoding the documents to make: tokens of each chunk, in reading order.
    sample : sequence of int
        Token ids of their text, as many as there are: a forward may depend on them.
    progress : callable
        `progress(done, total)`.
    """
    room, most = reader.limit - prefix, capacity(reader.device)
    drawn = [(encoder, _planned(reader, Outline(own, prefix, room), encoder, most)) for encoder, own in todo]
    work = [(encoder, planned) for encoder, planned in drawn if planned]
    if not work:
        return Estimate(0.0, 0.0)
    seconds = 0.0
    with TemporaryDirectory(prefix="ragcache-estimate-") as folder, Index(Path(folder), reader) as index:
        trial = Trial(index, sample)
        for done, (encoder, planned) in enumerate(work):
            progress(done, len(work))
            seconds += _seconds(trial, encoder, planned)
    progress(len(work), len(work))
    return Estimate(sum(_flops(batch) for _, planned in work for batch in planned), seconds)


class Outline:
    """`ragcache.encode.EncodingContext` for documents of which only the lengths of their chunks are known.

    Parameters
    ----------
    documents : sequence of sequence of int
        Tokens of each chunk, in reading order.
    prefix : int
        Tokens of the system prefix.
    room : int
        Tokens that the model takes behind it.

    Attributes
    ----------
    room : int
        The same.
    """

    def __init__(self, documents: Sequence[Sequence[int]], prefix: int, room: int) -> None:
        blank = {length: (0,) * length for length in {prefix, *chain.from_iterable(documents)}}
        names = map(str, range(sum(map(len, documents))))
        self._orders = [Order([Segment(blank[length], "", next(names)) for length in own]) for own in documents]
        self._places = [(order, place) for order in self._orders for place in range(len(order.segments))]  # by name
        self._prefix = _blank(blank[prefix])
        self.room = room
        self._recipe = ""
        self._made = set[str]()

    def batches(self, encoder: Encoder, limit: int) -> Iterator[list[tuple[Segment, LeftContext]]]:
        """The batches in which an index would make an encoding; what it builds on counts as stored."""
        self._recipe, self._made = encoder.recipe, set()
        documents = (order.segments for order in self._orders)
        for batch in batches(documents, lambda one: encoder.left(one.chunk or "", self), limit):
            self._made |= {one.chunk or "" for one, _ in batch}
            yield batch

    def prefix(self) -> LeftContext:
        """As long as the system prefix."""
        return self._prefix

    def neighbours(self, chunk: str, count: int) -> Sequence[str]:
        """Any others."""
        total = len(self._places)
        return [str((int(chunk) + step) % total) for step in range(1, min(count + 1, total))]

    def preceding(self, chunk: str) -> Sequence[Segment]:
        """As the index has it."""
        order, place = self._places[int(chunk)]
        return order.before(place, self.room)

    def load(self, chunk: str, recipe: str) -> LeftContext | None:
        """As long as the chunk, once that is made."""
        order, place = self._places[int(chunk)]
        stored = recipe != self._recipe or chunk in self._made
        return _blank(order.segments[place].token_ids) if stored else None


class Trial:
    """Makes batches as an index does, on real tokens behind real KV, files and catalogue included.

    Parameters
    ----------
    index : Index
        To be thrown away.
    sample : sequence of int
        Token ids of which chunks are made up.
    """

    def __init__(self, index: Index, sample: Sequence[int]) -> None:
        self._index = index
        self._sample = sample
        self._runs = 0

    def seconds(self, encoder: Encoder, batch: Batch) -> float:
        """How long one batch takes."""
        self._runs += 1
        rows = [self._row(place, one.tokens) for place, one in enumerate(batch)]
        todo = [(row, self._left(one)) for row, one in zip(rows, batch, strict=True)]
        self._index.catalog.put_document(DocumentRow("trial", "trial", "", {}), rows)
        began = perf_counter()
        self._index.encode_batch(encoder, todo)
        taken = perf_counter() - began
        self._index.remove("trial")  # no more than one batch's files at a time
        return taken

    def _row(self, place: int, tokens: int) -> ChunkRow:
        return ChunkRow(f"{self._runs} {place}", "trial", place, "", self._ids(place, tokens), 0, 0)

    def _left(self, one: Planned) -> LeftContext:
        """KV of as many tokens, in as many parts, under a key of its own, so that nothing is found to be there."""
        ends = [one.left * part // one.parts for part in range(one.parts + 1)] if one.parts else []
        sizes = [end - start for start, end in pairwise(ends)]
        made = {size: self._index.reader.encode(self._ids(0, size)) for size in set(sizes) if size}
        kvs = (made[size] for size in sizes if size)
        own = (replace(kv, layers=tuple(layer.clone() for layer in kv.layers)) for kv in kvs)
        return LeftContext(tuple(own), (f"trial {self._runs}",))

    def _ids(self, first: int, tokens: int) -> tuple[int, ...]:
        return tuple(self._sample[(first * tokens + n) % len(self._sample)] for n in range(tokens))


def _blank(ids: tuple[int, ...]) -> LeftContext:
    """A KV of which only the tokens count."""
    return LeftContext((ChunkKV((), 0, ids, {}),)) if ids else LeftContext()


def _planned(reader: Reader, outline: Outline, encoder: Encoder, limit: int) -> list[Batch]:
    """An encoding's batches, the lightest first."""
    shape = reader.dims

    def planned(tokens: int, left: LeftContext) -> Planned:
        front = sum(map(len, left.kvs))
        slots = torch.arange(tokens) + front + encoder.discarded_tokens
        return Planned(tokens, front, len(left.kvs), shape.forward(slots, range(reader.layers), logits=False))

    made = outline.batches(encoder, limit)
    return sorted((tuple(planned(len(one), left) for one, left in batch) for batch in made), key=_flops)


def _flops(batch: Batch) -> float:
    return sum(one.flops for one in batch)


def _seconds(trial: Trial, encoder: Encoder, planned: Sequence[Batch]) -> float:
    """Of all batches: the middle one of each group is timed, and the others there cost in proportion to their FLOPs."""
    trial.seconds(encoder, planned[0])  # a warm-up
    count = min(_TIMED, 1 + len(planned) // _SHARE)
    groups, repeats = _grouped(planned, count), _REPEATS if count == _TIMED else 1
    done = seconds = spent = 0.0
    for at in sorted(range(len(groups)), key=lambda at: abs(at - len(groups) // 2)):
        if spent > _SECONDS:
            break
        batch, flops = groups[at][len(groups[at]) // 2], sum(map(_flops, groups[at]))
        taken = [trial.seconds(encoder, batch)]
        taken += [trial.seconds(encoder, batch) for _ in range(repeats - 1) if taken[0] < _QUICK]
        spent += sum(taken)
        done += flops
        seconds += median(taken) * flops / _flops(batch)
    return seconds * sum(map(_flops, planned)) / done


def _grouped(planned: Sequence[Batch], count: int) -> list[list[Batch]]:
    """Neighbouring batches in groups of about the same FLOPs."""
    costs = list(map(_flops, planned))
    share = sum(costs) / count
    turns = (int((end - cost / 2) / share) for cost, end in zip(costs, accumulate(costs), strict=True))
    return [[batch for _, batch in group] for _, group in groupby(zip(turns, planned, strict=True), key=itemgetter(0))]
