import contextlib
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragcache.errors import IndexFormat, InvalidArgument, StorageFull, UnusableIndex
from ragcache.store import Catalog, ChunkRow, DocumentRow, EncodingRow, hold_turn
from ragcache.store import schema as schema_module


@pytest.fixture
def catalog(tmp_path):
    catalog = Catalog(tmp_path / "catalog.sqlite")
    yield catalog
    catalog.close()


def document(id: str, source: str = "", **fields) -> DocumentRow:
    return DocumentRow(id, source or f"{id}.md", digest="d", metadata=fields)


def chunk(id: str, of: str, ordinal: int = 0, token_ids=(1, 2, 3)) -> ChunkRow:
    return ChunkRow(id, of, ordinal, text=f"text of {id}", token_ids=token_ids, start=10, end=20)


def encoding(of: str, key: str, recipe: str = "alone", left=(), nbytes: int = 100, created: float = 1.0):
    return EncodingRow(of, recipe, key, tuple(left), nbytes, kind="a", created=created, used=created)


def fill(catalog, *ids: str) -> None:
    """One document of one chunk per id."""
    for id in ids:
        catalog.put_document(document(id), [chunk(f"{id}0", id)])


def test_rows_come_back_as_they_were_put(catalog):
    row = document("d", "a/é.md", title="Tide", pages=[1, 2])
    chunks = [chunk("c1", "d", 1, token_ids=(0, 151_935)), chunk("c0", "d", 0, token_ids=())]
    catalog.put_document(row, chunks)
    made = encoding("c1", "k", left=("x", "y"))
    catalog.put_encoding(made)
    assert catalog.document("d") == catalog.document_by_source("a/é.md") == row
    assert catalog.documents() == [row]
    assert catalog.chunks_of("d") == catalog.all_chunks() == [chunks[1], chunks[0]]
    assert catalog.chunk("c1") == chunks[0]
    assert catalog.encodings("c1", "alone") == [made]


def test_what_is_not_there_is_not_found(catalog):
    assert catalog.document("d") is None
    assert catalog.document_by_source("d.md") is None
    assert catalog.chunk("c") is None
    assert catalog.chunks_of("d") == catalog.encodings("c", "alone") == []
    assert catalog.remove_document("d") == catalog.drop_recipe("alone") == []


def test_chunks_come_in_the_order_asked_for(catalog):
    fill(catalog, "a", "b", "c")
    found = catalog.chunks(["c0", "nowhere", "a0", "c0"])
    assert [row.id for row in found] == ["c0", "a0", "c0"]


def test_thousands_of_chunks_are_found_at_once(catalog):
    ids = [f"c{number}" for number in range(40_000)]
    catalog.put_document(document("d"), [chunk(id, "d", number) for number, id in enumerate(ids)])
    assert [row.id for row in catalog.chunks(ids)] == ids


@given(ids=st.lists(st.integers(0, 2**31 - 1)))
def test_token_ids_survive_their_blob(ids):
    row = chunk("c", "d", token_ids=tuple(ids))
    values = schema_module.chunk_values(row)
    assert schema_module.chunk_row(*values) == row
    assert len(values[4]) == 4 * len(ids)


def test_settings_hold_any_json(catalog):
    assert catalog.setting("model") is None
    assert catalog.setting("model", "default") == "default"
    catalog.set_setting("model", {"path": "x", "sizes": [1, 2.5, None]})
    catalog.set_setting("model", {"path": "y", "sizes": []})
    assert catalog.setting("model", "default") == {"path": "y", "sizes": []}


def test_a_replaced_document_drops_the_keys_of_the_chunks_that_changed(catalog):
    catalog.put_document(document("d"), [chunk(f"c{n}", "d", n) for n in range(3)])
    for n in range(3):
        catalog.put_encoding(encoding(f"c{n}", f"k{n}"))
    same = replace(chunk("c0", "d", 1), text="moved")
    changed = chunk("c1", "d", 0, token_ids=(9,))
    assert sorted(catalog.put_document(document("d"), [changed, same])) == ["k1", "k2"]
    assert catalog.chunks_of("d") == [changed, same]
    assert [row.key for row in catalog.encodings("c0", "alone")] == ["k0"]
    assert catalog.encodings("c1", "alone") == []


