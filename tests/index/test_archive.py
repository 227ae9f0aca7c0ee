"""Export, import and move: a copy is whole, what is hostile or damaged leaves nothing, and what is in use stays."""

import errno
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xxhash
from conftest import tiny_reader
from faults.small import Letters, write_pages
from typer.testing import CliRunner

from ragcache import RagCache, Sampling
from ragcache.errors import EmptyIndex, IndexFormat, InvalidArgument, KeyMismatch, StorageFull, UnusableIndex
from ragcache.index.archive import export_index, import_index
from ragcache.index.move import move_index
from ragcache.index.reconcile import Differences
from ragcache.index.verify import verify
from ragcache.store import Catalog

QUESTION = "Who designed the bridge?"
SHORT = Sampling(max_new_tokens=2)


def open_index(path: Path) -> RagCache:
    return RagCache.open(path, model=tiny_reader(), embedder=Letters())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index that nobody changes."""
    folder = tmp_path_factory.mktemp("made")
    with open_index(folder / "index") as rag:
        rag.ingest(write_pages(folder / "files"))
    return folder / "index"


@pytest.fixture
def index(made: Path, tmp_path: Path) -> Path:
    """An index of one's own."""
    return Path(shutil.copytree(made, tmp_path / "index"))


@pytest.fixture(scope="module")
def archive(made: Path) -> Path:
    export_index(made, made.parent / "index.tar")
    return made.parent / "index.tar"


def answer(path: Path) -> tuple[str, set[str]]:
    with open_index(path) as rag:
        found = rag.ask(QUESTION, sampling=SHORT)
        return found.text, {chunk.cache for chunk in found.report.chunks}


@pytest.mark.parametrize("name", ["copy.tar", "copy"])
def test_an_imported_index_answers_from_the_same_kv(made: Path, tmp_path: Path, name: str) -> None:
    exported = export_index(made, tmp_path / name)
    (tmp_path / "new").mkdir()  # an empty folder is free
    imported = import_index(tmp_path / name, tmp_path / "new")
    assert verify(tmp_path / "new").sound
    assert (imported.documents, imported.chunks, imported.vectors, imported.missing) == (3, 3, 3, 0)
    assert imported.blobs == exported.blobs == 4
    assert imported.bytes == exported.bytes
    text, caches = answer(tmp_path / "new")
    assert caches <= {"hit", "exact"}
    assert text == answer(Path(shutil.copytree(made, tmp_path / "index")))[0]
    assert {path.name for path in tmp_path.iterdir()} == {name, "new", "index"}, "or something was left"
    kept = [path for path in (tmp_path / "new").rglob("*") if path.is_file() and "vectors" not in path.parts]
    assert {path.stat().st_mode & 0o77 for path in kept} == {0}


def test_an_encrypted_index_stays_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cryptography")
    pytest.importorskip("sqlcipher3")
    monkeypatch.setenv("RAGCACHE_KEY", "0f" * 32)
    with open_index(tmp_path / "index") as rag:
        rag.ingest(write_pages(tmp_path / "files"))
        export_index(tmp_path / "index", tmp_path / "copy.tar")
    assert b"bridge" not in (tmp_path / "copy.tar").read_bytes()
    import_index(tmp_path / "copy.tar", tmp_path / "new")
    assert verify(tmp_path / "new").sound
    assert answer(tmp_path / "new")[1] <= {"hit", "exact"}
    move_index(tmp_path / "new", tmp_path / "moved")
    assert verify(tmp_path / "moved").sound
    for key in ("f0" * 32, ""):
        monkeypatch.setenv("RAGCACHE_KEY", key)
        with pytest.raises(KeyMismatch, match="is encrypted"):
            import_index(tmp_path / "copy.tar", tmp_path / "other")
        assert not (tmp_path / "other").exists()


