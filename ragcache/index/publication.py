"""An index that many machines read: its KV in an object store, and beside it snapshots of all the rest.

One machine ingests. Each blob is in the object store before the catalogue has a row for it, and every ingestion ends
with a snapshot: catalogue, vectors and secret, each an object named by its digest, and one small object that names them
all, which is replaced last. Whoever reads fetches what that object names: one snapshot or the next, nothing between.
"""

import hashlib
import json
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ragcache.checks import check_not_blank
from ragcache.errors import (
    EmptyIndex,
    IndexFormat,
    IndexMismatch,
    InvalidArgument,
    RagCacheError,
    StorageFull,
    UnreachableStore,
)
from ragcache.index.reconcile import prefix_key
from ragcache.index.settings import make_folder
from ragcache.store import (
    Attachment,
    Catalog,
    LocalStore,
    RemoteStore,
    TieredStore,
    check_url,
    hold_turn,
    is_encrypted,
    load_or_create_secret,
    read_attachment,
    write_attachment,
)
from ragcache.store.encryption import KEY, KEY_FILE, find_key

if TYPE_CHECKING:
    from ragcache.index.index import Index

_FORMAT = 1
_CURRENT, _OWNER, _FILES = "snapshot.json", "index.json", "snapshots/"
_PUBLISHED = "published_edition"  # setting: of the chunks that whoever reads may have
_ATTEMPTS = 3  # at fetching a snapshot that another takes the place of meanwhile


def attach(path: Path, url: str) -> None:
    """Let an index keep its KV in an object store from now on, what it has already included; it remembers that.

    Parameters
    ----------
    path : Path
        The index's folder, created if absent.
    url : str
        Such as ``s3://bucket/prefix``.

    Raises
    ------
    IndexMismatch
        If the folder is a copy, or belongs to another object store, or another index is published there.
    InvalidArgument
        If the index is encrypted: what is published is not.
    MissingExtra, UnreachableStore
        As `RemoteStore`.
    """
    url, known = check_url(url), read_attachment(path)
    if is_encrypted(path) or find_key() is not None:
        raise InvalidArgument(
            f"{path} is encrypted, or would be by the key that {KEY_FILE} or {KEY} names, and nothing published at "
            f"{url} would be; ingest without that key and have the bucket encrypt, or leave --remote out"
        )
    if known is not None:
        if known.replica or known.url != url:
            what = "is a copy of" if known.replica else "is published at"
            raise IndexMismatch(f"the index {path} {what} {known.url}, not {url}; name another folder with --index")
        return
    make_folder(path)
    remote = RemoteStore(url)
    owner = hashlib.sha256(load_or_create_secret(path / "secret")).hexdigest()
    claimed = remote.put_if_absent(_OWNER, [json.dumps({"format": _FORMAT, "owner": owner}).encode()])
    if not claimed and _read_json(remote, _OWNER).get("owner") != owner:
        raise IndexMismatch(f"another index than {path} is published at {url}; name another prefix with --remote")
    TieredStore(LocalStore(path / "kv", durable=False), remote, budget_bytes=0).upload()
    write_attachment(path, Attachment(url))  # last, or its rows would name what is not there


def limit_copies(index: "Index", nbytes: int) -> None:
    """Limit the KV files on this machine of an index whose KV is in an object store; it remembers that.

    Raises
    ------
    InvalidArgument
        If that is not one byte or more.
    """
    attached = read_attachment(index.path)
    if nbytes < 1:
        raise InvalidArgument(f"the KV of an index is limited to one byte or more, not to {nbytes}")
    if attached is not None and isinstance(index.store, TieredStore):
        write_attachment(index.path, replace(attached, max_bytes=nbytes))
        index.store.budget_bytes = nbytes


def publish(path: Path, catalog: Catalog) -> None:
    """Publish a snapshot of an index whose KV is in an object store; of any other, and of a copy, do nothing.

    Raises
    ------
    UnreachableStore
        The object store did not take it; whoever reads goes on with the one before.
    """
    attached = read_attachment(path)
    if attached is None or attached.replica:
        return
    remote = RemoteStore(attached.url)
    with hold_turn(path / "publish.lock"), TemporaryDirectory(prefix=".publish-", dir=path) as place:
        _sweep(path, ".publish-*", Path(place))
        edition = catalog.edition()
        files = _copy_files(path, catalog, Path(place))
        named = {name: {"digest": _digest(file), "bytes": file.stat().st_size} for name, file in files.items()}
        for name, file in files.items():
            target = _FILES + str(named[name]["digest"])
            if remote.head(target) is None:
                remote.put(target, file)
        remote.put(_CURRENT, json.dumps({"format": _FORMAT, "published": time.time(), "files": named}).encode())
        for gone in set(remote.list(_FILES)) - {_FILES + str(one["digest"]) for one in named.values()}:
            remote.delete(gone)  # whoever fetches it just now begins anew
        catalog.set_setting(_PUBLISHED, edition)


