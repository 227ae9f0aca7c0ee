"""What is wrong with an index on the disk, and what to do about it; no model is needed for it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from ragcache.errors import CorruptBlob, IndexFormat, RagCacheError, StorageFull, ingest
from ragcache.index.reconcile import Differences, prefix_key, reconcile
from ragcache.index.settings import find_catalog
from ragcache.store import BlobStore, Catalog, KeyMaker, open_store, unpack

#: Told what is being checked, how much of it, and how much there is.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class BadBlob:
    """A KV file that failed its checks.

    Attributes
    ----------
    key : str
        Its name.
    reason : str
        What is wrong with it.
    quarantined : bool
        Whether it was moved aside, so that it is made anew; what the disk did not give just now stays.
    """

    key: str
    reason: str
    quarantined: bool


@dataclass(frozen=True)
class StoreReport:
    """What `verify` found.

    Attributes
    ----------
    path : str
        The index's folder.
    documents, chunks, blobs, bytes, vectors : int
        How many were checked, and how large the KV files are.
    damaged_rows : tuple of str
        Rows of the catalogue that are not what was written, in words.
    bad_blobs : tuple of BadBlob
        KV files that failed their checks; of `summarise` none, since it reads no file.
    bad_vectors : tuple of str
        Ids of vectors that are no unit vectors any more.
    files : tuple of str
        What is wrong with the catalogue's and the vectors' files as a whole.
    differences : Differences
        Where catalogue, files and vectors do not agree.
    next : tuple of str
        What to run, and what it does.
    """

    path: str
    documents: int
    chunks: int
    blobs: int
    bytes: int
    vectors: int
    damaged_rows: tuple[str, ...] = ()
    bad_blobs: tuple[BadBlob, ...] = ()
    bad_vectors: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    differences: Differences = field(default_factory=Differences)
    next: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.next


def summarise(path: str | Path) -> StoreReport:
    """What of an index can be checked without reading its KV: rows by their checksums, files and vectors by name.

    Raises
    ------
    EmptyIndex
        If there is no index.
    """
    return verify(path, read=False)


def verify(path: str | Path, *, read: bool = True, progress: Progress = lambda stage, done, total: None) -> StoreReport:
    """Check every row, KV file and vector of an index; a KV file that fails is moved aside. No model is loaded.

    Whoever may not write to the index changes nothing. Run it while nothing ingests, or what is being written just now
    may be reported as unfinished.

    Parameters
    ----------
    path : str or Path
        The index's folder.
    read : bool
        Whether KV files and vectors are read, or only looked for.
    progress : callable
        Told `(stage, done, total)`.

    Raises
    ------
    EmptyIndex
        If there is no index.
    IndexFormat
        If the catalogue cannot be read at all, or the secret is gone.
    StorageFull
        If the disk does not give the vectors, of which nothing is known then.
    """
    path = Path(path)
    with closing(Catalog(find_catalog(path))) as catalog:
        store = open_store(path, read_only=not catalog.writable)
        counted, keep = catalog.stats(), {prefix_key(catalog, path)}
        wrong = catalog.check_file()
        damaged = [*catalog.find_damaged(), *_wrong_keys(catalog, path)]
        blobs = list(store.list())
        bad = list(_bad_blobs(catalog, store, blobs, progress)) if read else []
        vectors, bad_vectors, broken = _read_vectors(path, read=read) if counted["chunks"] else (set(), [], [])
        differences = reconcile(catalog, store.list(), None if broken else vectors, keep)
        nbytes = sum(store.head(key) or 0 for key in blobs)
        return StoreReport(
            str(path), counted["documents"], counted["chunks"], len(blobs), nbytes, len(vectors), tuple(damaged),
            tuple(bad), tuple(bad_vectors), (*wrong, *broken), differences,
            tuple(_advise(path, (*wrong, *broken), damaged, bad, bad_vectors, differences)),
        )  # fmt: skip


def _wrong_keys(catalog: Catalog, path: Path) -> Iterator[str]:
    """KV whose row is of another text or model than its key, so that it is never loaded."""
    keys = KeyMaker.of(catalog, path)
    for recipe in catalog.recipes():
        for row in catalog.by_recipe(recipe):
            with suppress(IndexFormat):  # a damaged chunk is named already
                chunk = catalog.chunk(row.chunk)
                if chunk is not None and keys.make(row.recipe, row.left, chunk.token_ids) != row.key:
                    yield f"the KV of the chunk {row.chunk}, whose key is of other tokens or another model"


def _bad_blobs(catalog: Catalog, store: BlobStore, keys: list[str], progress: Progress) -> Iterator[BadBlob]:
    for done, key in enumerate(keys, 1):
        try:
            unpack(store.get(key), key)
        except CorruptBlob as error:
            moved = error.read and store.writable and store.quarantine(key)
            if moved:
                catalog.drop_key(key)
            if moved or store.head(key) is not None:  # or it was removed meanwhile
                yield BadBlob(key, error.reason, moved)
        progress("KV files", done, len(keys))


def _read_vectors(path: Path, *, read: bool) -> tuple[set[str], list[str], list[str]]:
    """Ids of the vectors, of those that are no unit vectors, and what is wrong with their files."""
    from ragcache.retrieve.vectors import Vectors

    folder = path / "vectors"
    if not (folder / "chroma.sqlite3").is_file():
        return set(), [], []
    try:
        with closing(Vectors(folder, "chunks")) as vectors:
            ids = vectors.ids()
            return set(ids), vectors.find_damaged(ids) if read else [], vectors.check_file() if read else []
    except StorageFull:  # nothing was learnt of them
        raise
    except RagCacheError as error:
        return set(), [], [str(error)]


def _advise(
    path: Path,
    files: Sequence[str],
    rows: Sequence[str],
    blobs: Sequence[BadBlob],
    vectors: Sequence[str],
    found: Differences,
) -> Iterator[str]:
    """What to run, and what it does."""
    if files:
        yield (
            "restore the index from a backup, or move it away and ingest again; if only the vectors are damaged, "
            f"delete {path / 'vectors'} and run `{ingest(path)}`, which makes them anew"
        )
    kept = [blob for blob in blobs if not blob.quarantined]
    again = len(blobs) - len(kept) + len(found.missing_blobs)
    if rows or again or found.missing_vectors or found.stray_vectors:
        yield f"run `{ingest(path)}`, which reads damaged documents anew and makes the KV and vectors that are missing"
    if kept:
        yield "repeat this as the account that ingests: KV files that failed could not be read, or moved aside"
    if found.orphan_blobs:
        yield f"run `ragcache store gc --index {quote(str(path))}`, which deletes KV files that nothing names"
    if vectors:
        yield f"delete {path / 'vectors'} and run `{ingest(path)}`, which makes the vectors anew"
