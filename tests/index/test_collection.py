"""The chunks of another program's vector store: what it holds has KV, what it lost has none, whatever the order."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import tiny_reader
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragcache import METHODS, RagCache
from ragcache.engine.engine import Engine
from ragcache.index.chunks import chunk_id, document_id
from ragcache.index.collection import Collection, Entry
from ragcache.index.index import Index
from ragcache.model.reader import Reader
from ragcache.report import ChunkReport
from ragcache.store.words import optimize_words

READER = tiny_reader()
WORDS = ["the mill grinds rye", "a bridge of stone", "boats in spring", "  the mill grinds rye\n", "", " \n "]
METHOD = METHODS["in-document"]


def collection(index: Index, name: str = "notes") -> Collection:
    assert METHOD.encode is not None
    encoder = METHOD.encode
    return Collection(index, name, lambda: {encoder.recipe: len(list(index.encode(encoder)))})


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index(tmp_path / "index", READER) as index:
        yield index


def blobs(index: Index) -> set[str]:
    return set(index.store.list()) - {index.prefix_key}


def expected(held: dict[str, Entry]) -> dict[str, list[str]]:
    """Each document's distinct texts in order of place and arrival."""
    texts: dict[str, list[str]] = {}
    for entry in sorted(held.values(), key=lambda entry: entry.place):
        if entry.text.strip() and entry.text.strip() not in texts.setdefault(entry.document, []):
            texts[entry.document].append(entry.text.strip())
    return {document: found for document, found in texts.items() if found}


def found(index: Index) -> dict[str, list[str]]:
    rows = index.catalog.documents()
    return {json.loads(row.source)[1]: [one.text for one in index.catalog.chunks_of(row.id)] for row in rows}


entries = st.builds(
    Entry,
    st.sampled_from(["a", "b", "c", "d"]),
    st.sampled_from(WORDS),
    st.sampled_from(["one", "two"]),
    st.tuples(st.integers(0, 2)),
)
steps = st.one_of(
    st.tuples(st.just("add"), st.lists(entries, max_size=4)),
    st.tuples(st.just("discard"), st.lists(st.sampled_from(["a", "b", "c", "z"]), max_size=3)),
    st.tuples(st.just("discard_document"), st.sampled_from(["one", "two", "three"])),
    st.tuples(st.just("clear"), st.none()),
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(steps, min_size=1, max_size=7))
def test_the_index_holds_what_the_store_holds(tmp_path_factory: pytest.TempPathFactory, todo: list) -> None:
    held: dict[str, Entry] = {}
    with Index(tmp_path_factory.mktemp("held") / "index", READER) as index:
        notes = collection(index)
        for verb, argument in todo:
            match verb:
                case "add":
                    notes.add(argument)
                    for entry in {entry.name: entry for entry in argument}.values():
                        # A known name keeps its turn, unless it was blank meanwhile.
                        if entry.text.strip():
                            held[entry.name] = entry
                        else:
                            held.pop(entry.name, None)
                case "discard":
                    notes.discard(argument)
                    held = {name: entry for name, entry in held.items() if name not in argument}
                case "discard_document":
                    notes.discard_document(argument)
                    held = {name: entry for name, entry in held.items() if entry.document != argument}
                case "clear":
                    notes.clear()
                    held = {}
            assert found(index) == expected(held)
            assert notes.names() == list(held)
            assert METHOD.encode is not None
            if verb == "add":  # every chunk has its KV; one that lost what it stood behind waits for the next
                assert index.missing(METHOD.encode) == []
            keys = {key for (key,) in index.catalog.read("SELECT DISTINCT key FROM encodings")}
            assert blobs(index) == keys  # and no KV is of anything else


def test_an_entry_is_found_by_its_own_name_where_texts_are_alike(index: Index) -> None:
    notes = collection(index)
    notes.add([Entry("a", WORDS[0], "one"), Entry("b", WORDS[0], "two")])
    engine = Engine(READER, index)
    first = engine.chunk(WORDS[0]).source
    sources = [engine.chunk(WORDS[0], name).source for name in ("b", "a", "unknown")]
    assert sources == ["two", "one", first]
    assert engine.chunk(f" {WORDS[0]}\n", "b").id == chunk_id(document_id(json.dumps(["notes", "two"])), WORDS[0])
    assert engine.chunk("never seen", "b").source == ""