def publish_owed(path: Path, catalog: Catalog) -> None:
    """Publish chunks that came or went since the last time, an interrupted command's among them; else do nothing.

    Raises
    ------
    UnreachableStore
        As `publish`.
    """
    if catalog.writable and catalog.setting(_PUBLISHED) != catalog.edition():
        publish(path, catalog)


@contextmanager
def publishing(path: Path, catalog: Catalog) -> Iterator[None]:
    """Publish what is done within; what was removed before an error, now or ever, goes from the object store too."""
    try:
        yield
    except RagCacheError:
        publish_owed(path, catalog)
        raise
    publish(path, catalog)


def local_copy(
    place: str | Path, *, max_bytes: int | None = None, tell: Callable[[str], object] = warnings.warn
) -> Path:
    """The folder to open for what a user calls an index: for a URL that of this machine's copy, brought up to date.

    Parameters
    ----------
    place : str or Path
        A folder, which is given back as it is, or the URL that an index is published at.
    max_bytes : int, optional
        Most that the copy's KV files may take; what it took before by default, or 20 GiB.
    tell : callable
        Told in one sentence where the object store did not answer and the copy may be old.

    Raises
    ------
    InvalidArgument
        If the path is blank.
    EmptyIndex
        If nothing is published there.
    UnreachableStore
        If the object store does not answer, and there is no copy yet.
    """
    check_not_blank(place)
    if "://" not in str(place):
        return Path(place)
    url = check_url(str(place))
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ragcache"
    folder = root / "indexes" / hashlib.sha256(url.encode()).hexdigest()[:16]
    try:
        fetch(url, folder, max_bytes=max_bytes)
    except UnreachableStore as error:
        known = read_attachment(folder)
        if known is None or not known.snapshot:
            raise
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(known.published))
        tell(f"{error}; answering from the copy of {day}")
    return folder


def fetch(url: str, folder: Path, *, max_bytes: int | None = None) -> None:
    """Make a folder the copy of what is published at a URL just now.

    Parameters
    ----------
    url : str
        The object store's.
    folder : Path
        Created if absent; what is there must be a copy of the same.
    max_bytes : int, optional
        Most that its KV files may take.

    Raises
    ------
    EmptyIndex
        If nothing is published there.
    IndexMismatch
        If the folder is something else.
    IndexFormat
        If what is published is damaged, or of a newer version.
    UnreachableStore
        If the object store does not answer; the folder is as it was.
    StorageFull
        If the folder cannot be made, or the disk refuses the files; what was there is as it was.
    """
    try:
        _fetch(url, folder, max_bytes)
    except OSError as error:
        if isinstance(error, RagCacheError):
            raise
        raise StorageFull(
            f"the copy of {url} cannot be written to {folder} ({error.strerror}); free some space, or name another "
            "cache folder in XDG_CACHE_HOME"
        ) from error


def _fetch(url: str, folder: Path, max_bytes: int | None) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    remote, known = RemoteStore(url), read_attachment(folder)
    if (known is None and (folder / "catalog.sqlite").exists()) or (known and (not known.replica or known.url != url)):
        raise IndexMismatch(f"{folder} is no copy of {url}; name another folder")
    with hold_turn(folder / "fetch.lock"):
        _sweep(folder, ".fetch-*")
        known = read_attachment(folder) or Attachment(url, replica=True)
        known = replace(known, max_bytes=known.max_bytes if max_bytes is None else max_bytes)
        write_attachment(folder, known)  # before there is a catalogue, which must not be opened for writing
        for _ in range(_ATTEMPTS):
            manifest = _manifest(remote)
            name = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()[:16]
            if name == known.snapshot:
                return
            with TemporaryDirectory(prefix=".fetch-", dir=folder) as place:
                if _download(remote, manifest["files"], Path(place)):
                    _put_in_place(Path(place), folder, name)
                    _forget_unnamed(folder)
                    write_attachment(folder, replace(known, snapshot=name, published=manifest["published"]))
                    return
    raise UnreachableStore(f"what is published at {url} changed faster than it could be fetched; repeat the command")


