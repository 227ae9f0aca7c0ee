"""A chunk's harvested KV, a variant for each context that it was taken from: which one serves, and which are kept."""

from collections.abc import Sequence
from dataclasses import replace

from ragcache.encode import PastPrompt
from ragcache.encode.harvested import fit
from ragcache.index.chunks import Loaded
from ragcache.store import Catalog, EncodingRow, may_precede


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
        return row.left != before, PastPrompt.from_dict(row.past).overhead(ahead) if row.past else 0.0

    return sorted(rows, key=rank)


def fit_variant(found: Loaded, ahead: Sequence[str]) -> Loaded:
    """A harvested KV that was loaded, told what it is worth behind the chunks `ahead`; any other as it is."""
    if found.kv is None or found.past is None or found.exact:
        return found
    overlap = f"{found.past.overlap(ahead):.0%} of what it looked at stands in front of it"
    return replace(found, kv=fit(found.kv, found.past, ahead), reason=f"{found.reason}; {overlap}")


def surplus(rows: Sequence[EncodingRow], most: int) -> list[str]:
    """Keys of a chunk's variants, given the newest first, that are over `most`: those worth least, never the newest."""
    older = sorted(rows[1:], key=lambda row: row.worth, reverse=True)  # of the same worth, the oldest last
    return [row.key for row in older[most - 1 :]]


def count_readable(catalog: Catalog, chunks: Sequence[str]) -> int:
    """How many chunks, from the first on, are in the index and may be read by all who may read one behind them."""
    rows = {row.id: row for row in catalog.chunks(chunks)}
    for count, chunk in enumerate(chunks):
        ahead = [rows[one].access for one in chunks[:count]]
        if chunk not in rows or not all(may_precede(access, rows[chunk].access) for access in ahead):
            return count
    return len(chunks)
