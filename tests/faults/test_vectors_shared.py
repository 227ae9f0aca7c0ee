"""The vectors of an index as several processes share them: seen at once, searched exactly, and failing in our words."""

import fcntl
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragcache.errors import IndexFormat, RagCacheError, StorageFull, UnusableIndex
from ragcache.retrieve import Vectors
from ragcache.retrieve import vectors as module


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[Vectors]:
    opened = Vectors(tmp_path / "vectors", "chunks")
    opened.upsert(names(0, 40), unit(40))
    yield opened
    opened.close()


def unit(rows: int, seed: int = 0) -> Any:
    found = np.random.default_rng(seed).normal(size=(rows, 16)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def names(first: int, last: int) -> list[str]:
    return [f"c{row:04}" for row in range(first, last)]


def elsewhere(path: Path, work: str) -> None:
    """Do something to the vectors in another process."""
    script = f"""
        import numpy as np
        from pathlib import Path
        from ragcache.retrieve import Vectors
        with_name = Vectors(Path({str(path)!r}), "chunks")
        {work}
        with_name.close()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)


@pytest.mark.parametrize("client", [True, False], ids=["that wrote itself", "that only reads"])
def test_an_open_index_sees_what_another_process_adds_and_removes(
    vectors: Vectors, tmp_path: Path, client: bool
) -> None:
    seen = vectors if client else Vectors(tmp_path / "vectors", "chunks")
    question = unit(40)[3]
    assert seen.query(question, 1)[0][0] == "c0003"
    new = np.float32(question + 0.01 * unit(1, seed=5)[0]).tolist()
    elsewhere(vectors.path, f"with_name.upsert(['new'], np.array([{new}], np.float32)); with_name.delete(['c0003'])")
    assert seen.query(question, 1)[0][0] == "new"
    assert seen.count() == 40
    assert seen.ids() == sorted({*names(0, 40), "new"} - {"c0003"})
    np.testing.assert_allclose(seen.embeddings(["c0004"]), unit(40)[4:5], atol=1e-6)
    assert list(seen.similarities(question, ["c0003", "new"])) == ["new"]
    seen.upsert(["c0003"], unit(40)[3:4])
    assert seen.query(question, 1)[0][0] == "c0003"
    seen.close()


def test_a_small_collection_is_searched_exactly(tmp_path: Path) -> None:
    """Many vectors close to each other, added in an order that Chroma's graph does badly by, and most removed again."""
    chance = np.random.default_rng(1)
    centres = chance.normal(size=(12, 64))
    rows = (centres[chance.integers(0, 12, 1200)] + 0.05 * chance.normal(size=(1200, 64))).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    vectors = Vectors(tmp_path / "vectors", "chunks")
    vectors.upsert(names(0, 1200), rows)
    vectors.delete(names(0, 700))
    for question in (centres + chance.normal(size=(12, 64)) * 0.3).astype(np.float32):
        question /= np.linalg.norm(question)
        exact = np.argsort(-(rows[700:] @ question), kind="stable")[:20] + 700
        assert {name for name, _ in vectors.query(question, 20)} == {f"c{row:04}" for row in exact}
    vectors.close()


def test_what_chromas_graph_does_not_lead_to_is_found_all_the_same(
    vectors: Vectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Vectors._nearest
    monkeypatch.setattr(Vectors, "_nearest", lambda *given: tuple(found[5:] for found in real(*given)))
    question = unit(1, seed=9)[0]
    best = np.argsort(-(unit(40) @ question))[:3]
    assert [name for name, _ in vectors.query(question, 3)] == [f"c{row:04}" for row in best]


class PanicException(BaseException):
    """What PyO3 raises where native code panics: no `Exception`."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("InternalError:error returned from database: (code: 13) database or disk is full", StorageFull),
        ("InternalError:error returned from database: (code: 1546) disk I/O error", StorageFull),
        ("InternalError:error returned from database: (code: 5) database is locked", UnusableIndex),
        ("InternalError:Error in compaction", IndexFormat),
        ("InvalidArgumentError:no such thing", RagCacheError),
        ("NotFoundError:collection is gone", IndexFormat),
        ("PanicException:range end index 4 out of range", IndexFormat),
        ("OSError:no", StorageFull),
    ],
)
def test_what_chroma_raises_is_said_in_our_words(
    vectors: Vectors, error: str, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    from chromadb import errors

    name, _, said = error.partition(":")
    raised: Any = {"PanicException": PanicException, "OSError": OSError}.get(name) or getattr(errors, name)

    def fail(*given: object, **options: object) -> None:
        raise raised(said)

    monkeypatch.setattr(module.Reading, "open", lambda *given: None)
    vectors._close_reading()
    for verb in ("count", "get", "query", "upsert", "delete"):
        monkeypatch.setattr(f"chromadb.api.models.Collection.Collection.{verb}", fail)
    for work in (
        vectors.count,
        vectors.ids,
        lambda: vectors.query(unit(1)[0], 1),
        lambda: vectors.embeddings(["c0001"]),
        lambda: vectors.similarities(unit(1)[0], ["c0001"]),
        lambda: vectors.upsert(["c0001"], unit(1)),
        lambda: vectors.delete(["c0001"]),
    ):
        with pytest.raises(kind, match=str(vectors.path)):
            work()  # type: ignore[no-untyped-call]


def test_a_panic_at_opening_is_said_in_our_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def panic(*given: object, **options: object) -> None:
        raise PanicException("called `Option::unwrap()` on a `None` value")

    monkeypatch.setattr("chromadb.PersistentClient", panic)
    monkeypatch.setattr(module.Reading, "__init__", panic)
    (tmp_path / "chroma.sqlite3").touch()
    with pytest.raises(IndexFormat, match=r"delete that folder and run `ragcache ingest"):
        Vectors(tmp_path, "chunks")


def test_a_module_of_pythons_own_that_cannot_be_read_is_not_said_to_be_missing() -> None:
    from ragcache.errors import MissingExtra
    from ragcache.retrieve.needs import needs

    with pytest.raises(MissingExtra, match=r"zoneinfo is a part of Python and could not be read") as caught, needs():
        raise ModuleNotFoundError("No module named 'zoneinfo'", name="zoneinfo")
    assert "pip" not in str(caught.value)


def test_two_processes_write_in_turn_and_every_vector_is_found(vectors: Vectors, tmp_path: Path) -> None:
    """Past a thousand changes each process's Chroma writes its search graph to the same files."""
    for first in (100, 300):
        vectors.upsert(names(first, first + 50), unit(50, seed=first))
        elsewhere(
            tmp_path / "vectors",
            f"""
        ids = [f"d{{row:04}}" for row in range({first}, {first} + 1200)]
        with_name.upsert(ids, np.eye(1200, 16, dtype="float32") + 0.1)
        with_name.delete(ids[:1100])
        """,
        )
        vectors.upsert([f"e{row:04}" for row in range(1100)], unit(1100, seed=first + 1))
        vectors.delete([f"e{row:04}" for row in range(1000)])
    ids = vectors.ids()
    assert len(ids) == 340
    assert {name for name, _ in vectors.query(unit(1, seed=5)[0], len(ids))} == set(ids)


@pytest.mark.parametrize(
    "work",
    [
        lambda vectors: vectors.upsert(["c0001"], unit(1)),
        lambda vectors: vectors.delete(["c0001"]),
        lambda vectors: vectors.query(unit(1)[0], 1),
        lambda vectors: vectors.similarities(unit(1)[0], ["c0001"]),
        lambda vectors: vectors.ids(),
        lambda vectors: vectors.count(),
        lambda vectors: vectors.compact(),
    ],
    ids=["upsert", "delete", "query", "similarities", "ids", "count", "compact"],
)
@pytest.mark.parametrize("reading", [True, False], ids=["read", "client alone"])
def test_chroma_is_only_opened_by_whoever_has_the_turn(
    vectors: Vectors, work: Any, reading: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that is opened while another process compacts it ends in disk I/O errors for one of them."""
    import chromadb

    held = list[bool]()
    real = {chromadb: chromadb.PersistentClient, module.Reading: module.Reading.open}

    def look() -> None:
        with (vectors.path.parent / "vectors.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held.append(True)
            else:
                held.append(False)

    def open_client(*given: Any, **options: Any) -> Any:
        look()
        return real[chromadb](*given, **options)

    def open_reading(*given: Any) -> Any:
        look()
        return real[module.Reading](*given) if reading else None

    monkeypatch.setattr(chromadb, "PersistentClient", open_client)
    monkeypatch.setattr(module.Reading, "open", open_reading)
    other = Vectors(vectors.path, "chunks")
    work(other)
    other.close()
    work(vectors)
    assert held
    assert all(held)


def test_readers_that_take_turns_open_the_folder_once_each(vectors: Vectors, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening takes far longer than a question, and Chroma writes to its database then, which changes nothing."""
    opened, real = list[Path](), module.Reading.open

    def open_reading(path: Path, name: str) -> Any:
        opened.append(path)
        return real(path, name)

    monkeypatch.setattr(module.Reading, "open", open_reading)
    readers = [Vectors(vectors.path, "chunks") for _ in range(2)]
    for _ in range(3):
        for reader in readers:
            assert reader.query(unit(40)[3], 1)[0][0] == "c0003"
            assert reader.count() == 40
    assert len(opened) == 2
    vectors.delete(["c0003"])
    assert [reader.count() for reader in (*readers, *readers)] == [39] * 4
    assert len(opened) == 4


def test_a_writer_keeps_its_client_while_the_folder_is_only_opened(
    vectors: Vectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    import chromadb

    monkeypatch.setattr(chromadb, "PersistentClient", lambda *_, **__: pytest.fail("opened again"))
    for row in range(40, 43):
        vectors.upsert(names(row, row + 1), unit(1, seed=row))
        assert len(vectors.ids()) == row + 1
        assert Vectors(vectors.path, "chunks").count() == row + 1


def test_questions_write_nothing(vectors: Vectors) -> None:
    def files() -> dict[Path, tuple[int, int]]:
        return {file: (file.stat().st_ino, file.stat().st_mtime_ns) for file in vectors.path.rglob("*")}

    reader = Vectors(vectors.path, "chunks")
    reader.query(unit(40)[3], 1)
    before = files()
    assert len(before) > 4
    for row in range(3):
        reader.query(unit(40)[row], 1)
        reader.similarities(unit(40)[row], ["c0001"])
    assert files() == before


def test_compacting_leaves_nothing_of_removed_vectors(vectors: Vectors) -> None:
    gone = [unit(40)[row].tobytes() for row in range(20)]

    def left() -> int:
        data = b"".join(path.read_bytes() for path in vectors.path.rglob("*") if path.is_file())
        return sum(one[:24] in data for one in gone)

    assert left() == 20
    vectors.delete(names(0, 20))
    vectors.close()
    # In a process of its own, as `ragcache store gc` is: Chroma may write what its memory held before.
    script = """
    import pathlib, sys
    from ragcache.retrieve.vectors import Vectors
    Vectors(pathlib.Path(sys.argv[1]), "chunks").compact()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script), str(vectors.path)], check=True)
    assert left() == 0
    assert vectors.ids() == names(20, 40)
    np.testing.assert_allclose(vectors.embeddings(names(20, 40)), unit(40)[20:], atol=1e-6)
    assert vectors.query(unit(40)[30], 1)[0][0] == "c0030"


@pytest.mark.slow
def test_what_another_process_adds_while_vectors_are_compacted_is_kept(vectors: Vectors) -> None:
    script = f"""
    import sys
    from pathlib import Path
    import numpy as np
    from ragcache.retrieve import Vectors
    writer = Vectors(Path({str(vectors.path)!r}), "chunks")
    print(flush=True)
    for row in range(60):
        writer.upsert([f"d{{row:04}}"], np.eye(60, 16, dtype="float32")[row:row + 1] + 0.1)
        assert len(writer.similarities(np.ones(16, "float32"), ["c0001", "c0039"])) == 2
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        compacted = 0
        while writer.poll() is None:
            vectors.compact()
            compacted += 1
            time.sleep(0.05)  # or the writer seldom has its turn
    assert writer.returncode == 0
    assert compacted > 1
    assert vectors.ids() == [*names(0, 40), *(f"d{row:04}" for row in range(60))]