def _copy_files(path: Path, catalog: Catalog, place: Path) -> dict[str, Path]:
    """All of an index but its KV, as nobody will change it, by the names that its files have in its folder."""
    catalog.read("VACUUM INTO ?", str(place / "catalog.sqlite"))
    shutil.copyfile(path / "secret", place / "secret")
    if (path / "vectors" / "chroma.sqlite3").is_file():
        from ragcache.retrieve.reading import copy_collection

        with hold_turn(path / "vectors.lock"):  # that of `Vectors`, or another process might be writing
            copy_collection(path / "vectors", place / "vectors")
    return {str(file.relative_to(place)): file for file in sorted(place.rglob("*")) if file.is_file()}


def _manifest(remote: RemoteStore) -> dict[str, Any]:
    found = _read_json(remote, _CURRENT)
    if not found:
        raise EmptyIndex(
            f"nothing is published at {remote.url}; run `ragcache ingest PATH… --remote {remote.url}` where the "
            "documents are"
        )
    if found.get("format") != _FORMAT:
        raise IndexFormat(f"what is published at {remote.url} has another format than {_FORMAT}; upgrade ragcache")
    match found:
        case {"files": dict(files), "published": int() | float()} if all(map(_is_named, files.items())):
            return found
    raise _damaged(remote, _CURRENT, "it does not say which files there are")


def _is_named(file: tuple[str, Any]) -> bool:
    """Whether a snapshot says of a file what is needed to fetch it."""
    name, about = file
    return bool(name) and isinstance(about, dict) and isinstance(about.get("digest"), str)


def _damaged(remote: RemoteStore, name: str, why: Exception | str) -> IndexFormat:
    return IndexFormat(
        f"{name} at {remote.url} is damaged ({why}); delete it there, and run `ragcache ingest --index DIR` "
        "where the index is, which publishes it anew"
    )


def _read_json(remote: RemoteStore, name: str) -> dict[str, Any]:
    content = remote.get(name)
    if content is None:
        return {}
    try:
        return dict(json.loads(content.numpy().tobytes()))
    except ValueError as error:
        raise _damaged(remote, name, error) from error


def _download(remote: RemoteStore, files: dict[str, Any], place: Path) -> bool:
    """Fetch the files of a snapshot; False where one of them is gone by now."""
    for name, about in files.items():
        parts = PurePosixPath(name).parts
        if ".." in parts or parts[0] not in ("catalog.sqlite", "secret", "vectors"):
            raise IndexFormat(f"what is published at {remote.url} names {name[:80]!r}, which is no file of an index")
        content = remote.get(_FILES + str(about["digest"]))
        if content is None:
            return False
        file = place.joinpath(*parts)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.numpy().data)
        if _digest(file) != about["digest"]:
            raise IndexFormat(
                f"{name} at {remote.url} is not what was published; run `ragcache ingest --index DIR` where it was made"
            )
    return True


def _put_in_place(place: Path, folder: Path, name: str) -> None:
    """Let new files take the place of the old ones; the vectors, a folder, by a link to the newest."""
    newest = folder / f"vectors-{name}"
    before = {*folder.glob("vectors-*")} - {(folder / "vectors").resolve(), newest}
    if (place / "vectors").is_dir():
        if not newest.exists():  # or a killed process has put it there, whole
            (place / "vectors").rename(newest)
        link = place / "link"
        link.symlink_to(f"vectors-{name}")
        link.replace(folder / "vectors")
    for file in ("secret", "catalog.sqlite"):
        (place / file).chmod(0o600)
        (place / file).replace(folder / file)
    for old in before:  # but the last one: somebody may be reading it
        shutil.rmtree(old, ignore_errors=True)


def _forget_unnamed(folder: Path) -> None:
    """Delete the KV of a copy that the catalogue does not name any more: it may be that of removed text."""
    with closing(Catalog(folder / "catalog.sqlite", read_only=True)) as catalog:
        named = catalog.keys() | {prefix_key(catalog, folder)}
    store = LocalStore(folder / "kv", durable=False)
    for key in list(store.list()):
        if key not in named:
            store.delete(key)


def _sweep(folder: Path, left: str, but: Path | None = None) -> None:
    """Delete what killed processes have left, which holds text; whoever calls has the turn."""
    for old in folder.glob(left):
        if old != but:
            shutil.rmtree(old, ignore_errors=True)


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
