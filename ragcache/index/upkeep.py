"""Upkeep of an index that need not be open: what nothing names any more goes, and no model is loaded for it."""

from contextlib import closing
from pathlib import Path

from ragcache.index.documents import Documents
from ragcache.index.settings import find_catalog


def collect_garbage(path: str | Path) -> int:
    """Delete what killed processes left, and write the vectors anew without those that were removed.

    Parameters
    ----------
    path : str or Path
        The index's folder.

    Returns
    -------
    int
        Bytes that the folder has fewer than before.

    Raises
    ------
    EmptyIndex
        If there is no index.
    """
    path = Path(path)
    find_catalog(path)  # or whoever may not look would be told so by the system
    before = _size_of(path)
    with Documents.opened(path) as documents:
        documents.clean()
    if (path / "vectors" / "chroma.sqlite3").is_file():
        from ragcache.retrieve.vectors import Vectors

        with closing(Vectors(path / "vectors", "chunks")) as vectors:
            vectors.compact()
    return before - _size_of(path)


def _size_of(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