def test_a_document_under_a_new_id_replaces_the_one_at_its_source(catalog):
    catalog.put_document(document("old", "a.md"), [chunk("c0", "old")])
    catalog.put_encoding(encoding("c0", "k"))
    assert catalog.put_document(document("new", "a.md"), [chunk("c1", "new")]) == ["k"]
    assert catalog.documents() == [document("new", "a.md")]
    assert [row.id for row in catalog.all_chunks()] == ["c1"]


def test_a_chunk_of_another_document_is_refused_and_nothing_changes(catalog):
    fill(catalog, "a")
    with pytest.raises(InvalidArgument, match="must name it"):
        catalog.put_document(document("b"), [chunk("b0", "a")])
    with pytest.raises(InvalidArgument, match="no place for this row"):
        catalog.put_document(document("b"), [chunk("b0", "b"), chunk("a0", "b")])
    assert catalog.documents() == [document("a")]
    assert [row.document for row in catalog.all_chunks()] == ["a"]


def test_an_encoding_of_no_chunk_is_refused(catalog):
    with pytest.raises(InvalidArgument, match="FOREIGN KEY"):
        catalog.put_encoding(encoding("nowhere", "k"))


def test_a_shared_key_is_free_only_when_its_last_document_goes(catalog):
    fill(catalog, "a", "b")
    for of in ("a0", "b0"):
        catalog.put_encoding(encoding(of, "shared"))
        catalog.put_encoding(encoding(of, f"own-{of}", recipe="fused"))
    assert catalog.remove_document("a") == ["own-a0"]
    assert catalog.referenced("shared")
    assert sorted(catalog.remove_document("b")) == ["own-b0", "shared"]
    assert not catalog.referenced("shared")
    assert catalog.stats()["chunks"] == 0


def test_a_key_shared_by_two_recipes_outlives_one(catalog):
    fill(catalog, "a")
    for recipe in ("alone", "prefixed"):
        catalog.put_encoding(encoding("a0", "shared", recipe))
    catalog.put_encoding(encoding("a0", "own", "prefixed", left=["x"]))
    assert catalog.drop_recipe("prefixed") == ["own"]
    assert catalog.drop_recipe("alone") == ["shared"]


def test_several_encodings_of_one_recipe_are_listed_newest_first(catalog):
    fill(catalog, "a")
    for number, key in enumerate(["old", "new"]):
        catalog.put_encoding(encoding("a0", key, left=[key], created=number))
    catalog.put_encoding(encoding("a0", "old", left=["old"], created=5.0))
    assert [row.key for row in catalog.encodings("a0", "alone")] == ["old", "new"]


def test_missing_lists_the_chunks_without_a_recipe(catalog):
    catalog.put_document(document("d"), [chunk(f"c{n}", "d", n) for n in range(3)])
    catalog.put_encoding(encoding("c1", "k"))
    catalog.put_encoding(encoding("c0", "k", recipe="fused"))
    assert [row.id for row in catalog.missing("alone")] == ["c0", "c2"]


def test_a_dropped_key_leaves_its_chunks_missing(catalog):
    fill(catalog, "a", "b")
    for of in ("a0", "b0"):
        catalog.put_encoding(encoding(of, "k"))
    catalog.drop_key("k")
    assert [row.id for row in catalog.missing("alone")] == ["a0", "b0"]


def test_encodings_made_with_a_neighbour_are_found(catalog):
    fill(catalog, "a", "b", "c")
    catalog.put_encoding(encoding("a0", "ka"))
    catalog.put_encoding(encoding("b0", "kb", "fused", left=["system", "ka"]))
    catalog.put_encoding(encoding("c0", "kc", "fused", left=["system"]))
    assert [row.key for row in catalog.made_with(["ka", "elsewhere"])] == ["kb"]


