"""Chroma collections that other programs made: what they hold, whichever framework put it there."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragcache.errors import InvalidArgument, NoDocuments
from ragcache.index.collection import Entry
from ragcache.index.index import Index
from ragcache.retrieve.needs import needs

_BATCH = 500
_FOLDERS = "adopted_folders"  # setting, by collection: stands in catalogues, never to be changed
_NODE = "_node_content"  # LlamaIndex keeps the whole node there, as JSON


def claim_chroma_entries(index: Index, path: Path, collection: str | None) -> tuple[str, list[Entry]]:
    """A collection's name and its entries, for an index, which notes the folder: it knows a collection of one only.

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
        If there is no such collection, or another folder's of that name is in the index.
    """
    name, found = read_chroma(path, collection)
    claim_collection(index, name, path)
    return name, [Entry.of(*entry) for entry in found]


def claim_collection(index: Index, name: str, folder: Path) -> None:
    """Note the Chroma folder that a collection is in: of two collections of one name, an index can keep one.

    A folder that is no Chroma's any more, since it was moved or deleted, gives way to another.

    Parameters
    ----------
    index : Index
        What keeps the KV.
    name : str
        The collection's, in the index.
    folder : Path
        Chroma's.

    Raises
    ------
    InvalidArgument
        If another folder's collection of that name is in the index.
    """
    folders, place = index.catalog.setting(_FOLDERS, {}), folder.resolve()
    held = folders.get(name)
    if held == str(place):
        return
    if held is not None and _is_chroma(Path(held)):
        raise InvalidArgument(
            f"the index {index.path} keeps the collection {name!r} of {held}, not of {place}; keep this one in another "
            "index (--index, or RagCache.open), or under another name with RagCacheVectorStore(collection=...)"
        )
    if index.writable:
        index.catalog.set_setting(_FOLDERS, {**folders, name: str(place)})


def chroma_folder(client: Any) -> Path | None:
    """The folder of a Chroma client; None of one that keeps everything in memory or asks a server, or any other's."""
    if not type(client).__module__.startswith("chromadb."):
        return None
    settings = client.get_settings()
    return Path(settings.persist_directory) if settings.is_persistent else None


def read_chroma(path: Path, name: str | None) -> tuple[str, list[tuple[str, str, dict[str, Any]]]]:
    """Read a Chroma collection.

    Parameters
    ----------
    path : Path
        Chroma's folder.
    name : str or None
        The collection; the only one by default.

    Returns
    -------
    tuple of (str, list of (str, str, dict))
        The collection's name; id, text and metadata of each entry that has a text.

    Raises
    ------
    NoDocuments
        If there is no Chroma folder.
    InvalidArgument
        If there is no such collection, none is named and there are several, or Chroma refuses the folder.
    """
    if not _is_chroma(path):
        raise NoDocuments(
            f"{path} is no Chroma folder; name the one that was given as persist_directory or path. What another "
            "vector store holds is adopted in Python, by RagCacheVectorStore(store, rag).adopt()"
        )
    with needs():
        from chromadb import PersistentClient
        from chromadb.config import Settings
    try:
        client = PersistentClient(path, settings=Settings(anonymized_telemetry=False))
    except ValueError as error:
        raise InvalidArgument(
            f"Chroma refuses {path} ({error}); if this process has it open already, adopt it before that, or from "
            "another process with `ragcache adopt`"
        ) from error
    try:
        names = sorted(collection.name for collection in client.list_collections())
        chosen = name or (names[0] if len(names) == 1 else None)
        if chosen not in names:
            what = f"no collection {name!r}" if name else f"{len(names)} collections"
            raise InvalidArgument(f"{path} has {what}; name one of {', '.join(names)} with --collection")
        return str(chosen), list(_entries(client.get_collection(str(chosen), embedding_function=None)))
    finally:
        client.close()


def _is_chroma(folder: Path) -> bool:
    return (folder / "chroma.sqlite3").is_file()


def _entries(collection: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for first in range(0, collection.count(), _BATCH):
        part = collection.get(limit=_BATCH, offset=first, include=["documents", "metadatas"])
        for id, text, metadata in zip(part["ids"], part["documents"], part["metadatas"], strict=True):
            if text:
                yield id, text, _metadata(metadata or {})


def _metadata(stored: dict[str, Any]) -> dict[str, Any]:
    """Metadata as the framework had it."""
    about = {key: value for key, value in stored.items() if key != _NODE}
    try:
        node = json.loads(stored.get(_NODE, "{}"))
    except (TypeError, ValueError):
        node = {}
    start = node.get("start_char_idx") if isinstance(node, dict) else None
    return about if start is None else {**about, "start_char_idx": start}
