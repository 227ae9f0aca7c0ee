"""An index as one file, or as a folder of plain files: written while others use the index, and trusted by nobody.

An archive is a tar without compression, or a folder of the same files: a copy of the catalogue, the KV files that it
names, the secret, the vectors as plain numbers, and last a manifest with size and checksum of each. Nothing of one is
visible as an index before all of it was checked.
"""

import json
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from shlex import quote
from typing import IO, Any

import numpy as np
import xxhash

from ragcache.errors import IndexFormat, InvalidArgument, KeyMismatch, RagCacheError, StorageFull, remedy
from ragcache.index.reconcile import prefix_key
from ragcache.index.settings import find_catalog, looking
from ragcache.index.verify import verify
from ragcache.report import Progress, ignore_progress
from ragcache.store import Catalog, LocalStore
from ragcache.store.encryption import MARK
from ragcache.store.publish import sync_folder

FORMAT = 1
_MANIFEST, _VECTORS, _CATALOG = "manifest.json", "vectors.f32", "catalog.sqlite"
_NAMES = re.compile(
    rf"{re.escape(_CATALOG)}|secret|{re.escape(MARK)}|{re.escape(_VECTORS)}|{re.escape(_MANIFEST)}"
    r"|kv/(?P<shard>[0-9a-f]{2})/(?P=shard)[0-9a-f]{62}\.safetensors"
)
_MANIFEST_BYTES = 1 << 28
_AT_ONCE = 1 << 22

#: Gives the name, size and content of every member of an archive, one after the other.
_Members = Iterator[tuple[str, int, IO[bytes]]]


@dataclass(frozen=True)
class Transfer:
    """What was exported or imported.

    Attributes
    ----------
    path, archive : str
        The index's folder, and the archive.
    documents, chunks, blobs, vectors : int
        How many of each the archive has.
    bytes : int
        Of all its files.
    missing : int
        KV files that the catalogue named and that were gone; they are made anew by the next ingestion.
    """

    path: str
    archive: str
    documents: int
    chunks: int
    blobs: int
    vectors: int
    bytes: int
    missing: int = 0


def export_index(path: str | Path, archive: str | Path, progress: Progress = ignore_progress) -> Transfer:
    """Write an index into an archive, as it is at one moment, whatever others write meanwhile. No model is loaded.

    Parameters
    ----------
    path : str or Path
        The index's folder.
    archive : str or Path
        What to make: a tar file if its name ends in ``.tar``, else a folder. For its owner only, and as sensitive as
        the documents; that of an encrypted index is encrypted by the same key.
    progress : callable
        Told `(stage, done, total)`.

    Raises
    ------
    EmptyIndex
        If there is no index.
    InvalidArgument
        If the archive exists already.
    StorageFull
        If the disk refused; nothing is left of the archive.
    """
    path, archive = Path(path), Path(archive)
    file = find_catalog(path)
    with _beside(archive):
        if archive.exists():
            raise InvalidArgument(f"{archive} exists already; name a file or folder that does not.")
    with _staged(archive) as place, closing(Catalog(file, read_only=True)) as catalog:
        snapshot, written = _snapshot(catalog, path, place / "snapshot"), place / "archive"
        with closing(snapshot), _writer(written, tar=archive.suffix == ".tar") as add:
            report = _write_all(path, archive, snapshot, add, progress)
        _publish(written, archive)
    return report


def _snapshot(catalog: Catalog, path: Path, folder: Path) -> Catalog:
    """The catalogue as it is now, in a folder of its own, without words of removed text."""
    folder.mkdir(mode=0o700)
    if (path / MARK).exists():
        shutil.copyfile(path / MARK, folder / MARK)
    catalog.copy_to(folder / _CATALOG)
    snapshot = Catalog(folder / _CATALOG)
    snapshot.forget_words()
    shutil.copyfile(path / "secret", folder / "secret")
    return snapshot


