"""Chunks that are computed in one forward, each behind its own left context."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ragcache.model.buffer import ChunkKV


@dataclass(frozen=True, eq=False)
class PackedSequence:
    """Tokens to be computed behind a left context, and the slot where that context begins."""

    ids: tuple[int, ...]
    left: Sequence[ChunkKV]
    start: int

    @property
    def behind(self) -> int:
        """Tokens in front."""
        return sum(map(len, self.left))

    @property
    def placements(self) -> Iterator[tuple[ChunkKV, int, int]]:
        """The left context, each part with its slot and its position."""
        for kv, position in zip(self.left, accumulate(map(len, self.left), initial=0), strict=False):
            yield kv, self.start + position, position

    @property
    def slots(self) -> range:
        """Of the tokens."""
        first = self.start + self.behind
        return range(first, first + len(self.ids))


def pack_sequences(todo: Sequence[tuple[Sequence[int], Sequence[ChunkKV]]]) -> list[PackedSequence]:
    """One sequence behind the other."""
    sequences: list[PackedSequence] = []
    for ids, left in todo:
        sequences.append(PackedSequence(tuple(ids), left, sequences[-1].slots.stop if sequences else 0))
    return sequences


def list_rows(sequences: Sequence[PackedSequence]) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    """Token, slot and position of every token that is computed."""
    tokens = [token for one in sequences for token in one.ids]
    slots = [slot for one in sequences for slot in one.slots]
    return tokens, slots, [slot - one.start for one in sequences for slot in one.slots]
