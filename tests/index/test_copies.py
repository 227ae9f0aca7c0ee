"""A text that several documents have: the KV of the one that the prompt is about, or of none."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import tiny_reader
from engine.test_prompt_parser import states

from ragcache import RagCache
from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.index.collection import Entry
from ragcache.index.copies import mark_copies, resolve_copies
from ragcache.index.index import Index
from ragcache.methods import find_method
from ragcache.model.decode import Sampling
from ragcache.store import Access

OTTER, HERON = "# The Otter ferry\n\nThis page is about it.", "# The Heron ferry\n\nThis page is about it."
TEXT = "It leaves at nine in the morning, and takes cars as well as people."
MORE = "The kiosk at the pier sells coffee."
SHORT = Sampling(max_new_tokens=2)


def put(index: Index, source: str, *texts: str, access: tuple[Access, ...] = ()) -> list[Chunk]:
    index.put(source, "", [(text, 0, len(text)) for text in texts], {}, access)
    document = index.catalog.document_by_source(source)
    return index.chunks([row.id for row in index.catalog.chunks_of(document.id)]) if document else []


def by_blank_lines(text: str) -> list[str]:
    return text.split("\n\n\n")


def encode(index: Index) -> None:
    for name in ("auto", "naive"):
        encoder = find_method(name).encode
        assert encoder is not None
        list(index.encode(encoder))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Index(tmp_path / "index", tiny_reader()) as index:
        put(index, "otter", OTTER, TEXT)
        put(index, "heron", HERON, TEXT, MORE)
        encode(index)
        yield Engine(index.reader, index, "auto")


def ask(engine: Engine, *texts: str, method: str | None = None) -> list[tuple[str, str]]:
    """Sources and states of what a prompt reuses that quotes these texts."""
    prompt = "Context:\n\n" + "\n\n".join(texts) + "\n\nWhen does it leave?"
    return states(engine.complete(prompt, method=method, sampling=SHORT).report)


@pytest.mark.parametrize(("header", "source"), [(OTTER, "otter"), (HERON, "heron")])
def test_the_document_that_the_prompt_has_more_of_is_meant(engine: Engine, header: str, source: str) -> None:
    assert ask(engine, header, TEXT) == ask(engine, TEXT, header)[::-1] == [(source, "hit")] * 2


def test_its_kv_is_the_documents_own(engine: Engine) -> None:
    for header, source in ((OTTER, "otter"), (HERON, "heron")):
        found = resolve_copies(engine.index, mark_copies(engine.index, [engine.chunk(header), engine.chunk(TEXT)]))
        own = put(engine.index, source, header, TEXT, *([MORE] if header == HERON else []))
        assert [chunk.id for chunk in found] == [chunk.id for chunk in own[:2]]


def test_where_several_documents_are_meant_the_text_is_prefilled(engine: Engine) -> None:
    texts = (OTTER, HERON, TEXT)
    assert [state for _, state in ask(engine, *texts)] == ["hit", "hit", "miss"]
    stream = engine.complete("\n\n".join(texts) + "\n\nWhen?", sampling=SHORT)
    assert "1 chunks stand in several documents of this prompt" in stream.report.notes[-1]
    tokens = stream.report.tokens
    assert tokens.reused + tokens.recomputed == sum(chunk.tokens for chunk in stream.report.chunks[:2])


def test_where_none_is_known_no_document_is_followed_and_the_kv_is_kept(engine: Engine) -> None:
    stream = engine.complete(f"{TEXT}\n\nWhen does it leave?", sampling=SHORT)
    assert "1 chunks stand in several documents, of which the prompt has nothing else" in stream.report.notes[-1]
    assert [chunk.left for chunk in stream.report.chunks] == [""]
    again = engine.complete(f"{TEXT}\n\nWhen does it leave?", sampling=SHORT)
    assert [(chunk.cache, chunk.left) for chunk in again.report.chunks] == [("hit", "system prefix")]
    alone = engine.answer("When does it leave?", [engine.index.uncached_chunk(TEXT)], sampling=SHORT)
    by_index = engine.answer("When does it leave?", [engine.chunk(TEXT)], sampling=SHORT)
    assert alone.text == by_index.text


def test_methods_that_follow_no_document_take_whichever_is_there(engine: Engine) -> None:
    for texts in ((TEXT,), (OTTER, HERON, TEXT)):
        assert {state for _, state in ask(engine, *texts, method="naive")} == {"hit"}


def test_a_document_that_was_copied_as_a_whole_is_one_and_the_same(engine: Engine) -> None:
    put(engine.index, "copy of otter", OTTER, TEXT)
    engine.index.remove("heron")
    encode(engine.index)
    assert [state for _, state in ask(engine, TEXT)] == ["hit"]


def test_a_text_twice_in_one_document_is_no_copy(engine: Engine) -> None:
    chunks = put(engine.index, "otter", OTTER, MORE[:-1], TEXT, MORE[:-1])
    assert mark_copies(engine.index, chunks[1:2] + chunks[3:]) == chunks[1:2] + chunks[3:]


def test_a_copy_is_not_taken_whose_readers_are_fewer(engine: Engine) -> None:
    """Who was shown the text as anybody's may not be among those who may read what stands before it elsewhere."""
    put(engine.index, "otter", OTTER, TEXT, MORE[:-1], access=(frozenset({"crew"}), frozenset({"crew"}), None))
    encode(engine.index)
    engine.index.remove("heron")
    put(engine.index, "heron", HERON, TEXT)
    encode(engine.index)
    [_, text] = engine.complete(f"{MORE[:-1]}\n\n{TEXT}\n\nWhen?", sampling=SHORT).report.chunks
    assert text.left in ("", "system prefix")
    assert ask(engine, HERON, TEXT) == [("heron", "hit")] * 2