def test_collections_of_the_same_names_do_not_meet(index: Index) -> None:
    one, other = collection(index, "one"), collection(index, "other")
    for each in (one, other):
        each.add([Entry("a", WORDS[0], "doc"), Entry("b", WORDS[1], "doc")])
    assert len(blobs(index)) == 2  # the same tokens behind the same context are one KV
    one.clear()
    assert other.names() == ["a", "b"]
    assert len(blobs(index)) == 2
    other.discard(["b"])
    assert len(blobs(index)) == 1


def test_what_was_ingested_already_is_not_encoded_again(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    assert METHOD.encode is not None
    index.put("mill.txt", "", [(WORDS[0], 0, 1), (WORDS[1], 1, 2)], {})
    assert len(list(index.encode(METHOD.encode))) == 2
    monkeypatch.setattr(Reader, "encode_all", lambda *_: pytest.fail("it was encoded again"))
    collection(index).add([Entry("a", WORDS[0], "mill", (0,)), Entry("b", WORDS[1], "mill", (1,))])
    assert index.missing(METHOD.encode) == []


def test_threads_that_add_to_one_document_lose_nothing(index: Index) -> None:
    texts = [f"line {number} of the log, which is long enough to be told apart" for number in range(12)]

    def add(number: int) -> None:
        collection(index).add([Entry(str(number), texts[number], "log", (number,))])

    threads = [threading.Thread(target=add, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found(index) == {"log": texts}


def test_a_text_that_is_deleted_through_the_store_is_overwritten_at_once(index: Index) -> None:
    notes = collection(index)
    notes.add([Entry("a", WORDS[0], "doc", (0,)), Entry("b", WORDS[1], "doc", (1,))])
    notes.discard(["a"])
    files = [path for path in index.path.rglob("*") if path.is_file()]
    assert [path.name for path in files if WORDS[0].encode() in path.read_bytes()] == []
    assert [path.name for path in files if WORDS[1].encode() in path.read_bytes()] != []


def test_many_entries_that_go_at_once_purge_the_index_of_words_once(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    purges: list[None] = []

    def count_purge(connection: sqlite3.Connection) -> None:
        purges.append(None)
        optimize_words(connection)

    monkeypatch.setattr("ragcache.store.catalog.optimize_words", count_purge)
    notes = collection(index)
    texts = [f"{WORDS[0]} {number}" for number in range(5)]
    notes.add([Entry(str(number), text, str(number)) for number, text in enumerate(texts)])
    notes.discard(["0", "1", "2", "3"])
    assert found(index) == {"4": [texts[4]]}
    assert len(purges) == 1


def states(chunks: tuple[ChunkReport, ...]) -> list[tuple[str, str]]:
    return [(chunk.source, chunk.cache) for chunk in chunks]


def test_kv_of_a_text_that_is_deleted_meanwhile_is_not_kept(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = collection(index)
    notes.add([Entry("a", WORDS[0], "doc", (0,)), Entry("b", WORDS[1], "doc", (1,))])
    [first, second] = index.chunks([row.id for row in index.catalog.all_chunks()])
    assert METHOD.encode is not None
    index.forget([row.key for row in index.catalog.encodings(second.id, METHOD.encode.recipe)])
    encode = Reader.encode_all

    def while_deleting(self: Reader, todo: list) -> list:
        made = encode(self, todo)
        monkeypatch.undo()
        notes.discard(["a"])
        return made

    monkeypatch.setattr(Reader, "encode_all", while_deleting)
    index.make(second, METHOD.encode)  # behind the first, which goes before it is stored
    assert [row.text for row in index.catalog.all_chunks()] == [WORDS[1]]
    assert blobs(index) == set()
    monkeypatch.setattr(Reader, "encode_all", while_deleting)
    index.make(first, METHOD.encode)  # of a chunk that is gone itself
    assert blobs(index) == set()


def test_two_that_have_an_index_open_lose_nothing_to_each_other(tmp_path: Path) -> None:
    with Index(tmp_path / "index", READER) as one, Index(tmp_path / "index", READER) as other:
        assert one.writing is other.writing
        assert one.encoding is other.encoding


def test_names_that_stand_for_another_text_are_told(index: Index) -> None:
    notes = collection(index)
    notes.add([Entry("a", WORDS[0], "doc"), Entry("b", WORDS[1], "doc")])
    same, other, blank = Entry("a", f" {WORDS[0]}", "doc"), Entry("b", WORDS[2], "doc"), Entry("a", " ", "doc")
    assert notes.changed([same, other, Entry("new", WORDS[0], "doc")]) == ["b"]
    assert notes.changed([blank]) == ["a"]


def test_what_has_no_words_is_passed_over_and_the_rest_is_not_lost(index: Index) -> None:
    notes = collection(index)
    notes.add([Entry("a", "lone \ud800 surrogate", "doc"), Entry("b", WORDS[1], "doc"), Entry("c", " ", "doc")])
    assert notes.names() == ["b"]
    assert Entry.of("x", "text", {"page": "9" * 5000, "source": [1], "start_index": 3}).place == (0, 3, 0)


def test_files_of_a_folder_and_a_collection_named_like_it_do_not_meet(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.txt").write_text("The mill grinds rye on Mondays.")
    with RagCache.open(tmp_path / "index") as rag:
        rag.collection(str(folder)).add([Entry.of("a", "The ferry is late.", {"source": "b.txt"})])
        rag.ingest(folder)
        assert rag.stats()["chunks"] == 2


def test_vectors_go_before_their_chunks_do(tmp_path: Path) -> None:
    with RagCache.open(tmp_path / "index") as rag:
        notes = rag.collection("notes")
        notes.add([Entry.of(name, f"The {name} project is led by Mara Voss.", {}) for name in ("Tide", "Otter")])
        rag.retrieve("Who?")
        notes.discard(["Tide"])
        assert rag._vectors.ids() == [chunk for chunk, _ in rag.index.catalog.texts()]


def test_ask_finds_what_a_store_added_and_not_what_it_dropped(tmp_path: Path) -> None:
    with RagCache.open(tmp_path / "index") as rag:
        notes = rag.collection("notes")
        notes.add([Entry.of("a", "The Tide project is led by Mara Voss.", {"source": "tide.txt"})])
        answer = rag.ask("Who leads the Tide project?")
        assert answer.text == "Mara Voss"
        assert states(answer.report.chunks) == [("tide.txt", "exact")]
        notes.add([Entry.of("b", "The Otter project is led by Jon Hale.", {"source": "otter.txt"})])
        notes.discard(["a"])  # as many as before, and others
        answer = rag.ask("Who leads the Otter project?")
        assert answer.text == "Jon Hale"
        assert [source for source, _ in states(answer.report.chunks)] == ["otter.txt"]


@pytest.mark.parametrize(
    ("metadata", "document", "place"),
    [
        ({"source": "a.txt", "start_index": 7}, "a.txt", (0, 7, 0)),
        ({"source": "a.pdf", "page": 3, "start_index": 7}, "a.pdf", (3, 7, 0)),
        ({"ref_doc_id": "d1", "source": "a.txt", "start_char_idx": 5}, "d1", (0, 0, 5)),
        ({"source": 12, "page": "iv", "start_index": None}, "12", (0, 0, 0)),
    ],
)
def test_metadata_tells_document_and_place(metadata: dict, document: str, place: tuple) -> None:
    entry = Entry.of("x", "text", metadata)
    assert (entry.document, entry.place) == (document, place)


@pytest.mark.parametrize("metadata", [None, {}, {"source": ""}, {"ref_doc_id": "None"}])
def test_what_comes_without_a_document_is_one_of_its_own(metadata: dict | None) -> None:
    one, again, other = (Entry.of(name, text, metadata) for name, text in (("x", "text"), ("y", "text "), ("z", "tex")))
    assert one.document == again.document != other.document


def test_a_text_that_came_through_two_doors_is_retrieved_once(tmp_path: Path) -> None:
    texts = [f"The {name} project is led by Mara Voss." for name in ("Tide", "Otter", "Kelp", "Dune")]
    with RagCache.open(tmp_path / "index") as rag:
        for name in ("one", "other", "third"):
            rag.collection(name).add([Entry.of(f"{n}", text, {"source": f"{n}.txt"}) for n, text in enumerate(texts)])
        assert rag.stats()["chunks"] == 12
        found = rag.retrieve("Who leads the Otter project?", top_k=3)
        assert found[0].text == texts[1]
        assert len({chunk.text for chunk in found}) == 3
        assert [chunk.score for chunk in found] == sorted((chunk.score for chunk in found), reverse=True)
        assert len(rag.retrieve("Who?", top_k=50)) == 4
