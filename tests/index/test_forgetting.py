"""What is removed is gone for good: its KV, and every KV that was made with it, whenever the process is killed."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from encode.contexts import TIDE, opened, put
from staged import TEXTS, make

from ragcache import methods
from ragcache.encode import Alone, Fused, Prefixed
from ragcache.index.documents import Documents
from ragcache.index.index import Index
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.model.reader import Reader
from ragcache.store import Catalog, LocalStore

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Do something in a process of its own that is killed after its nth commit or deletion; whether it got so far."""
    child = os.fork()
    if child == 0:
        try:
            _kill_after(step)
            work()
        finally:
            os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL)
    return status == signal.SIGKILL


def _kill_after(step: int) -> None:
    left = [step]

    def passed() -> None:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    begin, delete = Catalog.transaction, LocalStore.delete

    @contextmanager
    def transaction(self: Catalog) -> Iterator[Any]:
        with begin(self) as connection:
            yield connection
        passed()

    def deleted(self: LocalStore, key: str) -> bool:
        found = delete(self, key)
        passed()
        return found

    Catalog.transaction, LocalStore.delete = transaction, deleted  # type: ignore[method-assign]


def steps(template: Path, folder: Path, work: Callable[[Path], object]) -> Iterator[Path]:
    """A copy of an index for every step of some work, which was killed there."""
    for step in range(100):
        copy = Path(shutil.copytree(template, folder / str(step)))
        if not killed_at(step, lambda copy=copy: work(copy)):  # type: ignore[misc]
            assert step > 3, "it ended before there was a step to be killed at"
            return
        yield copy


def carriers(index: Index, *chunks: str) -> set[str]:
    """Keys of all KV that carries the content of some chunks."""
    gone, found = (
        set[str](),
        {
            row.key
            for chunk in chunks
            for recipe in index.catalog.recipes()
            for row in index.catalog.encodings(chunk, recipe)
        },
    )
    while found:
        gone |= found
        found = {row.key for row in index.catalog.made_with(found)} - gone
    return gone


def left_of(path: Path, reader: Reader, keys: set[str], chunks: Sequence[str], row: str | Method) -> tuple[int, int]:
    """In an index that is opened again: how much of some KV is on the disk, and how many chunks are served from it."""
    with Index(path, reader) as index:
        encoder = methods.find_method(row).encode
        assert encoder is not None
        served = [index.load(chunk, encoder, None) for chunk in index.chunks(chunks)]
        return len(keys & set(index.store.list())), sum(one.kv is not None and one.key in keys for one in served)


def test_a_removal_that_is_killed_anywhere_leaves_nothing_of_the_text(tmp_path: Path, reader: Reader) -> None:
    engine, chunks = make(tmp_path, reader, "fusionrag")
    keys = carriers(engine.index, chunks[0].id)
    assert len(keys) == 5, "its own KV, and every chunk's that was fused with it or is it"
    engine.index.close()

    def remove(path: Path) -> None:
        with Index(path, reader) as index:
            index.remove("doc0")

    found = {}
    for path in steps(tmp_path / "index", tmp_path / "killed", remove):
        with Index(path, reader) as index:
            removed = index.catalog.document_by_source("doc0") is None
        if removed:
            found[path.name] = left_of(path, reader, keys, [chunk.id for chunk in chunks[1:]], "fusionrag")
    assert found
    assert set(found.values()) == {(0, 0)}, found


@pytest.mark.parametrize(
    "row", [METHODS["in-document"], Method("fused", Fused(2, by="both"))], ids=lambda row: row.name
)
def test_a_change_that_is_killed_anywhere_leaves_no_kv_of_what_stood_there(
    row: Method, tmp_path: Path, reader: Reader
) -> None:
    """A chunk goes from the middle of a document, so those behind it stand behind something else."""
    index, tide, mill = opened(tmp_path, reader)
    encoder = row.encode
    assert encoder is not None
    list(index.encode(encoder, neighbours=lambda chunk, count: [one for one in tide if one != chunk][:count]))
    keys = carriers(index, tide[1]) | {index.catalog.encodings(one, encoder.recipe)[0].key for one in tide[2:]}
    index.close()

    def change(path: Path) -> None:
        with Index(path, reader) as index:
            put(index, "tide", (TIDE[0], *TIDE[2:]))

    found = {}
    for path in steps(tmp_path / "index", tmp_path / "killed", change):
        with Index(path, reader) as index:
            changed = not index.chunks([tide[1]])
        if changed:
            found[path.name] = left_of(path, reader, keys, [tide[0], *tide[2:], *mill], row)
    assert found
    assert set(found.values()) == {(0, 0)}, found


