"""What an index says of itself before its model is loaded."""

import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

from ragcache.encode import PromptEncoder
from ragcache.errors import (
    EmptyIndex,
    IndexFormat,
    IndexMismatch,
    MissingEncoding,
    StorageFull,
    UnusableIndex,
    ingest,
)
from ragcache.index.encoding_context import STRUCTURAL
from ragcache.index.reconcile import reconcile
from ragcache.method import Method
from ragcache.model.lazy import Tensor
from ragcache.retrieve.reading import stored_ids
from ragcache.store import CODEC, CODECS, COLLECTION, RAW, Catalog, Codec, find_codec, open_store

MAX_BYTES = "max_kv_bytes"  # setting: what all KV files may take together
KV_FORM = "kv_form"  # setting: see `form_of`
_OPENING = "rag"  # setting: what `settings_of` reads
_OUTDATED = "outdated_by_recipe"  # setting: per encoding, chunks fused with others than now, and as of which edition


def stats(path: str | Path) -> dict[str, Any]:
    """Documents, chunks, encodings and bytes of an index, its model and adapter, the disk's free bytes; loads no model.

    `kv` is the codec that KV is written in, and `codecs` what all of it would take in each of them, as far as that is
    known. `missing` says what of it is gone from the disk, and how it comes back; `bytes` are of the KV that is there.
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
        missing = reconcile(catalog, open_store(path, read_only=True).list()).missing_blobs
        found["bytes"] -= catalog.bytes_under(missing)
        waiting = unfound(path, _count_unfound(catalog, path / "vectors"), found["chunks"])
        found |= {"kv": catalog.setting(CODEC, RAW), "codecs": _price_codecs(catalog, found["bytes"])}
    finally:
        catalog.close()
    free = shutil.disk_usage(path).free
    model = {"model": known["name"], "adapter": known.get("adapter") or ""}
    lost = {"missing_kv": len(missing), "missing": [*_name_missing(path, len(missing), found["chunks"]), *waiting]}
    return {"path": str(path), **model, "method": known["method"], **found, **lost, "free_bytes": free}


def _price_codecs(catalog: Catalog, nbytes: int) -> dict[str, int]:
    """Bytes that all stored KV would take in each codec; nothing where no KV was written yet."""
    form, lengths = catalog.setting(KV_FORM), catalog.token_counts()
    if not (form and lengths and nbytes):
        return {}
    tokens = max(round(fmean(lengths)), 1)
    own = bytes_of_form(form, find_codec(catalog.setting(CODEC, RAW)), tokens)
    return {name: round(nbytes * bytes_of_form(form, codec, tokens) / own) for name, codec in CODECS.items()}


def form_of(layers: Iterable[Tensor]) -> list[tuple[int, ...]]:
    """What decides a KV's bytes: each layer's KV heads, the width of one, bytes of a number; 1 if it has one side."""
    return [(one.shape[1], one.shape[3], one.itemsize, *one.shape[: len(one) == 1]) for one in layers]


def bytes_of_form(form: Iterable[Sequence[int]], codec: Codec, tokens: int) -> int:
    """Bytes that a KV of so many tokens takes, by its form."""
    return sum(codec.nbytes(heads, tokens, *rest) for heads, *rest in form)


def _name_missing(path: Path, blobs: int, chunks: int) -> list[str]:
    """What of an index is gone from the disk, and what brings it back."""
    again = f"run `{ingest(path)}`, which makes them anew"
    found = [f"{blobs:,} KV files are gone; {again}"] if blobs else []
    if chunks and not (path / "vectors" / "chroma.sqlite3").is_file():
        found.append(f"the vectors are gone; {again}")
    if chunks and not (path / "secret").is_file():
        found.append("the secret is gone, so no KV can be found; restore it from a backup, or ingest into a new index")
    return found


def unfound(path: Path, lacking: int, chunks: int) -> list[str]:
    """What to say of chunks that have no vector yet, if there are some."""
    return [f"{lacking:,} of {chunks:,} chunks cannot be found yet; run `{ingest(path)}`"] if lacking > 0 else []


def _count_unfound(catalog: Catalog, vectors: Path) -> int:
    """Chunks of files without a vector; those of vector stores get theirs when a question is asked."""
    known = stored_ids(vectors)
    files = {row.id for row in catalog.documents() if COLLECTION not in row.metadata}
    return 0 if known is None else sum(id in files and chunk not in known for chunk, id in catalog.places())


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


@contextmanager
def looking(path: Path) -> Iterator[None]:
    """Look whether files of a folder are there, which its system may not let this account do.

    Raises
    ------
    UnusableIndex
        The message names the folder and the system's reason.
    """
    try:
        yield
    except OSError as error:
        raise UnusableIndex(
            f"the folder {path} cannot be looked into ({error.strerror or error}); name a folder that this account may "
            "use with --index"
        ) from error


def make_folder(path: Path) -> None:
    """Make an index's folder, readable by its owner only, if it is not there.

    Raises
    ------
    StorageFull
        The message names the folder and the system's reason.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageFull(
            f"the folder {path} cannot be made ({error.strerror or error}); name a folder that this account may use "
            "with --index"
        ) from error


def find_catalog(path: Path) -> Path:
    """The file of an index that names all the others.

    Raises
    ------
    EmptyIndex
        If there is no index.
    UnusableIndex
        If this account may not look.
    """
    file = path / "catalog.sqlite"
    with looking(path):
        if file.is_file():
            return file
    raise no_index(path)


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
    """Refuse a method whose encoding an index lacks altogether; what was made within a limit may all have gone.

    Raises
    ------
    MissingEncoding
        The message names the command that makes it.
    """
    made = catalog.recipes()
    gone = [] if catalog.setting(MAX_BYTES) is None else catalog.setting(STRUCTURAL, [])
    if row.encode is not None and made and lacks_encoding([*made, *gone], row):
        raise MissingEncoding(
            f"the index {path} holds {', '.join(made)} KV, but method {row.name!r} loads {row.encode.recipe}; run "
            f"`{ingest(path, method=row.name)}`"
        )


def check_codec(path: Path, known: str | None, given: str) -> None:
    """Refuse another codec than an index's own, if it has one already.

    Raises
    ------
    IndexMismatch
        The message names the command that makes another index.
    """
    if known is not None and given != known:
        raise IndexMismatch(
            f"the KV of the index {path} is written as {known}, not as {given}; leave --kv out, or run "
            f"`{ingest('NEW', paths='PATH…')} --kv {given}` for another index"
        )


def lacks_encoding(made: Collection[str], row: Method) -> bool:
    """Whether a row loads KV that has to be made first, and is not among these recipes."""
    return row.encode is not None and not isinstance(row.encode, PromptEncoder) and row.encode.recipe not in made


def remember(catalog: Catalog, **changed: Any) -> None:
    """Change some of what an index remembers of how it is opened."""
    known = catalog.setting(_OPENING, {})
    if not known.items() >= changed.items():
        catalog.set_setting(_OPENING, {**known, **changed})


def settings_of(path: Path) -> dict[str, Any]:
    """What an existing index remembers, read before its model is loaded.

    Raises
    ------
    IndexFormat
        If the path is a file.
    UnusableIndex
        If this account may not look.
    """
    file = path / "catalog.sqlite"
    with looking(path):
        if path.is_file():
            raise IndexFormat(
                f"{path} is a file, but an index is a folder; name the folder with --index, or run "
                f"`{ingest('NEW', paths='PATH…')}` for a new one"
            )
        if not file.exists():
            return {}
    catalog = Catalog(file)
    try:
        return dict(catalog.setting(_OPENING, {}))
    finally:
        catalog.close()