def test_touch_moves_the_last_use(catalog, monkeypatch):
    fill(catalog, "a")
    catalog.put_encoding(encoding("a0", "k"))
    catalog.put_encoding(encoding("a0", "other"))
    monkeypatch.setattr("time.time", lambda: 77.0)
    catalog.touch(["k", "unknown"])
    used = {row.key: row.used for row in catalog.encodings("a0", "alone")}
    assert used == {"k": 77.0, "other": 1.0}


def test_stats_count_shared_bytes_once(catalog):
    fill(catalog, "a", "b")
    for of in ("a0", "b0"):
        catalog.put_encoding(encoding(of, "shared", nbytes=100))
        catalog.put_encoding(encoding(of, f"own-{of}", recipe="fused", nbytes=30))
    catalog.put_encoding(encoding("a0", "shared", recipe="fused", nbytes=100))
    assert catalog.stats() == {
        "documents": 2,
        "chunks": 2,
        "encodings": {"alone": {"chunks": 2, "bytes": 100}, "fused": {"chunks": 2, "bytes": 160}},
        "bytes": 160,
    }


RESTARTED = """
import sys
from ragcache.store import Catalog
catalog = Catalog(sys.argv[1])
print(catalog.setting("n"), catalog.chunk("a0").token_ids, catalog.encodings("a0", "alone")[0].key)
catalog.set_setting("n", 2)
"""


def test_another_process_finds_everything_and_is_found(catalog):
    fill(catalog, "a")
    catalog.put_encoding(encoding("a0", "k"))
    catalog.set_setting("n", 1)
    command = [sys.executable, "-c", RESTARTED, catalog.path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1 (1, 2, 3) k"
    assert catalog.setting("n") == 2


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_killed_writer_leaves_whole_documents(tmp_path):
    path = tmp_path / "catalog.sqlite"
    Catalog(path).close()
    child = os.fork()
    if child == 0:
        try:
            catalog = Catalog(path)
            for n in range(1_000_000):
                catalog.put_document(document(f"d{n}"), [chunk(f"d{n}-{i}", f"d{n}", i) for i in range(20)])
        finally:
            os._exit(1)
    threading.Event().wait(0.3)
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    catalog = Catalog(path)
    counts = {len(catalog.chunks_of(row.id)) for row in catalog.documents()}
    catalog.close()
    assert counts == {20}


def test_threads_share_a_catalogue(catalog):
    fill(catalog, "a")

    def work(number):
        catalog.put_document(document(f"d{number}"), [chunk(f"d{number}-0", f"d{number}")])
        catalog.put_encoding(encoding(f"d{number}-0", "k"))
        catalog.put_encoding(encoding("a0", f"k{number}"))
        return catalog.chunk(f"d{number}-0").document

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(40))) == [f"d{number}" for number in range(40)]
    assert catalog.stats()["chunks"] == 41
    assert len(catalog.encodings("a0", "alone")) == 40


def test_catalogues_opened_together_are_made_once(tmp_path):
    start = threading.Barrier(6)

    def open_it(number):
        start.wait()
        catalog = Catalog(tmp_path / "catalog.sqlite")
        catalog.set_setting(str(number), number)
        catalog.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(open_it, range(6)))
    catalog = Catalog(tmp_path / "catalog.sqlite")
    assert [catalog.setting(str(number)) for number in range(6)] == list(range(6))
    catalog.close()


def test_a_new_catalogue_waits_for_another_process_that_makes_it(tmp_path):
    path = tmp_path / "catalog.sqlite"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    release.start()
    Catalog(path).close()
    assert not other.in_transaction
    release.join()
    other.close()