def _write_all(
    path: Path, archive: Path, snapshot: Catalog, add: Callable[[str, IO[bytes]], tuple[int, str]], progress: Progress
) -> Transfer:
    files: dict[str, tuple[int, str]] = {}
    store, folder = LocalStore(path / "kv", read_only=True), snapshot.path.parent
    keys = sorted(snapshot.keys() | {prefix_key(snapshot, folder)})
    gone = []
    for done, key in enumerate(keys, 1):
        file = store.path_of(key)
        try:
            with file.open("rb") as content:
                files[file.relative_to(path).as_posix()] = add(file.relative_to(path).as_posix(), content)
        except FileNotFoundError:  # evicted or removed since the catalogue was copied, or never made
            gone.append(key)
        progress("KV files", done, len(keys))
    named = snapshot.keys()
    missing = [key for key in gone if key in named]
    snapshot.drop_key(*missing)
    stored = _vectors_of(path, [chunk for chunk, _ in snapshot.places()])
    counted = snapshot.stats()
    snapshot.close()
    rows = np.stack(list(stored.values())).astype("<f4") if stored else np.empty((0, 0), "<f4")
    files[_VECTORS] = add(_VECTORS, BytesIO(rows.tobytes()))
    for name in (_CATALOG, "secret", MARK):
        if (folder / name).exists():
            with (folder / name).open("rb") as content:
                files[name] = add(name, content)
    manifest = {"format": FORMAT, "files": files, "vectors": {"ids": list(stored), "size": rows.shape[1]}}
    add(_MANIFEST, BytesIO(json.dumps(manifest).encode()))
    return Transfer(
        str(path), str(archive), counted["documents"], counted["chunks"], len(keys) - len(gone), len(stored),
        sum(size for size, _ in files.values()), len(missing),
    )  # fmt: skip


def _vectors_of(path: Path, chunks: list[str]) -> Mapping[str, Any]:
    """The vectors of some chunks; what has none yet is embedded by the next ingestion."""
    from ragcache.retrieve.vectors import Vectors

    folder = path / "vectors"
    if not chunks or not (folder / "chroma.sqlite3").is_file():
        return {}
    with closing(Vectors(folder, "chunks")) as vectors:
        return vectors.stored(chunks)


def import_index(archive: str | Path, path: str | Path, progress: Progress = ignore_progress) -> Transfer:
    """Make an index of an archive, all of which is checked first. No model is loaded.

    Parameters
    ----------
    archive : str or Path
        What `export_index` made, or what somebody says it did.
    path : str or Path
        The folder to make; it must not exist, or be empty.
    progress : callable
        Told `(stage, done, total)`.

    Raises
    ------
    IndexFormat
        If it is no archive, or anything in it fails a check: names, kinds and sizes of files, their checksums, the
        catalogue's rows and triggers, every KV by its key, and that the three agree. Nothing is left of it then.
    InvalidArgument
        If there is no archive, or there is an index, or something else, already.
    KeyMismatch
        If it is encrypted by another key than the environment names.
    StorageFull
        If the disk has no room.
    """
    archive, path = Path(archive), Path(path)
    if not os.access(archive, os.R_OK):
        raise InvalidArgument(
            f"there is no archive {archive} that this account may read; `ragcache store export {quote(str(archive))}` "
            "makes one."
        )
    check_free(path, "--index")
    with _staged(path) as place:
        folder = place / "index"
        folder.mkdir(mode=0o700)
        with _members_of(archive) as (members, total):
            manifest, files = _receive(members, folder, total, progress, archive)
        _check_manifest(manifest, files, archive)
        missing = _check_content(folder, manifest, archive, progress)
        _publish(folder, path)
    blobs, vectors = sum(name.startswith("kv/") for name in files), len(manifest["vectors"]["ids"])
    nbytes = sum(size for size, _ in files.values())
    return Transfer(str(path), str(archive), *missing[:2], blobs, vectors, nbytes, missing[2])


def check_free(path: Path, argument: str) -> None:
    """Refuse a place for a new index where something is.

    Parameters
    ----------
    path : Path
        The place.
    argument : str
        What another is to be given as.

    Raises
    ------
    InvalidArgument
        If it exists and is no empty folder.
    UnusableIndex
        If this account may not look.
    """
    with looking(path):
        if path.is_symlink() or (path.exists() and not (path.is_dir() and not any(path.iterdir()))):
            raise InvalidArgument(f"{path} exists already; name a folder that does not with {argument}.")


