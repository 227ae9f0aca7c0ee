"""A chunk's harvested KV, a variant for each context that it was taken from: which one serves, and which are kept."""

from collections.abc import Sequence
from dataclasses import replace

from ragcache.encode import Harvested, PastPrompt
from ragcache.encode.harvested import fit
from ragcache.index.chunks import Loaded
from ragcache.store import EncodingRow


def rank_rows(rows: Sequence[EncodingRow], before: tuple[str, ...] | None, ahead: Sequence[str]) -> list[EncodingRow]:
    """The rows of one chunk, the best first: what is exact here, then the least cache fix overhead.

    Parameters
    ----------
    rows : sequence of EncodingRow
        Of any encodings; those that were not harvested keep their order.
    before : tuple of str or None
        Keys of everything in front where all of it is exact; None otherwise.
    ahead : sequence of str
        Ids of the chunks in front.
    """

    def rank(row: EncodingRow) -> tuple[bool, float]:
        harvested = row.recipe == Harvested.recipe and row.about is not None
        return row.left != before, PastPrompt.from_dict(row.about or {}).overhead(ahead) if harvested else 0.0

    return sorted(rows, key=rank)


def fit_variant(found: Loaded, row: EncodingRow, ahead: Sequence[str]) -> Loaded:
    """A harvested KV that was loaded, told what it is worth behind the chunks `ahead`; any other as it is."""
    if found.kv is None or found.exact or row.recipe != Harvested.recipe or row.about is None:
        return found
    past = PastPrompt.from_dict(row.about)
    overlap = f"{past.overlap(ahead):.0%} of what it looked at stands in front of it"
    return replace(found, kv=fit(found.kv, past, ahead), reason=f"{found.reason}; {overlap}")


def surplus(rows: Sequence[EncodingRow], most: int) -> list[str]:
    """Keys of a chunk's variants, given the newest first, that are over `most`: those worth least, never the newest."""
    older = sorted(rows[1:], key=lambda row: row.worth, reverse=True)  # of the same worth, the oldest last
    return [row.key for row in older[most - 1 :]]