def test_only_the_owner_reads_the_catalogue(catalog):
    catalog.set_setting("n", 1)
    files = list(catalog.path.parent.iterdir())
    assert len(files) == 4  # with its lock, the WAL and the WAL's index
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_removed_text_is_overwritten_in_the_file(catalog):
    fill(catalog, "a")
    row = replace(chunk("s", "b"), text="the secret paragraph")
    catalog.put_document(document("b"), [row])
    catalog.remove_document("b")
    catalog.close()  # folds the WAL in
    assert b"the secret paragraph" not in catalog.path.read_bytes()


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + b"junk" * 500, b"x"])
def test_a_file_that_is_no_database_is_refused(tmp_path, content):
    path = tmp_path / "catalog.sqlite"
    path.write_bytes(content)
    with pytest.raises(IndexFormat, match="damaged or no catalogue"):
        Catalog(path)
    assert path.read_bytes() == content


def test_another_programs_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "catalog.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE documents (id)")
        other.commit()
    before = path.read_bytes()
    with pytest.raises(IndexFormat, match="another program"):
        Catalog(path)
    assert path.read_bytes() == before


def test_a_newer_catalogue_is_refused(catalog):
    with contextlib.closing(sqlite3.connect(catalog.path)) as newer:
        newer.execute("INSERT INTO migrations VALUES ('m999_sideways', 0)")
        newer.commit()
    with pytest.raises(IndexFormat, match=r"m999_sideways.*pip install --upgrade"):
        Catalog(catalog.path)


def test_an_older_catalogue_is_migrated_once(catalog, monkeypatch):
    def m002_colours(connection):
        connection.execute("CREATE TABLE colours (name TEXT)")

    fill(catalog, "a")
    monkeypatch.setattr("ragcache.store.database.MIGRATIONS", [*schema_module.MIGRATIONS, m002_colours])
    for _ in range(2):
        migrated = Catalog(catalog.path)
        assert migrated.chunk("a0") == chunk("a0", "a")
        migrated.close()


def test_a_failed_migration_leaves_the_catalogue_as_it_was(catalog, monkeypatch):
    def m002_broken(connection):
        connection.execute("CREATE TABLE colours (name TEXT)")
        connection.execute("CREATE TABLE chunks (name TEXT)")

    fill(catalog, "a")
    with monkeypatch.context() as patch:
        patch.setattr("ragcache.store.database.MIGRATIONS", [*schema_module.MIGRATIONS, m002_broken])
        with pytest.raises(IndexFormat):
            Catalog(catalog.path)
    again = Catalog(catalog.path)
    assert again.read("SELECT name FROM sqlite_master WHERE name = 'colours'") == []
    again.close()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE chunks SET token_ids = x'010203'",
        "UPDATE documents SET metadata = '{'",
        "UPDATE settings SET value = 'x'",
        "UPDATE settings SET value = 2",
    ],
)
def test_damaged_rows_are_an_error_and_not_an_answer(catalog, damage):
    fill(catalog, "a")
    catalog.set_setting("n", 1)
    catalog.put_encoding(encoding("a0", "k"))
    with catalog.transaction() as connection:
        connection.execute(damage)
    with pytest.raises(IndexFormat):
        (catalog.all_chunks(), catalog.documents(), catalog.setting("n"), catalog.encodings("a0", "alone"))


def test_a_torn_file_is_an_error(catalog):
    catalog.put_document(document("d"), [chunk(f"c{n}", "d", n) for n in range(2000)])
    catalog.close()
    raw = bytearray(catalog.path.read_bytes())
    raw[8192:] = b"\xff" * (len(raw) - 8192)
    catalog.path.write_bytes(raw)
    with pytest.raises(IndexFormat):
        Catalog(catalog.path).all_chunks()


def test_a_full_disk_loses_only_the_transaction_that_met_it(catalog):
    fill(catalog, "a")
    pages = catalog.read("PRAGMA page_count")[0][0]
    catalog.read(f"PRAGMA max_page_count = {pages}")
    many = [chunk(f"b{n}", "b", n) for n in range(500)]
    with pytest.raises(StorageFull, match="free some space"):
        catalog.put_document(document("b"), many)
    assert catalog.documents() == [document("a")]
    catalog.read("PRAGMA max_page_count = 1000000")
    catalog.put_document(document("b"), many)
    assert catalog.stats()["chunks"] == 501