def test_what_was_made_with_a_corrupt_kv_goes_with_its_text(tmp_path: Path, reader: Reader) -> None:
    """The KV of the removed text itself was found corrupt before, and is not made anew."""
    engine, chunks = make(tmp_path, reader, "fusionrag")
    index, store = engine.index, engine.index.store
    keys = carriers(index, chunks[0].id)
    [passed] = [row.key for row in index.catalog.encodings(chunks[0].id, "prefixed")]
    index.release()
    path = next(store.root.rglob(f"{passed}*"))
    path.write_bytes(path.read_bytes()[:-1])
    assert index._part(chunks[0].id, "prefixed") is None
    assert list(store.quarantined()) == [passed]
    index.remove("doc0")
    assert not keys & set(store.list())
    assert list(store.quarantined()) == []
    index.close()


def test_kv_made_with_a_text_that_another_process_removes_meanwhile_is_not_kept(
    tmp_path: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process is killed before it has deleted a single blob."""
    engine, chunks = make(tmp_path, reader, "sel")
    index, encoder = engine.index, Fused(1)
    list(index.encode(Prefixed()))
    encode = Reader.encode_all

    def while_removing(self: Reader, todo: Any) -> Any:
        made = encode(self, todo)
        other = Catalog(index.path / "catalog.sqlite")
        other.remove_document(*(row.id for row in other.documents() if row.source == "doc0"))
        other.close()
        return made

    monkeypatch.setattr(Reader, "encode_all", while_removing)
    list(index.encode(encoder, neighbours=lambda chunk, count: [chunks[0].id]))
    assert index.catalog.stats()["documents"] == 3
    assert [index.catalog.encodings(chunk.id, encoder.recipe) for chunk in chunks] == [[]] * 4
    named = {
        row.key
        for chunk in chunks
        for recipe in index.catalog.recipes()
        for row in index.catalog.encodings(chunk.id, recipe)
    }
    assert set(index.store.list()) == named | {index.prefix_key}


def test_a_text_that_comes_back_keeps_the_kv_that_is_made_for_it(tmp_path: Path, reader: Reader) -> None:
    engine, chunks = make(tmp_path, reader, "naive")
    index = engine.index
    index.catalog.remove_document(*(row.id for row in index.catalog.documents() if row.source == "doc0"))
    index.put("doc0", "again", [(TEXTS[0], 0, len(TEXTS[0]))], {})
    list(index.encode(Alone()))
    index.close()
    with Index(tmp_path / "index", reader) as index:
        assert index.load(chunks[0], Alone(), None).kv is not None


@pytest.mark.parametrize("verb", ["delete", "sweep"])
def test_kv_that_another_process_enters_while_it_is_being_deleted_stays(
    tmp_path: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    engine, chunks = make(tmp_path, reader, "naive")
    index, read = engine.index, Catalog.read
    index.catalog.remove_document(*(row.id for row in index.catalog.documents() if row.source == "doc0"))
    if verb == "sweep":  # as if an older version had been killed, which noted nothing
        with index.catalog.transaction() as connection:
            connection.execute("DELETE FROM forgotten")

    def while_it_comes_back(self: Catalog, query: str, *parameters: Any) -> Any:
        found = read(self, query, *parameters)
        if self is index.catalog and "SELECT key FROM" in query and "json_each" not in query:
            monkeypatch.undo()
            with Index(index.path, reader) as other:
                other.put("doc0", "again", [(TEXTS[0], 0, len(TEXTS[0]))], {})
                list(other.encode(Alone()))
        return found

    monkeypatch.setattr(Catalog, "read", while_it_comes_back)
    if verb == "delete":
        index.forgotten.delete()
    else:
        index.forgotten.sweep({index.prefix_key})
    index.close()
    with Index(tmp_path / "index", reader) as index:
        assert index.load(chunks[0], Alone(), None).kv is not None


def test_a_sweep_deletes_what_a_killed_ingestion_left_and_nothing_else(tmp_path: Path, reader: Reader) -> None:
    engine, chunks = make(tmp_path, reader, "sel")
    index = engine.index
    [row] = index.catalog.encodings(chunks[0].id, "prefixed")
    with index.catalog.transaction() as connection:  # as if the kill had come before the row
        connection.execute("DELETE FROM encodings WHERE key = ?", (row.key,))
    before = set(index.store.list())
    with Documents.opened(index.path) as documents:  # which knows no model
        documents.clean()
    assert set(index.store.list()) == before - {row.key}
    assert index.prefix_key in before - {row.key}


def test_a_sweep_deletes_what_an_older_versions_killed_removal_left(tmp_path: Path, reader: Reader) -> None:
    """It dropped the text's own rows and was killed before it looked for what was made with them."""
    engine, chunks = make(tmp_path, reader, "fusionrag")
    index = engine.index
    keys = carriers(index, chunks[0].id)
    before = set(index.store.list())
    with index.catalog.transaction() as connection:
        connection.execute("DELETE FROM documents WHERE source = 'doc0'")
    index.release()
    with Documents.opened(index.path) as documents:
        documents.clean()
    assert set(index.store.list()) == before - keys
    named = {key for (key,) in index.catalog.read("SELECT key FROM encodings")}
    assert named == before - keys - {index.prefix_key}
    assert len(named) == 3, "the base encoding of the others"
