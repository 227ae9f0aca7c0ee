"""Catalogue, KV files and vectors of an index, held against each other by one function."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from ragcache.store import PREFIX, BlobStore, Catalog, KeyMaker


@dataclass(frozen=True)
class Differences:
    """Where the three do not agree.

    Attributes
    ----------
    missing_blobs : tuple of str
        Keys that the catalogue names and that have no file.
    orphan_blobs : tuple of str
        Keys of files that the catalogue does not name, as a killed ingestion leaves them.
    missing_vectors : tuple of str
        Ids of chunks that no search finds.
    stray_vectors : tuple of str
        Ids of vectors whose chunk is gone.
    """

    missing_blobs: tuple[str, ...] = ()
    orphan_blobs: tuple[str, ...] = ()
    missing_vectors: tuple[str, ...] = ()
    stray_vectors: tuple[str, ...] = ()


def reconcile(
    catalog: Catalog, blobs: Iterable[str], vectors: Collection[str] | None = None, keep: Collection[str] = ()
) -> Differences:
    """Hold the catalogue against the files and the vectors by their names alone.

    Parameters
    ----------
    catalog : Catalog
        Of the index.
    blobs : iterable of str
        Keys of the files that there are. What lists them as it is read does so behind the catalogue, whose rows come
        after their files: no file that is written meanwhile is taken for one that is gone.
    vectors : collection of str or None
        Ids of the vectors that there are; None where nobody has looked.
    keep : collection of str
        Keys that belong there although no row names them.
    """
    named, stored = catalog.keys(), set(blobs)
    unnamed = [key for key in stored - named - set(keep) if not catalog.referenced(key)]  # others may write just now
    if vectors is None:
        return Differences(tuple(sorted(named - stored)), tuple(sorted(unnamed)))
    chunks, found = {chunk for chunk, _ in catalog.places()}, set(vectors)
    return Differences(
        tuple(sorted(named - stored)),
        tuple(sorted(unnamed)),
        tuple(sorted(chunks - found)),
        tuple(sorted(found - chunks)),
    )


def find_missing(catalog: Catalog, store: BlobStore) -> list[str]:
    """Keys that the catalogue names and that have no file, whoever else writes meanwhile."""
    return [key for key in reconcile(catalog, store.list()).missing_blobs if store.head(key) is None]


def prefix_key(catalog: Catalog, path: Path) -> str:
    """The key of the system prefix's KV, which is no document's."""
    return KeyMaker.of(catalog, path).make(PREFIX, (), catalog.setting("prefix_ids", []))