def test_a_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(UnusableIndex, match="nowhere"):
        Catalog(tmp_path / "nowhere" / "catalog.sqlite")


def test_a_catalogue_locked_for_too_long_says_so(catalog, monkeypatch):
    monkeypatch.setattr("ragcache.store.database._WAIT_SECONDS", 0.05)
    waiting = Catalog(catalog.path)
    with catalog.transaction(), pytest.raises(UnusableIndex, match="locked"):
        waiting.set_setting("n", 1)
    waiting.close()


def test_no_process_commits_while_another_folds_the_log_in(catalog, monkeypatch):
    monkeypatch.setattr("ragcache.store.database._WAIT_SECONDS", 0.05)
    seen: list[bool] = []

    class Watched:
        """The catalogue's connection; each statement sees whether anybody else could write."""

        def __init__(self, connection):
            self.connection = connection

        def execute(self, statement, *values):
            if "checkpoint" in statement:
                with pytest.raises(TimeoutError), hold_turn(catalog.path.with_suffix(".lock"), 0):
                    pass
                seen.append(True)
            return self.connection.execute(statement, *values)

        def close(self):
            self.connection.close()

    catalog._connection = Watched(catalog._connection)
    catalog.truncate_log()
    assert seen, "the log was folded in"
    with hold_turn(catalog.path.with_suffix(".lock"), 0), pytest.raises(UnusableIndex, match="locked"):
        catalog.truncate_log()


def test_to_open_a_catalogue_keeps_the_locks_that_this_process_has_on_it(catalog):
    catalog.set_setting("n", 1)  # from now on it has a lock as a reader
    Catalog(catalog.path).close()
    script = (
        "import fcntl, struct, sys\n"
        "shared = struct.pack('hhqqi', fcntl.F_WRLCK, 0, 0x40000002, 510, 0)\n"
        "with open(sys.argv[1], 'r+b') as file:\n"
        "    print(struct.unpack('hhqqi', fcntl.fcntl(file, fcntl.F_GETLK, shared))[0] == fcntl.F_UNLCK)\n"
    )
    free = subprocess.run([sys.executable, "-c", script, catalog.path], capture_output=True, text=True, check=True)
    assert free.stdout.strip() == "False", "another process could take it for closed"


def said(id: str, text: str) -> ChunkRow:
    return replace(chunk(id, id[0]), text=text)


def test_chunks_are_found_by_their_words_best_first(catalog):
    catalog.put_document(document("a"), [said("a0", "The ferry leaves at nine."), said("a1", "The mill grinds oats.")])
    catalog.put_document(document("b"), [said("b0", "A ferry, a FERRY and Café QX-417.")])
    assert catalog.search_words("Which ferry?", 5) == ["b0", "a0"]
    assert catalog.search_words("qx-417", 5) == catalog.search_words("cafe", 5) == ["b0"]
    assert catalog.search_words("ferry", 1) == ["b0"]
    assert catalog.search_words("?!", 5) == catalog.search_words("harbour", 5) == []


def test_chunks_of_documents_are_found_by_what_those_are_called(catalog):
    catalog.put_document(document("a", "a.md"), [said("a0", "A ferry."), said("a1", "A mill.")])
    catalog.put_document(document("b", "b.md", called="Handbook"), [said("b0", "Another ferry.")])
    catalog.put_document(document("c", "c.md", called=""), [said("c0", "The last ferry.")])
    assert [one.id for one in catalog.documents(["c", "a", "gone"])] == ["a", "c"]
    assert catalog.chunk_ids(["a.md", "gone.md"]) == ["a0", "a1"]
    assert catalog.chunk_ids(["Handbook", "c.md"]) == ["b0", "c0"]
    assert catalog.chunk_ids(["b.md"]) == catalog.chunk_ids([]) == []
    assert catalog.search_words("ferry", 5, ["a1", "c0", "gone"]) == ["c0"]
    assert catalog.search_words("ferry", 5, []) == []


