"""Chroma folders that other programs filled, as entries for an index: each index knows a collection of one folder."""

from pathlib import Path

from ragcache.collection import Entry
from ragcache.errors import InvalidArgument
from ragcache.index import Index
from ragcache.retrieve import foreign

_ADOPTED = "adopted_folders"  # setting: by collection


def adopted(index: Index, path: Path, collection: str | None) -> tuple[str, list[Entry]]:
    """A collection's name, and what it holds.

    Parameters
    ----------
    index : Index
        What adopts it.
    path : Path
        Chroma's folder.
    collection : str or None
        Its collection; the only one by default.

    Raises
    ------
    NoDocuments
        If there is no Chroma folder.
    InvalidArgument
        If there is no such collection, or another folder's of that name was adopted.
    """
    name, found = foreign(path, collection)
    folders = index.catalog.setting(_ADOPTED, {})
    if (place := str(path.resolve())) != folders.setdefault(name, place):
        raise InvalidArgument(
            f"the index {index.path} has adopted the collection {name!r} of {folders[name]}, not of {place}; "
            "adopt this one into another --index"
        )
    index.catalog.set_setting(_ADOPTED, folders)
    return name, [Entry.of(*entry) for entry in found]