def _receive(
    members: _Members, folder: Path, total: int, progress: Progress, archive: Path
) -> tuple[dict[str, Any], dict[str, tuple[int, str]]]:
    """Write what has a name of ours into a folder, each file once; the manifest, and what the others are."""
    files: dict[str, tuple[int, str]] = {}
    manifest: bytes | None = None
    done = 0
    for name, size, content in members:
        if not _NAMES.fullmatch(name) or name in files or (name == _MANIFEST and manifest is not None):
            raise _refused(archive, f"{name!a:.100} is no file of an index, or is there twice")
        done += size
        if done > total:
            raise _refused(archive, f"its files take more than its own {total:,} bytes")
        if name == _MANIFEST:
            if size > _MANIFEST_BYTES:
                raise _refused(archive, f"its manifest has {size:,} bytes, and at most {_MANIFEST_BYTES:,} are read")
            manifest = content.read(size)
        else:
            files[name] = _write_file(folder / name, content)
            if files[name][0] != size:
                raise _refused(archive, f"{name} has {files[name][0]:,} bytes instead of {size:,}")
        progress("files", done, total)
    try:
        return dict(json.loads(manifest or b"")), files
    except (ValueError, TypeError, RecursionError) as error:
        raise _refused(archive, "it has no manifest, so it was cut off or is no archive") from error


def _check_manifest(manifest: dict[str, Any], files: dict[str, tuple[int, str]], archive: Path) -> None:
    if manifest.get("format") != FORMAT:
        raise _refused(archive, f"its format is {manifest.get('format')!a:.20}, and this version reads {FORMAT}")
    listed = manifest.get("files")
    if not isinstance(listed, dict):
        raise _refused(archive, "its manifest lists no files")
    for name in sorted({*listed, *files, _CATALOG, "secret", _VECTORS}):
        if name not in files or listed.get(name) != list(files[name]):
            raise _refused(archive, f"{name!a:.100} is missing, or is not what the manifest says")


def _check_content(folder: Path, manifest: dict[str, Any], archive: Path, progress: Progress) -> tuple[int, int, int]:
    """Check an index as a whole; how many documents and chunks it has, and how many KV files it lacks."""
    try:
        _check_schema(folder)
        _write_vectors(folder, manifest["vectors"])
        found = verify(folder, progress=progress)
    except KeyMismatch as error:
        raise KeyMismatch(str(error).replace(str(folder), str(archive))) from error
    except (RagCacheError, ValueError, KeyError, TypeError, OSError) as error:
        raise _refused(archive, str(error).replace(str(folder), "the index in it")) from error
    apart = found.differences
    blobs = [f"the KV file {one.key[:12]} ({one.reason})" for one in found.bad_blobs]
    stray = [f"the KV file {key[:12]}, which nothing names" for key in apart.orphan_blobs]
    vectors = [f"the vector {name!a:.80}" for name in (*found.bad_vectors, *apart.stray_vectors)]
    if wrong := [*found.files, *found.damaged_rows, *blobs, *stray, *vectors]:
        raise _refused(archive, f"{len(wrong):,} of its parts fail their checks, {wrong[0]} first")
    return found.documents, found.chunks, len(apart.missing_blobs)


def _check_schema(folder: Path) -> None:
    """Refuse a catalogue that does anything by itself that ours does not, or has chunks of no document."""
    query = "SELECT type, name, sql FROM sqlite_master WHERE type IN ('trigger', 'view')"
    with tempfile.TemporaryDirectory() as other, closing(Catalog(folder / _CATALOG)) as catalog:
        if (folder / MARK).exists():
            shutil.copyfile(folder / MARK, Path(other) / MARK)
        with closing(Catalog(Path(other) / _CATALOG)) as ours:
            if set(catalog.read(query)) != set(ours.read(query)):
                raise IndexFormat("the catalogue has triggers or views that are not ours")
        if catalog.read("PRAGMA foreign_key_check"):
            raise IndexFormat("the catalogue has chunks of no document, or KV of no chunk")


def _write_vectors(folder: Path, about: Mapping[str, Any]) -> None:
    from ragcache.retrieve.vectors import Vectors

    ids, size = list(map(str, about["ids"])), int(about["size"])
    rows = np.frombuffer((folder / _VECTORS).read_bytes(), "<f4")
    if len(set(ids)) != len(ids) or size < 0 or len(rows) != len(ids) * size or not np.isfinite(rows).all():
        raise ValueError(f"{_VECTORS} does not hold {len(ids):,} vectors of {size:,} numbers")
    if ids:
        with closing(Vectors(folder / "vectors", "chunks")) as vectors:
            vectors.upsert(ids, rows.reshape(len(ids), size))
    (folder / _VECTORS).unlink()


