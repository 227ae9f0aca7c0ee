"""Which KV goes when a store is full: what saves the least work per byte, by how often and how lately it was used."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Kept:
    """A stored KV and what is known of its use.

    Attributes
    ----------
    key : str
        Its name.
    nbytes : int
        What it takes.
    work : float
        What it takes to make it anew: seconds, or FLOPs, the same for all that are compared.
    uses : int
        How often it was made or served.
    used : float
        When it was last; any number that grows.
    aged : float
        The clock at that time, before anything went for it.
    """

    key: str
    nbytes: int
    work: float
    uses: int
    used: float
    aged: float = 0.0


#: A number by which the lowest goes first.
Policy = Callable[[Kept], float]


def saved_per_byte(kept: Kept) -> float:
    """GreedyDual-Size with Frequency (Cherkasova 1998): the clock at its last use + uses x work / bytes.

    The clock stands at the priority of what was evicted last, so what was used often but long ago goes in the end.
    """
    return kept.aged + kept.uses * kept.work / max(kept.nbytes, 1)


def least_recently(kept: Kept) -> float:
    """LRU."""
    return kept.used


def least_often(kept: Kept) -> float:
    """LFU."""
    return float(kept.uses)


def choose_victims(kept: Iterable[Kept], needed: int, policy: Policy = saved_per_byte) -> list[Kept] | None:
    """What has to go so that `needed` bytes are free, the least first.

    What comes in is not held against what is there. A newcomer was used once, so it would never get in where all
    others were used twice, and the clock would stand still.

    Parameters
    ----------
    kept : iterable of Kept
        All that may go.
    needed : int
        Bytes.
    policy : callable
        Gives a priority; of equal ones the one that was used longer ago goes first.

    Returns
    -------
    list of Kept or None
        None if that many bytes cannot be had.
    """
    gone, freed = list[Kept](), 0
    for one in sorted(kept, key=lambda one: (policy(one), one.used, one.key)):
        if freed >= needed:
            break
        gone.append(one)
        freed += one.nbytes
    return gone if freed >= needed else None