@pytest.mark.parametrize("labelled", ["a", "b"])
@pytest.mark.parametrize("method", ["fusionrag", "cachecraft"])
def test_no_kv_is_taken_that_was_made_behind_what_fewer_may_read(tmp_path: Path, method: str, labelled: str) -> None:
    """Whichever of the copies is found first; by chunks that are alike, or that stood in an earlier prompt."""
    boss, public = frozenset({"boss"}), "b" if labelled == "a" else "a"
    with RagCache.open(tmp_path / "index", model=tiny_reader(), method=method) as rag:
        rag.collection("s").add(
            [
                Entry("1", TEXT, public),
                Entry("2", TEXT, labelled, access=boss),
                Entry("3", f"{TEXT} {MORE}", "c", access=boss),
            ]
        )
        secret, text = rag.engine.chunk(f"{TEXT} {MORE}", "3"), rag.engine.chunk(TEXT, "2")
        rag.engine.answer("When?", [secret, text], sampling=SHORT)
        access = {row.id: row.access for row in rag.index.catalog.all_chunks()}
        [told] = rag.engine.answer("When?", [rag.engine.chunk(TEXT)], sampling=SHORT).report.chunks
        assert access[told.id] is None
        assert told.left in ("", "system prefix", "system prefix + 0 neighbours")


@pytest.mark.parametrize(("method", "state"), [("fusionrag", "miss"), ("cachecraft", "miss"), ("naive", "hit")])
def test_copies_that_none_of_their_readers_share_are_prefilled(tmp_path: Path, method: str, state: str) -> None:
    with RagCache.open(tmp_path / "index", model=tiny_reader(), method=method) as rag:
        rag.collection("s").add([Entry(name, TEXT, name, access=frozenset({name})) for name in ("crew", "guests")])
        answer = rag.engine.answer("When?", [rag.engine.chunk(TEXT)], sampling=SHORT)
        assert [chunk.cache for chunk in answer.report.chunks] == [state]
        assert any("documents of different readers" in said for said in answer.report.notes)


def test_a_vector_stores_own_name_says_which_is_meant(tmp_path: Path) -> None:
    with RagCache.open(tmp_path / "index", model=tiny_reader()) as rag:
        rag.collection("ferries").add(
            [Entry.of(f"{source}{place}", text, {"source": source, "start_index": place})
             for source, header in (("otter", OTTER), ("heron", HERON)) for place, text in enumerate((header, TEXT))]
        )  # fmt: skip
        named = [rag.engine.chunk(TEXT, name) for name in ("otter1", "heron1", "heron0")]
        assert [(chunk.source, chunk.origin) for chunk in named] == [
            ("otter", "known"), ("heron", "known"), (named[2].source, "unknown")
        ]  # fmt: skip


def test_a_search_finds_the_text_once_and_answers_from_the_right_document(tmp_path: Path) -> None:
    for name, header in (("otter", OTTER), ("heron", HERON)):
        (tmp_path / f"{name}.txt").write_text(f"{header}\n\n\n{TEXT}\n")
    with RagCache.open(tmp_path / "index", model=tiny_reader(), splitter=by_blank_lines) as rag:
        rag.ingest(sorted(tmp_path.glob("*.txt")), chunk_tokens=200, titles="none")
        assert rag.index.catalog.stats()["chunks"] == 4
        assert [chunk.origin for chunk in rag.retrieve(TEXT, top_k=3)].count("unknown") == 1
        for name in ("Otter", "Heron"):
            answer = rag.ask(f"{name} ferry page: it leaves at nine in the morning", top_k=2, sampling=SHORT)
            assert {Path(chunk.source).stem for chunk in answer.report.chunks} == {name.lower()}


def test_the_kv_in_the_prompt_is_that_of_the_document(engine: Engine) -> None:
    [header, text] = engine.index.chunks([chunk.id for chunk in put(engine.index, "heron", HERON, TEXT, MORE)[:2]])
    direct = engine.answer("When?", [header, text], sampling=SHORT)
    unclear = engine.answer("When?", [header, engine.chunk(TEXT)], sampling=SHORT)
    assert [chunk.id for chunk in unclear.report.chunks] == [chunk.id for chunk in direct.report.chunks]
    assert unclear.text == direct.text
