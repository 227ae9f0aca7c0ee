"""Whatever the disk does: no wrong KV, nothing acknowledged lost, no unreadable index, and nothing left of a kill."""

import errno
import os
import sqlite3
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from conftest import tiny_reader
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from ragcache_bench.faulty_disk import FAULTS, Crash, FaultyDisk, run_seed
from ragcache_bench.kill_points import kill_everywhere

from ragcache.encode import InDocument
from ragcache.engine.engine import Engine
from ragcache.errors import CorruptBlob, StorageFull
from ragcache.index.index import Index
from ragcache.model.decode import Sampling
from ragcache.report import ChunkReport
from ragcache.store import Catalog, Disk, Forgotten, LocalStore

KEY = "ab" * 32


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_seeded_faults_cost_nothing_but_time(tmp_path: Path, first: int) -> None:
    met = 0
    for seed in range(first, first + 20):
        (tmp_path / str(seed)).mkdir()
        outcome = run_seed(seed, tmp_path / str(seed))
        assert outcome.clean, f"replay by run_seed({seed}, …): {outcome}"
        met += sum(outcome.met.values())
    assert met > 20, "or nothing was tried"


def test_a_store_that_forgets_to_forget_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Forgotten, "delete", lambda self: None)
    monkeypatch.setattr(Forgotten, "sweep", lambda self, keep: None)
    assert not run_seed(0, tmp_path).clean


def test_a_row_before_its_file_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalStore, "put_if_absent", lambda self, key, parts: True)
    monkeypatch.setattr(Catalog, "put_standing", lambda self, rows, stands: self.put_encoding(*rows) or [])
    assert run_seed(0, tmp_path).lost


def test_a_run_killed_behind_its_steps_is_resumed_as_if_nothing_had_been(tmp_path: Path) -> None:
    killed = list(kill_everywhere(tiny_reader(), tmp_path, every=17))
    assert len(killed) > 8
    assert [one for one in killed if not one.clean] == []


@pytest.mark.parametrize("fault", ["short write", "ENOSPC", "EIO", "failing fsync"])
@pytest.mark.parametrize("what", ["create", "write", "sync", "link"])
def test_a_failing_step_publishes_nothing_or_all(tmp_path: Path, fault: str, what: str) -> None:
    disk = FaultyDisk()
    store = LocalStore(tmp_path, disk=disk)
    disk._plan = lambda step, asked: fault if asked == what else None
    disk.met.clear()
    fails = not (fault == "short write" and what != "write") and not (fault == "failing fsync" and what != "sync")
    with pytest.raises(StorageFull, match="refused a write") if fails else nullcontext():
        store.put_if_absent(KEY, [bytes(1000)])
    assert bool(disk.met) == fails
    disk._plan = lambda step, asked: None
    assert store.head(KEY) in (None, 1000)
    assert list(tmp_path.glob("*/.tmp-*")) == []
    store.put_if_absent(KEY, [bytes(1000)])
    assert len(store.get(KEY)) == 1000


class FullDisk(Disk):
    """Takes nothing once it is full."""

    full = False

    def write(self, handle: int, parts: Sequence[memoryview]) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(handle, parts)

    def begin(self, connection: sqlite3.Connection) -> None:
        if self.full:
            raise StorageFull("the disk refused a write")
        super().begin(connection)


def test_a_question_is_answered_on_a_full_disk_and_an_ingestion_fails(tmp_path: Path) -> None:
    reader, disk = tiny_reader(), FullDisk()
    with Index(tmp_path, reader, store=LocalStore(tmp_path / "kv", disk=disk), memory_bytes=0) as index:
        index.put("doc", "", [("The harbour master is Mara.", 0, 0), ("It is painted green.", 0, 0)], {})
        chunks, engine = index.chunks([row.id for row in index.catalog.all_chunks()]), Engine(reader, index)

        def ask() -> list[ChunkReport]:
            return list(engine.answer("Who?", chunks, method="auto", sampling=Sampling(max_new_tokens=1)).report.chunks)

        disk.full = True
        first = ask()
        assert [chunk.cache for chunk in first] == ["miss", "miss"]
        assert all("its KV was not kept: the disk refused a write" in chunk.reason for chunk in first)
        with pytest.raises(StorageFull, match="refused a write"):
            list(index.encode(InDocument()))
        disk.full = False
        list(index.encode(InDocument()))
        index.store.delete(index.prefix_key)
        [row] = index.catalog.encodings(chunks[1].id, InDocument().recipe)
        blob = index.store.path_of(row.key)
        blob.write_bytes(blob.read_bytes()[:-1] + b"?")
        disk.full = True
        assert [chunk.cache for chunk in ask()] == ["exact", "miss"]


class StoreAgainstADictionary(RuleBasedStateMachine):
    """Files over a disk that fails at any step that Hypothesis thinks of."""

    keys = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.place = tempfile.TemporaryDirectory()
        self.disk = FaultyDisk()
        self.store = LocalStore(self.place.name, durable=True, disk=self.disk)
        self.held: dict[str, bytes] = {}
        self.unsure: set[str] = set()

    @rule(target=keys, number=st.integers(0, 3))
    def name(self, number: int) -> str:
        return f"{number:064x}"

    @rule(key=keys, fault=st.sampled_from(FAULTS), at=st.integers(1, 9))
    def put_and_fail(self, key: str, fault: str, at: int) -> None:
        until = self.disk.steps + at
        self.disk._plan = lambda step, what: fault if step == until else None
        self.unsure.add(key)
        try:
            self.store.put_if_absent(key, [key.encode() * 3])
        except StorageFull:
            pass
        except Crash:
            self.disk = FaultyDisk()
            self.store = LocalStore(self.place.name, durable=True, disk=self.disk)
        else:
            self.held[key] = key.encode() * 3
            self.unsure.discard(key)
        self.disk._plan = lambda step, what: None

    @rule(key=keys)
    def put(self, key: str) -> None:
        self.store.put_if_absent(key, [key.encode() * 3])
        self.held[key] = key.encode() * 3
        self.unsure.discard(key)

    @rule(key=keys)
    def delete(self, key: str) -> None:
        self.store.delete(key)
        self.held.pop(key, None)
        self.unsure.discard(key)

    @invariant()
    def what_was_acknowledged_is_there_and_nothing_else_is_read(self) -> None:
        for number in range(4):
            key = f"{number:064x}"
            try:
                found = self.store.get(key).numpy().tobytes()
            except CorruptBlob:
                assert key not in self.held
            else:
                assert found == key.encode() * 3
                assert key in self.held or key in self.unsure

    def teardown(self) -> None:
        self.place.cleanup()


StoreAgainstADictionary.TestCase.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
test_a_store_is_a_dictionary_whatever_fails = StoreAgainstADictionary.TestCase