WRITER = """
import sys, time
from contextlib import closing
from pathlib import Path
from ragcache.store import Catalog, ChunkRow, DocumentRow, EncodingRow, Forgotten, KeyMaker, LocalStore, pack, unpack
from dataclasses import replace
path = Path(sys.argv[1])
store = LocalStore(path / "kv")
with closing(Catalog(path / "catalog.sqlite")) as catalog:
    keys, forgotten = KeyMaker.of(catalog, path), Forgotten(catalog, store)
    first = catalog.all_chunks()[0]
    row = catalog.encodings(first.id, catalog.recipes()[0])[0]
    blob = unpack(store.get(row.key), row.key)
    for number in range(100_000):
        name = f"page{number % 4}"
        ids = (*first.token_ids[:-1], number)
        key = keys.make(row.recipe, row.left, ids)
        catalog.put_document(DocumentRow(name, name, str(number), {}),
                             [ChunkRow(f"{name}-{number}", name, 0, f"The ferry left {number} times.", ids, 0, 9)])
        forgotten.delete()
        store.put_if_absent(key, pack(replace(blob, key=key, token_ids=ids)))
        catalog.put_standing([replace(row, chunk=f"{name}-{number}", key=key)], lambda key: store.head(key) is not None)
        catalog.remove_document(f"page{(number + 2) % 4}")
        forgotten.delete()
        print(number, flush=True)
"""