@pytest.mark.parametrize("word", ["Hauptstraße", "HAUPTSTRAßE", "Büro", "Bu\u0308ro", "buro", "İstanbul", "istanbul"])
def test_words_are_found_however_their_letters_are_written(catalog, word):
    catalog.put_document(document("a"), [said("a0", "Das Büro in İstanbul liegt in der Hauptstraße 5.")])
    assert catalog.search_words(f"Wo ist {word}?", 5) == ["a0"]


def test_words_follow_their_chunks(catalog):
    catalog.put_document(document("a"), [said("a0", "ferry"), said("a1", "mill")])
    catalog.put_document(document("a"), [said("a1", "mill"), said("a2", "bridge")])
    assert [catalog.search_words(word, 5) for word in ("ferry", "mill", "bridge")] == [[], ["a1"], ["a2"]]
    catalog.put_document(document("a"), [said("a1", "windmill"), said("a2", "bridge")])
    assert [catalog.search_words(word, 5) for word in ("mill", "windmill")] == [[], ["a1"]]
    catalog.remove_document("a")
    assert catalog.search_words("windmill bridge", 5) == []


def test_no_word_of_a_removed_text_is_left_in_the_file(catalog):
    catalog.put_document(document("a"), [said("a0", "xylophone")])
    catalog.put_document(document("b"), [said("b0", "mill")])
    held = [path for path in catalog.path.parent.iterdir() if b"xylophone" in path.read_bytes()]
    catalog.remove_document("a")
    catalog.purge()
    assert held
    assert not [path for path in catalog.path.parent.iterdir() if b"xylophone" in path.read_bytes()]
    assert catalog.search_words("mill", 5) == ["b0"]


def test_words_can_be_searched_however_often_texts_were_removed(tmp_path):
    with contextlib.closing(Catalog(tmp_path / "catalog.sqlite", durable=False)) as catalog:
        draw, sizes = random.Random(0), []
        for turn in range(200):
            words = " ".join(f"w{draw.randrange(5000)}" for _ in range(draw.randrange(20, 300)))
            catalog.put_document(document(name := f"d{draw.randrange(6)}"), [
                replace(said(f"{name}{part}", f"{words} turn{turn}"), document=name) for part in range(3)
            ])  # fmt: skip
            catalog.purge()
            sizes.append(catalog.read("SELECT length(block) FROM words_data WHERE id = 10")[0][0])
            assert catalog.search_words(f"turn{turn}", 5) == [f"{name}{part}" for part in range(3)]
        assert max(sizes) < 600, "SQLite 3.40 reads no more than 4,000 bytes, which take a thousand turns"
        standing = {row.text.split()[-1] for row in catalog.all_chunks()}
        assert standing == {word for turn in range(200) if catalog.search_words(word := f"turn{turn}", 1)}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=st.text() | st.sampled_from(['"', "a OR b", "NEAR(a b)", "text: *", "a_b", "\x00"]))
def test_any_question_may_be_searched_for(catalog, question):
    assert isinstance(catalog.search_words(question, 5), list)


def test_a_catalogue_without_words_gets_them(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("ragcache.store.database.MIGRATIONS", schema_module.MIGRATIONS[:3])
        Catalog(tmp_path / "catalog.sqlite").close()
    older = sqlite3.connect(tmp_path / "catalog.sqlite")
    for name in ("a", "b"):
        older.execute("INSERT INTO documents VALUES (?, ?, '', '{}', 0)", (name, name))
        older.execute("INSERT INTO chunks VALUES (?, ?, 0, 'a text', x'01000000', 0, 6)", (f"{name}0", name))
    older.commit()
    older.close()
    catalog = Catalog(tmp_path / "catalog.sqlite")
    assert [row.access for row in catalog.all_chunks()] == [None, None]
    fill(catalog, "c")
    assert catalog.search_words("text", 5) == ["a0", "b0", "c0"]
    catalog.close()
