"""Simulated caches, with sizes in the place of KV: what each would hold, and find, of a trace within a limit."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ragcache.store import Kept, choose_victims, least_often, least_recently, saved_per_byte

POLICIES = {"saved per byte": saved_per_byte, "lru": least_recently, "lfu": least_often}

#: A chunk's name, its bytes, and the work of making its KV.
Sized = tuple[str, int, float]


@dataclass
class SimulatedStore:
    """A store of chunks' KV: what a question lacks is made, and takes the place of what is worth the least.

    Attributes
    ----------
    limit : int
        Most bytes.
    policy : str
        One of `POLICIES`; an index has "saved per byte".
    """

    limit: int
    policy: str = "saved per byte"
    kept: dict[str, Kept] = field(default_factory=dict)
    clock: float = 0.0
    nbytes: int = 0
    most: int = 0

    def fill(self, chunks: Sequence[Sized]) -> None:
        """Ingest chunks, as far as they fit."""
        for key, nbytes, work in chunks:
            if self.nbytes + nbytes <= self.limit:
                self._keep(Kept(key, nbytes, work, 0, 0.0, 0.0))

    def ask(self, chunks: Sequence[Sized], now: float) -> set[str]:
        """Names of those of a question's chunks that are there."""
        found = {key for key, _, _ in chunks if key in self.kept}
        for key in found:
            one = self.kept[key]
            self.kept[key] = replace(one, uses=one.uses + 1, used=now, aged=self.clock)
        asked = {key for key, _, _ in chunks}
        for key, nbytes, work in chunks:
            if key not in self.kept:
                self._put(Kept(key, nbytes, work, 1, now, self.clock), asked)
        return found

    def _put(self, new: Kept, asked: set[str]) -> None:
        needed = new.nbytes - (self.limit - self.nbytes)
        if needed > 0:
            free = [one for one in self.kept.values() if one.key not in asked]
            gone = choose_victims(free, needed, POLICIES[self.policy])
            if gone is None:
                return
            for one in gone:
                self.clock = max(self.clock, saved_per_byte(one))
                self.nbytes -= self.kept.pop(one.key).nbytes
        self._keep(new)

    def _keep(self, new: Kept) -> None:
        self.kept[new.key] = new
        self.nbytes += new.nbytes
        self.most = max(self.most, self.nbytes)


@dataclass
class SimulatedPrefixCache:
    """An exact prefix cache: prompts' beginnings, a chunk at a time; what was used longest ago goes first.

    The system prefix is the same for all, and takes no room.

    Attributes
    ----------
    limit : int
        Most bytes.
    sizes : mapping of str to int
        Bytes of each chunk.
    gone : list of tuple of str
        What the last question has pushed out.
    """

    limit: int
    sizes: Mapping[str, int]
    kept: OrderedDict[tuple[str, ...], None] = field(default_factory=OrderedDict)
    gone: list[tuple[str, ...]] = field(default_factory=list)
    nbytes: int = 0
    most: int = 0

    def ask(self, chunks: Sequence[str]) -> int:
        """How many of a question's chunks, from the first on, are there in its order."""
        starts = [tuple(chunks[: end + 1]) for end in range(len(chunks))]
        found = next((number for number, start in enumerate(starts) if start not in self.kept), len(starts))
        for start in reversed(starts):  # a beginning is always used later than what it begins, so that that goes first
            if start not in self.kept:
                self.kept[start] = None
                self.nbytes += self.sizes[start[-1]]
            self.kept.move_to_end(start)
        self.gone.clear()
        while self.nbytes > self.limit:
            start, _ = self.kept.popitem(last=False)
            self.nbytes -= self.sizes[start[-1]]
            self.gone.append(start)
        self.most = max(self.most, self.nbytes)
        return found