def test_an_export_while_another_process_writes_is_of_one_moment(index: Path, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, str(index)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        try:
            for number in range(2):
                before = int(writer.stdout.readline())
                export_index(index, tmp_path / f"{number}.tar")
                os.set_blocking(writer.stdout.fileno(), False)
                written = writer.stdout.read().split()
                assert written, f"or nobody wrote after {before}"
                os.set_blocking(writer.stdout.fileno(), True)
        finally:
            writer.kill()
    for number in range(2):
        imported = import_index(tmp_path / f"{number}.tar", tmp_path / f"new{number}")
        found = verify(tmp_path / f"new{number}")
        assert found.damaged_rows == found.bad_blobs == ()
        assert replace(found.differences, missing_vectors=()) == Differences()
        assert imported.documents > 3


def test_kv_that_goes_while_it_is_exported_is_made_anew(index: Path, tmp_path: Path) -> None:
    with closing(Catalog(index / "catalog.sqlite")) as catalog:
        key = min(catalog.keys())
    (index / "kv" / key[:2] / f"{key}.safetensors").unlink()
    assert export_index(index, tmp_path / "copy.tar").missing == 1
    import_index(tmp_path / "copy.tar", tmp_path / "new")
    with open_index(tmp_path / "new") as rag:
        assert sum(rag.ingest().encoded.values()) == 1
    assert verify(tmp_path / "new").sound


def test_removed_text_is_not_exported(index: Path, tmp_path: Path) -> None:
    with open_index(index) as rag:
        rag.forget(next(one.source for one in rag.documents() if one.source.endswith("mill.md")))
        export_index(index, tmp_path / "copy")
    files = [path.read_bytes().lower() for path in (tmp_path / "copy").rglob("*") if path.is_file()]
    assert any(b"bridge" in data for data in files)
    assert not any(word in data for word in (b"mondays", b"grinds") for data in files)


# -- hostile archives


def members(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {one.name: tar.extractfile(one).read() for one in tar}  # type: ignore[union-attr]


def write_tar(path: Path, contents: dict[str, bytes], *, more: tuple[tarfile.TarInfo, ...] = ()) -> Path:
    with tarfile.open(path, "w") as tar:
        for one in more:
            tar.addfile(one, io.BytesIO(b"x" * one.size))
        for name, data in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def reseal(contents: dict[str, bytes], **about: object) -> dict[str, bytes]:
    """The same with a manifest that fits: what somebody writes who knows the format."""
    manifest = json.loads(contents.pop("manifest.json")) | about
    files = {name: (len(data), xxhash.xxh3_128(data).hexdigest()) for name, data in contents.items()}
    return contents | {"manifest.json": json.dumps(manifest | {"files": files}).encode()}


def special(name: str, kind: bytes, target: str = "", size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, target, size
    return info


def refuse(path: Path, tmp_path: Path, message: str) -> None:
    before = set(tmp_path.rglob("*"))
    with pytest.raises(IndexFormat, match=message):
        import_index(path, tmp_path / "new")
    assert set(tmp_path.rglob("*")) == before, "something of it was left"


KEY = "ab" * 32
OUTSIDE = "is no file of an index, or is there twice"
NO_FILE = "is a link, a folder, a device or has holes"


@pytest.mark.parametrize(
    ("info", "message"),
    [
        (special("../evil", tarfile.REGTYPE, size=3), OUTSIDE),
        (special("/evil", tarfile.REGTYPE, size=3), OUTSIDE),
        (special("kv/../../evil", tarfile.REGTYPE, size=3), OUTSIDE),
        (special(f"kv/aa/{KEY}.safetensors", tarfile.REGTYPE, size=3), OUTSIDE),
        (special("./secret", tarfile.REGTYPE, size=3), OUTSIDE),
        (special("secret\n", tarfile.REGTYPE, size=3), OUTSIDE),
        (special("catalog.sqlite-wal", tarfile.REGTYPE, size=3), OUTSIDE),
        (special("encoding.lock", tarfile.REGTYPE, size=3), OUTSIDE),
        (special("secret", tarfile.REGTYPE, size=32), OUTSIDE),
        (special("secret", tarfile.SYMTYPE, "/etc/passwd"), NO_FILE),
        (special("secret", tarfile.LNKTYPE, "/etc/passwd"), NO_FILE),
        (special("kv", tarfile.SYMTYPE, "/tmp"), NO_FILE),
        (special("kv", tarfile.DIRTYPE), NO_FILE),
        (special("secret", tarfile.FIFOTYPE), NO_FILE),
        (special("secret", tarfile.CHRTYPE), NO_FILE),
    ],
)
def test_names_and_kinds_that_are_not_ours_are_refused(archive: Path, tmp_path: Path, info, message: str) -> None:
    refuse(write_tar(tmp_path / "evil.tar", members(archive), more=(info,)), tmp_path, message)


def cut(at: float) -> Callable[[bytes], bytes]:
    return lambda data: data[: int(len(data) * at)]


def flip(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def flip_largest(data: bytes) -> bytes:
    """Within its content: what fills a tar file up behind a member says nothing."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        largest = max(tar.getmembers(), key=lambda member: member.size)
    return flip(data, largest.offset_data + largest.size // 2)


@pytest.mark.parametrize(
    "change",
    [cut(0), cut(0.3), cut(0.9), lambda data: data[:512], lambda data: flip(data, 1000), lambda data: b"PK" + data,
     flip_largest],
)  # fmt: skip
def test_what_was_cut_off_or_changed_is_refused(archive: Path, tmp_path: Path, change) -> None:
    (tmp_path / "cut.tar").write_bytes(change(archive.read_bytes()))
    refuse(tmp_path / "cut.tar", tmp_path, "cannot be imported")


def test_a_compressed_archive_is_refused(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "bomb.tar", "w:gz") as tar:
        tar.addfile(special("secret", tarfile.REGTYPE, size=1 << 24), io.BytesIO(bytes(1 << 24)))
    refuse(tmp_path / "bomb.tar", tmp_path, "no plain tar file")


def test_a_member_that_claims_more_than_there_is_is_refused(archive: Path, tmp_path: Path) -> None:
    header = special("catalog.sqlite", tarfile.REGTYPE, size=1 << 50).tobuf(tarfile.GNU_FORMAT)
    (tmp_path / "bomb.tar").write_bytes(header + bytes(4096))
    refuse(tmp_path / "bomb.tar", tmp_path, "its files take more than its own")


def test_a_hole_is_refused(tmp_path: Path) -> None:
    header = special("catalog.sqlite", tarfile.GNUTYPE_SPARSE, size=512)
    data = bytearray(header.tobuf(tarfile.GNU_FORMAT))
    data[386:398], data[398:410], data[483:495] = b"%011o\0" % 0, b"%011o\0" % 512, b"%011o\0" % (1 << 32)
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data)
    (tmp_path / "sparse.tar").write_bytes(bytes(data) + bytes(512) + bytes(1024))
    refuse(tmp_path / "sparse.tar", tmp_path, NO_FILE)


@pytest.mark.parametrize("kind", ["link", "folder link", "fifo", "stranger"])
def test_a_folder_with_anything_else_is_refused(archive: Path, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "copy"
    for name, data in members(archive).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    if kind == "link":
        (folder / "secret").rename(tmp_path / "secret")
        (folder / "secret").symlink_to(tmp_path / "secret")
    elif kind == "folder link":
        (folder / "kv").rename(tmp_path / "kv")
        (folder / "kv").symlink_to(tmp_path / "kv")
    elif kind == "fifo":
        os.mkfifo(folder / "pipe")
    else:
        (folder / "notes.txt").write_text("x")
    refuse(folder, tmp_path, OUTSIDE if kind == "stranger" else "is a link or a device")


def swap_kv(contents: dict[str, bytes]) -> dict[str, bytes]:
    one, other = sorted(name for name in contents if name.startswith("kv/"))[:2]
    contents[one], contents[other] = contents[other], contents[one]
    return contents


def edit_catalog(contents: dict[str, bytes], statement: str) -> dict[str, bytes]:
    import sqlite3
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "catalog.sqlite"
        file.write_bytes(contents["catalog.sqlite"])
        with closing(sqlite3.connect(file)) as database:
            database.execute(statement)
            database.commit()
        contents["catalog.sqlite"] = file.read_bytes()
    return contents


def change_vector(contents: dict[str, bytes], factor: float) -> dict[str, bytes]:
    rows = np.frombuffer(contents["vectors.f32"], "<f4") * np.float32(factor)
    return contents | {"vectors.f32": rows.tobytes()}


def add_kv(contents: dict[str, bytes]) -> dict[str, bytes]:
    first = next(name for name in contents if name.startswith("kv/"))
    return contents | {f"kv/ab/{KEY}.safetensors": contents[first]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (swap_kv, "2 of its parts fail their checks, the KV file"),
        (add_kv, "parts fail their checks, the KV file ab"),
        (
            lambda contents: edit_catalog(contents, "UPDATE chunks SET text = 'Nobody designed it.'"),
            r"the chunk .* first",
        ),
        (lambda contents: edit_catalog(contents, "DELETE FROM documents"), "has chunks of no document"),
        (
            lambda contents: edit_catalog(
                contents, "CREATE TRIGGER mine AFTER INSERT ON chunks BEGIN DELETE FROM documents; END"
            ),
            "triggers or views that are not ours",
        ),
        (lambda contents: contents | {"catalog.sqlite": b"SQLite format 3\0" + bytes(4080)}, "cannot be imported"),
        (lambda contents: contents | {"secret": bytes(32)}, r"the secret .* is another one"),
        (lambda contents: contents | {"secret": b""}, r"the secret .* has 0 bytes"),
        (lambda contents: contents | {"vectors.f32": b""}, r"does not hold 3 vectors of 7 numbers"),
        (lambda contents: change_vector(contents, np.nan), "does not hold 3 vectors"),
        (lambda contents: {name: data for name, data in contents.items() if name != "secret"}, "'secret' is missing"),
    ],
)
def test_an_archive_by_one_who_knows_the_format_is_refused(archive: Path, tmp_path: Path, change, message: str) -> None:
    refuse(write_tar(tmp_path / "evil.tar", reseal(change(members(archive)))), tmp_path, message)


@pytest.mark.parametrize(
    "about",
    [{"format": 2}, {"vectors": 5}, {"vectors": {"ids": ["a", "a", "b"], "size": 7}},
     {"vectors": {"ids": ["x", "y", "z"], "size": 7}}, {"vectors": {"ids": [], "size": -1}}],
)  # fmt: skip
def test_a_manifest_that_says_something_else_is_refused(archive: Path, tmp_path: Path, about) -> None:
    contents = reseal(members(archive), **about)
    refuse(write_tar(tmp_path / "evil.tar", contents), tmp_path, "cannot be imported")


@pytest.mark.parametrize("manifest", [b"", b"[]", b"5", b"{", b"[" * 100_000, b'{"format": 1}', b"\xff"])
def test_a_manifest_that_is_none_is_refused(archive: Path, tmp_path: Path, manifest: bytes) -> None:
    contents = members(archive) | {"manifest.json": manifest}
    refuse(write_tar(tmp_path / "evil.tar", contents), tmp_path, "cannot be imported")


def test_what_is_there_is_never_replaced(made: Path, archive: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    for place in (made, tmp_path / "mine", tmp_path):
        with pytest.raises(InvalidArgument, match="exists already"):
            import_index(archive, place)
        with pytest.raises(InvalidArgument, match="exists already"):
            export_index(made, place)
    with pytest.raises(InvalidArgument, match="there is no archive"):
        import_index(tmp_path / "none.tar", tmp_path / "new")
    with pytest.raises(EmptyIndex):
        export_index(tmp_path, tmp_path / "copy.tar")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]


# -- move


@pytest.mark.parametrize("far", [False, True])
def test_a_moved_index_answers_as_before(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, far) -> None:
    before = answer(index)
    rename = Path.rename

    def refuse_far(self: Path, target: Path) -> Path:
        if far and self == index:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse_far)
    assert move_index(index, tmp_path / "deep" / "moved") == tmp_path / "deep" / "moved"
    assert not index.exists()
    assert list((tmp_path / "deep").iterdir()) == [tmp_path / "deep" / "moved"]
    assert verify(tmp_path / "deep" / "moved").sound
    assert answer(tmp_path / "deep" / "moved") == before


def test_an_index_that_is_open_is_not_moved(index: Path, tmp_path: Path) -> None:
    with open_index(index), pytest.raises(UnusableIndex, match="is open in another process"):
        move_index(index, tmp_path / "moved")
    assert not (tmp_path / "moved").exists()
    move_index(index, tmp_path / "moved")
    assert verify(tmp_path / "moved").sound


def test_a_copy_that_fails_leaves_the_index_where_it_was(index: Path, tmp_path: Path, monkeypatch) -> None:
    def refuse(self: Path, target: Path) -> Path:
        raise OSError(errno.EXDEV, "")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OSError, match="the index is where it was"):
        move_index(index, tmp_path / "moved")
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    assert verify(index).sound
    with pytest.raises(InvalidArgument, match="lies in the index"):
        move_index(index, index / "within")


def test_a_move_that_cannot_clear_the_old_place_says_where_the_index_is(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, rmtree = Path.rename, shutil.rmtree

    def refuse_far(self: Path, target: Path) -> Path:
        if self == index:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return rename(self, target)

    def refuse_old(path: Path, *rest: object, **how: object) -> None:
        if path == index:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        rmtree(path, *rest, **how)

    monkeypatch.setattr(Path, "rename", refuse_far)
    monkeypatch.setattr(shutil, "rmtree", refuse_old)
    with pytest.raises(StorageFull, match=r"is in .*moved now.*delete what is left in .*index"):
        move_index(index, tmp_path / "moved")
    assert verify(tmp_path / "moved").sound


def test_the_commands_report_in_json(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragcache_cli.main import app

    def run(*words: str) -> dict[str, object]:
        done = CliRunner().invoke(app, ["store", *words, "--json"])
        assert done.exit_code == 0, done.output
        return dict(json.loads(done.stdout))

    monkeypatch.chdir(tmp_path)
    assert run("export", "copy.tar", "--index", str(index))["blobs"] == 4
    assert run("import", "copy.tar", "--index", "new")["chunks"] == 3
    assert run("move", "moved", "--index", "new") == {"path": "new", "to": "moved"}
    assert run("verify", "--index", "moved")["sound"] is True
