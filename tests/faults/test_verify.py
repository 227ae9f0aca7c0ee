"""`ragcache store verify`: every kind of damage is named, what fails is moved aside, and what it advises mends it."""

import json
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from conftest import tiny_reader
from faults.small import Letters
from faults.test_catalog_damage import ABOUT_KV, CHANGES, damage_file
from typer.testing import CliRunner

from ragcache import RagCache
from ragcache.errors import EmptyIndex, StorageFull
from ragcache.index.reconcile import prefix_key
from ragcache.index.upkeep import collect_garbage
from ragcache.index.verify import StoreReport, summarise, verify
from ragcache.retrieve import Vectors
from ragcache.store import Catalog


@pytest.fixture
def path(rag: RagCache) -> Path:
    """Of an index that nobody has open."""
    rag.close()
    return rag.index.path


def blobs(path: Path) -> list[Path]:
    """The KV files of chunks, and last that of the system prefix, which no row names."""
    with closing(Catalog(path / "catalog.sqlite")) as catalog:
        prefix = prefix_key(catalog, path)
    return sorted(path.glob("kv/??/*.safetensors"), key=lambda file: (file.stem == prefix, file))


def flip(file: Path, place: int = 1000) -> None:
    data = bytearray(file.read_bytes())
    data[place] ^= 4
    file.write_bytes(data)


def swap(path: Path) -> None:
    one, other = blobs(path)[:2]
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def drop_vector(path: Path) -> None:
    vectors = Vectors(path / "vectors", "chunks")
    vectors.delete(vectors.ids()[:1])
    vectors.close()


def add_vector(path: Path) -> None:
    vectors = Vectors(path / "vectors", "chunks")
    vectors.upsert(["nobody's"], vectors.embeddings(vectors.ids()[:1]))
    vectors.close()


def add_orphan(path: Path) -> None:
    first = blobs(path)[0]
    (first.parent / f"{first.name[:2]}{62 * 'e'}.safetensors").write_bytes(first.read_bytes())


#: What is done to an index, and what of the report names it.
DAMAGE: dict[str, tuple[Callable[[Path], object], Callable[[StoreReport], int]]] = {
    "a flipped bit": (lambda path: flip(blobs(path)[0]), lambda found: len(found.bad_blobs)),
    "a truncated file": (lambda path: os.truncate(blobs(path)[1], 2000), lambda found: len(found.bad_blobs)),
    "two files exchanged": (swap, lambda found: len(found.bad_blobs) - 1),
    "a file gone": (lambda path: blobs(path)[0].unlink(), lambda found: len(found.differences.missing_blobs)),
    "a vector gone": (drop_vector, lambda found: len(found.differences.missing_vectors)),
    "a vector of nothing": (add_vector, lambda found: len(found.differences.stray_vectors)),
    "all vectors gone": (
        lambda path: (path / "vectors" / "chroma.sqlite3").unlink(),
        lambda found: len(found.differences.missing_vectors) - 2,
    ),
    **{
        what: (lambda path, change=change: damage_file(path, change), lambda found: len(found.damaged_rows))  # type: ignore[misc]
        for what, change in {**CHANGES, **ABOUT_KV}.items()
    },
}


def test_nothing_is_wrong_with_a_sound_index(path: Path) -> None:
    found = verify(path)
    assert found.sound
    assert (found.documents, found.chunks, found.vectors) == (3, 3, 3)
    assert found.blobs == len(blobs(path)) == 4  # and the system prefix
    assert found.bytes == sum(file.stat().st_size for file in blobs(path))
    with pytest.raises(EmptyIndex):
        verify(path / "nowhere")


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_named_and_what_is_advised_mends_it(path: Path, what: str) -> None:
    harm, counted = DAMAGE[what]
    before = {file.name: file.read_bytes() for file in blobs(path)}
    harm(path)
    found = verify(path)
    assert counted(found) == 1, found
    assert any("run `ragcache ingest --index" in said for said in found.next)
    assert all(blob.quarantined for blob in found.bad_blobs)
    with RagCache.open(path, model=tiny_reader(), embedder=Letters()) as rag:
        rag.ingest(path.parent / "files")
        rag.index.prefix()  # which is made anew when somebody needs it
    again = verify(path)
    if "key" in what or "front" in what:  # nothing names their files any more
        assert "gc" in " ".join(again.next) or again.sound
        collect_garbage(path)
    assert verify(path).sound
    assert {file.name: file.read_bytes() for file in blobs(path)} == before


def test_files_that_nothing_names_are_for_gc(path: Path) -> None:
    add_orphan(path)
    assert len(summarise(path).differences.orphan_blobs) == 1
    [said] = summarise(path).next
    assert "ragcache store gc" in said
    collect_garbage(path)
    assert verify(path).sound


def test_a_flipped_bit_in_chromas_database_is_named_or_harmless(path: Path) -> None:
    flip(path / "vectors" / "chroma.sqlite3", 4096 * 3 + 5)
    found = verify(path)
    assert found.sound or found.files or found.differences.missing_vectors


def test_the_command_says_it_and_ends_with_1(path: Path) -> None:
    from ragcache_cli.main import app

    run = CliRunner().invoke
    done = run(app, ["store", "verify", "--index", str(path)])
    assert done.exit_code == 0, done.output
    assert "nothing is wrong" in done.stdout
    flip(blobs(path)[0])
    done = run(app, ["store", "verify", "--index", str(path), "--json"])
    assert done.exit_code == 1
    said = json.loads(done.stdout)
    assert not said["sound"]
    [bad] = said["bad_blobs"]
    assert bad["quarantined"]
    assert "checksum" in bad["reason"]
    done = run(app, ["store", "verify", "--index", str(path)])
    assert done.exit_code == 0, done.output  # its row went with it, and the next ingestion makes it


def test_a_reader_that_may_not_write_moves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flip(blobs(path)[0])
    monkeypatch.setattr("ragcache.store.database.is_writable", lambda path: False)
    found = verify(path)
    assert [blob.quarantined for blob in found.bad_blobs] == [False]
    assert "repeat this as the account that ingests" in " ".join(found.next)
    assert len(blobs(path)) == 4


def test_who_may_only_read_finds_a_sound_index_sound(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from chromadb.errors import InternalError

    def refuse(*given: object, **options: object) -> None:
        raise InternalError("error returned from database: (code: 8) attempt to write a readonly database")

    monkeypatch.setattr("ragcache.store.database.is_writable", lambda path: False)
    monkeypatch.setattr("chromadb.api.client.Client.get_or_create_collection", refuse)
    found = verify(path)
    assert found.sound, found
    assert found.vectors == 3


def test_vectors_that_the_disk_does_not_give_are_not_called_damaged(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(vectors: Vectors) -> None:
        raise StorageFull("the disk refused")

    monkeypatch.setattr(Vectors, "ids", refuse)
    with pytest.raises(StorageFull):
        verify(path)
