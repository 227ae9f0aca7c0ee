"""What an index says of itself before its model is loaded."""

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ragcache.encode import PromptEncoder
from ragcache.errors import EmptyIndex, IndexFormat, MissingEncoding, ingest
from ragcache.index.reconcile import reconcile
from ragcache.method import Method
from ragcache.store import Catalog, LocalStore

_OUTDATED = "outdated_by_recipe"  # setting: per encoding, chunks fused with others than now, and as of which edition


def stats(path: str | Path) -> dict[str, Any]:
    """Documents, chunks, encodings and bytes of an index, its model and adapter, the disk's free bytes; loads no model.

    `missing` says what of it is gone from the disk, and how it comes back; `bytes` are of the KV that is there.
    `outdated` counts, by encoding, the chunks that were fused with others than their neighbours were when KV was last
    made.

    Raises
    ------
    EmptyIndex
        If there is no index.
    """
    path = Path(path)
    known = settings_of(path)
    if not known:
        raise no_index(path)
    catalog = Catalog(path / "catalog.sqlite")
    try:
        found = {**catalog.stats(), "outdated": outdated_counts(catalog)}
        missing = reconcile(catalog, list(LocalStore.list_keys(path / "kv"))).missing_blobs
        found["bytes"] -= catalog.bytes_under(missing)
    finally:
        catalog.close()
    free = shutil.disk_usage(path).free
    model = {"model": known["name"], "adapter": known.get("adapter", "")}
    lost = {"missing_kv": len(missing), "missing": _name_missing(path, len(missing), found["chunks"])}
    return {"path": str(path), **model, "method": known["method"], **found, **lost, "free_bytes": free}


def _name_missing(path: Path, blobs: int, chunks: int) -> list[str]:
    """What of an index is gone from the disk, and what brings it back."""
    again = f"run `{ingest(path)}`, which makes them anew"
    found = [f"{blobs:,} KV files are gone; {again}"] if blobs else []
    if chunks and not (path / "vectors" / "chroma.sqlite3").is_file():
        found.append(f"the vectors are gone; {again}")
    if chunks and not (path / "secret").is_file():
        found.append("the secret is gone, so no KV can be found; restore it from a backup, or ingest into a new index")
    return found


def outdated_counts(catalog: Catalog) -> dict[str, int]:
    """How many chunks had other neighbours than they were fused with, by encoding, when that was last looked at."""
    return {recipe: chunks for recipe, (chunks, _) in catalog.setting(_OUTDATED, {}).items() if chunks}


def note_outdated(catalog: Catalog, recipe: str, chunks: int) -> None:
    """Keep that number, of the chunks that there are now."""
    known = catalog.setting(_OUTDATED, {})
    catalog.set_setting(_OUTDATED, {**known, recipe: (chunks, catalog.edition())})


def outdated_is_known(catalog: Catalog, recipe: str) -> bool:
    """Whether it was looked at since documents last changed."""
    _, edition = catalog.setting(_OUTDATED, {}).get(recipe, (0, None))
    return bool(edition == catalog.edition())


def no_index(path: Path) -> EmptyIndex:
    """The error of whoever needs an index where none is."""
    return EmptyIndex(f"there is no index at {path}; run `{ingest(path, paths='PATH…')}` first")


def nothing_in(path: Path, catalog: Catalog | None = None) -> EmptyIndex:
    """The error of whoever needs chunks where nothing was ingested, or their vectors where they are gone."""
    if catalog is not None and (chunks := catalog.stats()["chunks"]):
        return EmptyIndex(
            f"the index {path} has {chunks:,} chunks and no vectors of them; run `{ingest(path)}`, which makes them "
            "anew"
        )
    return EmptyIndex(f"the index {path} is empty; run `{ingest(path, paths='PATH…')}` first")


def check_encoding(catalog: Catalog, path: Path, row: Method) -> None:
    """Refuse a method whose encoding an index lacks altogether.

    Raises
    ------
    MissingEncoding
        The message names the command that makes it.
    """
    made = catalog.recipes()
    if row.encode is not None and made and lacks_encoding(made, row):
        raise MissingEncoding(
            f"the index {path} holds {', '.join(made)} KV, but method {row.name!r} loads {row.encode.recipe}; run "
            f"`{ingest(path, method=row.name)}`"
        )


def lacks_encoding(made: Collection[str], row: Method) -> bool:
    """Whether a row loads KV that has to be made first, and is not among these recipes."""
    return row.encode is not None and not isinstance(row.encode, PromptEncoder) and row.encode.recipe not in made


def settings_of(path: Path) -> dict[str, Any]:
    """What an existing index remembers, read before its model is loaded.

    Raises
    ------
    IndexFormat
        If the path is a file.
    """
    if path.is_file():
        raise IndexFormat(
            f"{path} is a file, but an index is a folder; name the folder with --index, or run "
            f"`{ingest('NEW', paths='PATH…')}` for a new one"
        )
    file = path / "catalog.sqlite"
    if not file.exists():
        return {}
    catalog = Catalog(file)
    try:
        return dict(catalog.setting("rag", {}))
    finally:
        catalog.close()
