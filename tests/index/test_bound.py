"""A limit for an index's KV files: held at every moment, and what goes is what saves the least."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import tiny_reader
from hypothesis import given
from hypothesis import strategies as st

from ragcache.encode import Alone
from ragcache.engine.engine import Engine
from ragcache.errors import InvalidArgument
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.model.reader import Reader
from ragcache.store import Kept, LocalStore, choose_victims, least_often, least_recently

WORDS = "river stone amber otter wheel lantern copper meadow harbour violet".split()


@pytest.fixture(scope="module")
def reader() -> Reader:
    return tiny_reader()


@pytest.fixture
def index(tmp_path: Path, reader: Reader) -> Iterator[Index]:
    """Twenty chunks of one size, nothing encoded yet, and room for eight of them."""
    with Index(tmp_path / "index", reader, memory_bytes=0) as index:
        rng = random.Random(0)
        for number in range(20):
            text = " ".join([f"{number:02d}", *rng.choices(WORDS, k=4)]).ljust(40, ".")[:40]
            index.put(f"doc{number:02d}", "", [(text, 0, len(text))], {})
        index.prefix()
        first, *_ = chunks_of(index)
        index.make(first, Alone())
        [key] = index.catalog.keys()
        size = index.store.head(key) or 0
        index.evict([key])
        index.bound.set_limit(index.store.total_bytes() + 8 * size + 200)
        yield index


def chunks_of(index: Index) -> list[Chunk]:
    return index.chunks([row.id for row in index.catalog.all_chunks()])


def stored(index: Index) -> set[str]:
    return {row.chunk for row in index.catalog.by_recipe(Alone.recipe)}


def test_ingestion_fills_the_room_that_there_is_and_no_more(index: Index) -> None:
    done = list(index.encode(Alone()))
    assert set(done) == stored(index)
    assert 6 <= len(done) <= 8
    assert index.store.total_bytes() <= (index.bound.limit or 0)
    assert list(index.encode(Alone())) == [], "what was stored first stays"
    assert index.lacking(Alone())


def test_a_question_is_answered_the_same_whatever_there_is_room_for(index: Index, reader: Reader) -> None:
    list(index.encode(Alone()))
    chunks = chunks_of(index)[-4:]
    first = Engine(reader, index).answer("Where?", chunks, method="naive")
    assert [chunk.cache for chunk in first.report.chunks] == ["miss"] * 4
    assert {chunk.id for chunk in chunks} <= stored(index), "what was asked about is stored in the place of others"
    again = Engine(reader, index).answer("Where?", chunks, method="naive")
    assert "miss" not in [chunk.cache for chunk in again.report.chunks]
    assert again.text == first.text


def test_the_limit_holds_at_every_moment_and_what_is_asked_often_stays(
    index: Index, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(index.encode(Alone()))
    engine, chunks, rng, over = Engine(reader, index), chunks_of(index), random.Random(1), []
    put = index.store.put_if_absent

    def put_and_look(key: str, parts: Any) -> bool:
        done = put(key, parts)
        over.append(index.store.total_bytes() - (index.bound.limit or 0))
        return done

    monkeypatch.setattr(index.store, "put_if_absent", put_and_look)
    for _ in range(40):
        engine.prefill("Where?", [chunks[19], chunks[18], rng.choice(chunks[:18])], method="naive")
    assert len(over) > 20, "or nothing went"
    assert max(over) <= 0
    assert {chunks[19].id, chunks[18].id} <= stored(index)


def test_nothing_goes_that_a_running_answer_uses(index: Index) -> None:
    chunks = chunks_of(index)
    for chunk in chunks[:8]:
        index.make(chunk, Alone())
    with index.bound.pin([chunk.id for chunk in chunks[:7]]):
        for chunk in chunks[8:14]:
            index.make(chunk, Alone())
        assert {chunk.id for chunk in chunks[:7]} <= stored(index)
    for chunk in chunks[8:14]:
        index.make(chunk, Alone())
    assert not {chunk.id for chunk in chunks[:7]} <= stored(index)


def test_a_lower_limit_takes_effect_at_once_and_is_remembered(index: Index, reader: Reader) -> None:
    list(index.encode(Alone()))
    half = index.store.total_bytes() // 2
    index.bound.set_limit(half)
    assert index.store.total_bytes() <= half
    index.close()
    with Index(index.path, reader) as again:
        assert again.bound.limit == half
        assert stored(again)
    with pytest.raises(InvalidArgument, match="one byte or more, not to 0"):
        index.bound.set_limit(0)


def test_a_limit_below_what_must_stay_leaves_nothing_else_and_says_so(index: Index, caplog: Any) -> None:
    list(index.encode(Alone()))
    index.bound.set_limit(1)
    assert not stored(index)
    assert index.store.total_bytes() == index.store.head(index.prefix_key)
    assert "cannot be kept within 1 bytes" in caplog.text


def test_what_was_stored_before_the_limit_stays_as_long_as_it_is_used(tmp_path: Path, reader: Reader) -> None:
    with Index(tmp_path / "index", reader, memory_bytes=0) as index:
        for number in range(12):
            text = f"{number:02d} {WORDS[number % len(WORDS)]}".ljust(40, ".")
            index.put(f"doc{number:02d}", "", [(text, 0, len(text))], {})
        chunks = chunks_of(index)
        for chunk in chunks[:4]:
            index.make(chunk, Alone())
        index.bound.set_limit(index.store.total_bytes() + 100)
        [row] = index.catalog.encodings(chunks[0].id, Alone.recipe)
        for newcomer in chunks[4:]:
            index.bound.serve(row.key)
            index.make(newcomer, Alone())
        assert chunks[0].id in stored(index)
        assert chunks[-1].id in stored(index)


def test_what_is_asked_now_takes_the_place_of_what_was_asked_often(index: Index, reader: Reader) -> None:
    engine, chunks = Engine(reader, index), chunks_of(index)
    old, new = chunks[:8], chunks[8:16]
    for chunk in old * 4:
        engine.prefill("Where?", [chunk], method="naive")
    assert {chunk.id for chunk in old} == stored(index)
    for _ in range(3):
        asked = [engine.prefill("Where?", [chunk], method="naive").report.chunks[0].cache for chunk in new]
    assert "miss" not in asked
    assert {chunk.id for chunk in new} == stored(index)


@pytest.mark.parametrize("full", [True, False])
def test_the_system_prefix_is_made_at_ingestion_before_anything_else(
    tmp_path: Path, reader: Reader, full: bool
) -> None:
    with Index(tmp_path / "index", reader, memory_bytes=0) as index:
        index.put("doc", "", [(f"{number} {word}", 0, 0) for number, word in enumerate(WORDS)], {})
        if full:
            index.bound.set_limit(100_000)
        list(index.encode(Alone()))
        assert index.store.head(index.prefix_key)
        assert bool(index.lacking(Alone())) == full


def test_a_full_store_makes_room_for_the_system_prefix(index: Index) -> None:
    list(index.encode(Alone()))
    index.store.delete(index.prefix_key)
    index.bound.set_limit(index.store.total_bytes() + 1)
    assert index.prefix().kvs
    assert index.store.head(index.prefix_key)
    assert index.store.total_bytes() <= (index.bound.limit or 0)


def test_a_system_prefix_that_cannot_be_stored_is_made_once(
    index: Index, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(index.encode(Alone()))
    index.store.delete(index.prefix_key)
    made: list[int] = []
    encode = Reader.encode

    def count_tokens(self: Reader, token_ids: Any, left: Any = ()) -> Any:
        made.append(len(token_ids))
        return encode(self, token_ids, left)

    monkeypatch.setattr(Reader, "encode", count_tokens)
    with Index(index.path, reader, store=LocalStore(index.path / "kv", read_only=True)) as again:
        chunks = [chunk for chunk in chunks_of(again) if chunk.id in stored(again)]
        for _ in range(3):
            report = Engine(reader, again).prefill("Where?", chunks, method="naive").report
            assert {chunk.cache for chunk in report.chunks} == {"hit"}
    assert made == [len(index.prefix_segment)]


def test_a_limit_binds_whoever_has_the_index_open(index: Index, reader: Reader) -> None:
    with Index(index.path, reader, memory_bytes=0) as other:
        list(other.encode(Alone()))
        half = index.store.total_bytes() // 2
        index.bound.set_limit(half)
        assert other.bound.limit == half
        list(other.encode(Alone()))
        assert other.store.total_bytes() <= half


def test_files_are_looked_at_once_as_long_as_there_is_room(
    index: Index, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[None] = []
    look = LocalStore.total_bytes

    def count_look(store: LocalStore) -> int:
        looks.append(None)
        return look(store)

    monkeypatch.setattr(LocalStore, "total_bytes", count_look)
    with Index(index.path, reader, memory_bytes=0) as other:
        for number, chunk in enumerate(chunks_of(index)[:8]):
            (index, other)[number % 2].make(chunk, Alone())
        assert len(looks) == 2, "each process looks as it begins"
        assert len(stored(index)) == 8
        other.make(chunks_of(index)[8], Alone())
    assert len(stored(index)) == 8, "for one that came another went"
    assert len(looks) > 2


def test_a_count_that_a_stopped_machine_left_is_not_believed(index: Index, reader: Reader) -> None:
    for chunk in chunks_of(index)[:8]:
        index.make(chunk, Alone())
    (index.path / "bound.lock").write_text("0")  # what was not written out
    with Index(index.path, reader, memory_bytes=0) as again:
        again.make(chunks_of(again)[8], Alone())
        assert again.store.total_bytes() <= (again.bound.limit or 0)


def test_uses_are_remembered_beyond_a_process(index: Index, reader: Reader) -> None:
    list(index.encode(Alone()))
    first, *_ = [chunk for chunk in chunks_of(index) if chunk.id in stored(index)]
    for _ in range(3):
        assert index.load(first, Alone(), None).kv is not None
    index.close()
    with Index(index.path, reader) as again:
        [row] = again.catalog.encodings(first.id, Alone.recipe)
        assert again.catalog.read("SELECT uses FROM uses WHERE key = ?", row.key) == [(4,)]


def test_a_file_that_is_written_counts_once(tmp_path: Path) -> None:
    store, key_of_number = LocalStore(tmp_path), "ab" * 32
    store.put_if_absent(key_of_number, [bytes(1000)])
    path = store.path_of(key_of_number)
    (path.parent / ".tmp-x").hardlink_to(path)
    assert store.total_bytes() == 1000


@given(st.lists(st.tuples(st.integers(1, 50), st.floats(0, 10), st.integers(0, 9)), max_size=12), st.integers(0, 200))
def test_victims_free_what_is_needed_and_no_more(kept: list[tuple[int, float, int]], needed: int) -> None:
    all_ = [Kept(str(n), size, work, uses, float(n)) for n, (size, work, uses) in enumerate(kept)]
    gone = choose_victims(all_, needed)
    if gone is None:
        assert sum(one.nbytes for one in all_) < needed
    elif gone:
        assert sum(one.nbytes for one in gone) >= needed > sum(one.nbytes for one in gone[:-1])
    else:
        assert needed <= 0


def test_who_goes_first_depends_on_the_policy() -> None:
    old_often, small, new_once = Kept("a", 10, 5.0, 9, 1.0), Kept("b", 1, 5.0, 1, 2.0), Kept("c", 10, 5.0, 1, 3.0)

    def first(**how: object) -> str:
        [gone] = choose_victims([old_often, small, new_once], 1, **how) or []  # type: ignore[arg-type]
        return gone.key

    assert first() == "c"
    assert first(policy=least_recently) == "a"
    assert first(policy=least_often) == "b"
    assert choose_victims([small], 2) is None