# -- files


@contextmanager
def _staged(target: Path) -> Iterator[Path]:
    """A folder beside what is to be made, which is gone at the end."""
    with _beside(target):
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix=f".{target.name[:60]}-", dir=target.absolute().parent))
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)


@contextmanager
def _beside(target: Path) -> Iterator[None]:
    """Say in our words what the disk refuses of what is to be made."""
    try:
        yield
    except RagCacheError:
        raise
    except OSError as error:
        raise StorageFull(
            f"the disk refused a write beside {target} ({error.strerror or error}); {remedy(error)}."
        ) from error


@contextmanager
def _writer(path: Path, *, tar: bool) -> Iterator[Callable[[str, IO[bytes]], tuple[int, str]]]:
    """Adds a member by its name and content, and tells its size and checksum."""
    if not tar:
        path.mkdir(mode=0o700)
        yield lambda name, content: _write_file(path / name, content)
        return
    with open(path, "xb", opener=_private) as file:
        with tarfile.open(fileobj=file, mode="w:", format=tarfile.PAX_FORMAT) as archive:
            yield lambda name, content: _add_member(archive, name, content)
        file.flush()
        os.fsync(file.fileno())


def _add_member(archive: tarfile.TarFile, name: str, content: IO[bytes]) -> tuple[int, str]:
    member, hashed = tarfile.TarInfo(name), _Hashed(content)
    member.size, member.mode = content.seek(0, os.SEEK_END), 0o600
    content.seek(0)
    archive.addfile(member, hashed)
    return member.size, hashed.digest.hexdigest()


class _Hashed:
    """A file whose checksum is known once it was read."""

    def __init__(self, content: IO[bytes]) -> None:
        self.digest = xxhash.xxh3_128()
        self._content = content

    def read(self, count: int = -1) -> bytes:
        data = self._content.read(count)
        self.digest.update(data)
        return data


def _write_file(path: Path, content: IO[bytes]) -> tuple[int, str]:
    """Copy a file durably; its size and checksum."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    hashed = _Hashed(content)
    with open(path, "xb", opener=_private) as file:
        shutil.copyfileobj(hashed, file, _AT_ONCE)
        file.flush()
        os.fsync(file.fileno())
        return file.tell(), hashed.digest.hexdigest()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _publish(made: Path, path: Path) -> None:
    """Give what was made its name, which nobody holds."""
    for folder in [made, *made.rglob("*")] if made.is_dir() else []:
        if folder.is_dir():
            sync_folder(folder)
    with suppress(FileNotFoundError):
        path.rmdir()  # an empty one
    if path.exists():
        raise InvalidArgument(f"{path} was made meanwhile; name another.")
    made.rename(path)
    sync_folder(path.absolute().parent)


@contextmanager
def _members_of(archive: Path) -> Iterator[tuple[_Members, int]]:
    """What an archive holds, and the bytes that it takes; what is no plain file is refused."""
    if archive.is_dir():
        files = sorted(archive.rglob("*"), key=lambda file: file.relative_to(archive).as_posix())
        yield _members_of_folder(archive, files), sum(file.lstat().st_size for file in files)
        return
    try:
        with tarfile.open(archive, mode="r:") as tar:
            yield _members_of_tar(archive, tar), archive.stat().st_size
    except tarfile.TarError as error:
        raise _refused(archive, f"it is no plain tar file, or was cut off ({error})") from error


def _members_of_tar(archive: Path, tar: tarfile.TarFile) -> _Members:
    for member in tar:
        content = tar.extractfile(member) if member.isreg() and not member.issparse() else None
        if content is None:
            raise _refused(archive, f"{member.name!a:.100} is a link, a folder, a device or has holes")
        yield member.name, member.size, content


def _members_of_folder(archive: Path, files: list[Path]) -> _Members:
    for file in files:
        name = file.relative_to(archive).as_posix()
        if file.is_symlink() or not (file.is_dir() or file.is_file()):
            raise _refused(archive, f"{name!a:.100} is a link or a device")
        if file.is_file():
            with open(file, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW)) as content:
                yield name, os.fstat(content.fileno()).st_size, content


def _refused(archive: Path, what: str) -> IndexFormat:
    return IndexFormat(
        f"{archive} cannot be imported: {what}; export the index again, by `ragcache store export FILE.tar`, and copy "
        "it whole."
    )
