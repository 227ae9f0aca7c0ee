"""One contract for every LangChain vector store that is wrapped, whoever filled it, and when.

What a store holds already becomes hits, all at once or as searches find it. KV is forgotten when the store says that an
entry is gone, and never because it says nothing.
"""

import hashlib
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_core")
from conftest import tiny_reader
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_ragcache import ChatRagCache, RagCacheVectorStore

from ragcache import RagCache
from ragcache.errors import InvalidArgument, StorageFull
from ragcache.index.collection import Entry

READER = tiny_reader()
TEXTS = [f"The {name} mill grinds rye on the first day of every month." for name in ("Otter", "Tide", "Kelp")]
DOCUMENTS = [Document(text, metadata={"source": f"{n}.txt"}) for n, text in enumerate(TEXTS)]


class Digests(Embeddings):
    """A vector for each text, and no model."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:8]] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class Later(VectorStore):
    """A store like `langchain_postgres.AsyncPGVectorStore`: asynchronous, found by id, and with no way to list."""

    def __init__(self) -> None:
        self._rows = InMemoryVectorStore(Digests())

    @classmethod
    def from_texts(cls, *args: Any, **kwargs: Any) -> "Later":
        raise NotImplementedError("Sync methods are not implemented for Later.")

    def similarity_search(self, *args: Any, **kwargs: Any) -> list[Document]:
        raise NotImplementedError("Sync methods are not implemented for Later.")

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        raise NotImplementedError("Sync methods are not implemented for Later.")

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        raise NotImplementedError("Sync methods are not implemented for Later.")

    async def aadd_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        return await self._rows.aadd_documents(documents, **kwargs)

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return await self._rows.asimilarity_search(query, k)

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        return await self._rows.aget_by_ids(ids)

    async def adelete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        await self._rows.adelete(list(self._rows.store) if ids is None else ids)
        return True


def faiss() -> VectorStore:
    pytest.importorskip("faiss")
    from faiss import IndexFlatL2

    community = pytest.importorskip("langchain_community.vectorstores")
    docstore = pytest.importorskip("langchain_community.docstore.in_memory")
    return community.FAISS(Digests(), IndexFlatL2(8), docstore.InMemoryDocstore(), {})


def qdrant() -> VectorStore:
    made = pytest.importorskip("langchain_qdrant").QdrantVectorStore
    return made.construct_instance(Digests(), client_options={"location": ":memory:"}, collection_name="mills")


def chroma() -> VectorStore:
    store = pytest.importorskip("langchain_chroma").Chroma("mills", Digests())
    store.reset_collection()
    return store


STORES: dict[str, Callable[[], VectorStore]] = {
    "faiss": faiss,
    "qdrant": qdrant,
    "chroma": chroma,
    "in-memory": lambda: InMemoryVectorStore(Digests()),
    "async-only": Later,
}
LISTING = [name for name in STORES if name != "async-only"]
pytestmark = [
    pytest.mark.filterwarnings("ignore:builtin type:DeprecationWarning"),  # faiss's own, as it is imported
    pytest.mark.filterwarnings("ignore:.*langchain-community.*:DeprecationWarning"),
]


@pytest.fixture
def rag(tmp_path: Path) -> Iterator[RagCache]:
    with RagCache.open(tmp_path / "index", model=READER) as rag:
        yield rag


@pytest.fixture(params=STORES)
def plain(request: pytest.FixtureRequest) -> VectorStore:
    return STORES[request.param]()


def wrapped(plain: VectorStore, rag: RagCache, **how: Any) -> RagCacheVectorStore:
    return RagCacheVectorStore(plain, rag, collection="mills", **how)


async def filled(store: VectorStore) -> list[str]:
    return await store.aadd_documents(DOCUMENTS)


async def answered(store: VectorStore, rag: RagCache) -> list[str]:
    """The cache states of one answer over all that the store has."""
    found = await store.asimilarity_search("mill", k=len(TEXTS))
    prompt = "\n\n".join(one.page_content for one in found) + "\n\nWhich mill?"
    said = await ChatRagCache(rag, max_tokens=1).ainvoke(prompt)
    return [chunk["cache"] for chunk in said.response_metadata["ragcache"]["chunks"]]


def kept(rag: RagCache) -> set[str]:
    """Texts whose KV the index holds."""
    rows = rag.index.catalog.read("SELECT DISTINCT text FROM chunks JOIN encodings ON encodings.chunk = chunks.id")
    return {text for (text,) in rows}


# -- filled before it was wrapped


async def test_what_a_search_finds_is_a_hit_the_next_time(plain: VectorStore, rag: RagCache) -> None:
    await filled(plain)
    store = wrapped(plain, rag)
    assert await answered(store, rag) == ["miss"] * 3
    assert kept(rag) == set(TEXTS)
    assert set(await answered(store, rag)) <= {"hit", "exact"}


async def test_filling_can_be_bounded_and_switched_off(plain: VectorStore, rag: RagCache) -> None:
    await filled(plain)
    off = wrapped(plain, rag, fill=0)
    assert [await answered(off, rag) for _ in range(2)] == [[], []]
    assert rag.stats()["chunks"] == 0
    store = wrapped(plain, rag, fill=2)
    for text in TEXTS:
        await store.asimilarity_search(text, k=1)
        assert rag.stats()["chunks"] <= 2
    assert {text for _, text in rag.index.catalog.texts()} == set(TEXTS[1:])  # the oldest went


@pytest.mark.parametrize("name", LISTING)
async def test_a_store_that_lists_what_it_holds_is_adopted_whole(name: str, rag: RagCache) -> None:
    plain = STORES[name]()
    ids = await filled(plain)
    store = wrapped(plain, rag)
    await store.asimilarity_search("mill", k=1)  # known already, and alone
    done = store.adopt()
    assert (done.added + done.changed + done.unchanged, done.removed, done.notes) == (3, 0, ())
    assert sorted(row.source for row in rag.index.catalog.documents()) == [f'["mills", "{n}.txt"]' for n in range(3)]
    assert kept(rag) == set(TEXTS)
    assert set(await answered(store, rag)) <= {"hit", "exact"}
    await plain.adelete([ids[1]])  # behind its back
    again = store.adopt()
    assert (again.added, again.changed, again.removed, again.unchanged) == (0, 0, 1, 2)
    assert kept(rag) == {TEXTS[0], TEXTS[2]}


async def test_a_store_that_cannot_list_is_adopted_by_what_it_is_said_to_hold(rag: RagCache) -> None:
    plain = Later()
    ids = await filled(plain)
    store = wrapped(plain, rag)
    with pytest.raises(InvalidArgument, match=r"Later has no way to list.*adopt\(documents\)"):
        store.adopt()
    done = store.adopt(await plain.aget_by_ids(ids))
    assert (done.added, kept(rag)) == (3, set(TEXTS))
    assert store.adopt([]).removed == 0  # that is no listing of everything
    assert kept(rag) == set(TEXTS)
    assert set(await answered(store, rag)) <= {"hit", "exact"}


@pytest.mark.parametrize("name", LISTING)
async def test_a_rebuilt_store_takes_its_texts_to_their_new_names(
    name: str, rag: RagCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = STORES[name]()
    ids = await filled(plain)
    store = wrapped(plain, rag)
    store.adopt()
    await plain.adelete(ids)
    await filled(plain)  # the same texts, under new random ids
    monkeypatch.setattr(type(READER), "encode_all", lambda *_: pytest.fail("it was encoded again"))
    done = store.adopt()
    assert (done.added, done.removed, done.notes) == (3, 3, ())
    assert not set(store.kv.names()) & set(ids)


# -- nothing is forgotten for want of evidence


async def test_sync_forgets_what_is_gone_and_nothing_else(plain: VectorStore, rag: RagCache) -> None:
    store = wrapped(plain, rag)
    ids = await filled(store)
    assert (await store.async_sync()).removed == 0
    assert kept(rag) == set(TEXTS)
    await plain.adelete([ids[0]])  # behind its back
    done = await store.async_sync()
    assert (done.asked, done.removed, done.note) == (3, 1, "")
    assert kept(rag) == set(TEXTS[1:])
    again = store.sync()  # what cannot be asked this way has not lost anything
    assert again.removed == 0
    assert kept(rag) == set(TEXTS[1:])


async def test_an_empty_answer_is_no_evidence(plain: VectorStore, rag: RagCache) -> None:
    store = wrapped(plain, rag)
    await plain.adelete(await filled(store))  # all, behind its back
    done = await store.async_sync()
    assert done.removed == 0
    assert "kv.clear()" in done.note
    assert kept(rag) == set(TEXTS)
    if not isinstance(plain, Later):
        adopted = store.adopt()
        assert (adopted.removed, kept(rag)) == (0, set(TEXTS))
        assert "kv.clear()" in adopted.notes[0]
    store.kv.clear()
    assert kept(rag) == set()


@pytest.mark.parametrize(
    "answer",
    [
        lambda names: [],
        lambda names: [Document("x", id=f"mills/{name}") for name in names],
        lambda names: [Document("x", id=names[0]), Document("y")],
        lambda names: 1 / 0,
    ],
    ids=["nothing", "ids of another form", "one without an id", "a failure"],
)
async def test_answers_that_may_be_about_something_else_forget_nothing(
    rag: RagCache, monkeypatch: pytest.MonkeyPatch, answer: Callable[[Sequence[str]], list[Document]]
) -> None:
    store = wrapped(InMemoryVectorStore(Digests()), rag)
    await filled(store)
    monkeypatch.setattr(store.store, "get_by_ids", answer)
    with suppress(ZeroDivisionError):
        assert store.sync().note
    assert kept(rag) == set(TEXTS)


async def test_ids_that_are_uuids_are_the_same_with_and_without_dashes(rag: RagCache) -> None:
    store = wrapped(qdrant(), rag)
    ids = await filled(store)
    assert "-" not in ids[0]  # as LangChain makes them
    [found] = store.get_by_ids([ids[0]])
    assert "-" in found.metadata["_id"]  # as Qdrant has them
    await store.adelete([found.metadata["_id"]])
    assert kept(rag) == set(TEXTS[1:])
    assert store.sync().removed == 0


async def test_numbers_are_ids_too(rag: RagCache) -> None:
    store = wrapped(qdrant(), rag)
    store.add_documents(DOCUMENTS, ids=[1, 2, 3])
    assert store.kv.names() == ["1", "2", "3"]
    assert (store.sync().note, kept(rag)) == ("", set(TEXTS))
    store.delete([2])
    assert kept(rag) == {TEXTS[0], TEXTS[2]}
    store.store.delete([3])
    assert store.sync().removed == 1


# -- what is deleted through the wrapper is forgotten


async def test_deleting_by_id_forgets_that_entry_and_no_other(plain: VectorStore, rag: RagCache) -> None:
    store = wrapped(plain, rag)
    ids = await filled(store)
    await store.adelete([ids[1]])
    assert kept(rag) == {TEXTS[0], TEXTS[2]}
    assert len(await answered(store, rag)) == 2


async def test_what_only_a_search_brought_goes_when_it_is_deleted(plain: VectorStore, rag: RagCache) -> None:
    ids = await filled(plain)
    store = wrapped(plain, rag)
    await answered(store, rag)
    await store.adelete([ids[0]])
    assert kept(rag) == set(TEXTS[1:])


async def test_deleting_by_other_means_forgets_what_the_store_has_no_longer(rag: RagCache) -> None:
    later = wrapped(Later(), rag)
    await filled(later)
    await later.adelete()  # everything, of which the store says so itself: it had these ids before
    assert kept(rag) == set()


async def test_what_cannot_be_told_is_kept_and_said(rag: RagCache, monkeypatch: pytest.MonkeyPatch) -> None:
    class Mute(InMemoryVectorStore):
        get_by_ids = VectorStore.get_by_ids

        def drop_old(self) -> None:
            self.store.clear()

    store = wrapped(Mute(Digests()), rag)
    await filled(store)
    assert "cannot say" in store.sync().note
    with pytest.warns(UserWarning, match=r"'mills' cannot say which ids it has.*kv\.clear\(\)"):
        store.drop_old()
    assert kept(rag) == set(TEXTS)


def test_documents_without_ids_are_found_by_their_text_when_they_are_deleted(rag: RagCache) -> None:
    class Nameless(InMemoryVectorStore):
        def similarity_search(self, *args: Any, **kwargs: Any) -> list[Document]:
            found = super().similarity_search(*args, **kwargs)
            return [Document(one.page_content, metadata=one.metadata) for one in found]

    plain = Nameless(Digests())
    ids = plain.add_documents(DOCUMENTS)
    store = wrapped(plain, rag)
    store.similarity_search("mill", k=3)
    assert rag.stats()["chunks"] == 3

    def text_of(names: Sequence[str]) -> list[Document]:
        return [Document(plain.store[name]["text"]) for name in names]

    plain.get_by_ids = text_of  # type: ignore[method-assign, assignment]
    store.delete([ids[0]])
    assert {text for _, text in rag.index.catalog.texts()} == set(TEXTS[1:])


async def test_every_search_of_a_store_brings_what_it_finds(rag: RagCache) -> None:
    plain = faiss()
    await filled(plain)
    vector = Digests().embed_query(TEXTS[0])
    ways: list[tuple[str, Any]] = [
        ("similarity_search_with_score", "mill"),
        ("similarity_search_by_vector", vector),
        ("max_marginal_relevance_search", "mill"),
        ("similarity_search_with_score_by_vector", vector),
    ]
    for number, (name, query) in enumerate(ways):
        store = RagCacheVectorStore(plain, rag, collection=f"way {number}")
        assert len(getattr(store, name)(query, k=3)) == 3
        assert len(store.kv.names()) == 3


# -- what stands in the way of bookkeeping stands in nobody else's


@pytest.mark.parametrize("is_async", [False, True])
async def test_chroma_is_asked_for_ids_whatever_its_entries_lack(rag: RagCache, is_async: bool) -> None:
    store = wrapped(chroma(), rag)
    store.add_texts(["A bridge of stone."], ids=["bare"])  # LangChain's own get_by_ids fails at it
    ids = store.add_documents(DOCUMENTS)
    done = await store.async_sync() if is_async else store.sync()
    assert (done.asked, done.removed, done.note) == (4, 0, "")
    for where, chosen in (({"source": "0.txt"}, None), ({"source": "1.txt"}, [ids[1]])):
        await store.adelete(chosen, where=where) if is_async else store.delete(chosen, where=where)
    assert kept(rag) == {"A bridge of stone.", TEXTS[2]}
    assert sorted(store.store.get()["documents"]) == sorted(kept(rag))


@pytest.mark.parametrize("answers", [0, 1])
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_store_that_fails_to_say_what_it_has_deletes_and_forgets_nothing(
    rag: RagCache, is_async: bool, answers: int
) -> None:
    class Failing(InMemoryVectorStore):
        left = answers

        def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
            Failing.left -= 1
            if Failing.left < 0:
                raise OSError("the network is gone")
            return super().get_by_ids(ids)

        def drop_old(self) -> None:
            self.store.clear()

        async def adrop_old(self) -> None:
            self.store.clear()

    store = wrapped(Failing(Digests()), rag)
    store.add_documents(DOCUMENTS)
    with pytest.warns(UserWarning, match="cannot say which ids it has"):
        await store.adrop_old() if is_async else store.drop_old()
    assert (store.store.store, kept(rag)) == ({}, set(TEXTS))
    done = await store.async_sync() if is_async else store.sync()
    assert "the network is gone" in done.note


class Nameless(Later):
    """Documents come without ids from its searches."""

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return [Document(one.page_content) for one in await super().asimilarity_search(query, k)]

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        self._rows.delete(ids)
        return True


async def test_deleting_by_id_is_not_stopped_by_a_store_that_finds_nothing_by_id(rag: RagCache) -> None:
    plain = Nameless()
    ids = await filled(plain)
    store = wrapped(plain, rag)
    await store.asimilarity_search("mill", k=3)
    with pytest.warns(UserWarning, match=r"'mills' cannot say what its ids stand for.*kv\.clear\(\)"):
        store.delete([ids[0]])
    assert (len(plain._rows.store), rag.stats()["chunks"]) == (2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await store.adelete([ids[1]])  # asked in its asynchronous way, it says which text that was
    assert {text for _, text in rag.index.catalog.texts()} == {TEXTS[0], TEXTS[2]}
    assert len(plain._rows.store) == 1


async def test_an_index_that_may_only_be_read_is_searched_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    RagCache.open(tmp_path / "index", model=READER).close()
    monkeypatch.setattr("ragcache.store.database.is_writable", lambda path: False)
    plain = InMemoryVectorStore(Digests())
    plain.add_documents(DOCUMENTS)
    with RagCache.open(tmp_path / "index", model=READER) as rag:
        store = wrapped(plain, rag)
        assert len(store.similarity_search("mill", k=3)) == len(await store.asimilarity_search("mill", k=3)) == 3


def test_a_disk_that_is_full_fails_no_search(
    rag: RagCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any) -> None:
        raise StorageFull("the disk refused a write")

    plain = InMemoryVectorStore(Digests())
    plain.add_documents(DOCUMENTS)
    store = wrapped(plain, rag)
    monkeypatch.setattr(store.kv, "_enter", full)
    with caplog.at_level(logging.WARNING):
        assert len(store.similarity_search("mill", k=3)) == 3
    assert "what a search of 'mills' found is not kept: the disk refused a write" in caplog.text


def test_names_of_documents_that_are_no_valid_unicode_are_taken(rag: RagCache) -> None:
    strange = [Document(text, metadata={"source": f"\udcff{n}"}) for n, text in enumerate(TEXTS)]
    plain = InMemoryVectorStore(Digests())
    plain.add_documents(strange[:1])
    store = wrapped(plain, rag)
    assert len(store.similarity_search("mill", k=1)) == 1
    store.add_documents(strange[1:])
    assert {text for _, text in rag.index.catalog.texts()} == set(TEXTS)
    assert len(rag.index.catalog.documents()) == 3
    assert Entry.of("a", "b", {"source": "\udcff", "title": "\ud800"}).document == "\\udcff"


def test_what_is_added_while_a_search_notes_it_stays_in_its_document(rag: RagCache) -> None:
    notes = rag.collection("mills")
    entry = Entry("a", TEXTS[0], "mill", (3,))
    lock = rag.index.writing

    class Late:
        """Somebody else is ahead of the search."""

        def __enter__(self) -> None:
            rag.index.writing = lock
            notes.add([entry])
            lock.__enter__()

        def __exit__(self, *error: Any) -> None:
            lock.__exit__(*error)

    rag.index.writing = Late()  # type: ignore[assignment]
    notes.note([Entry("a", TEXTS[0], "mill", (3,))], 10)
    [row] = rag.index.catalog.documents()
    assert row.source == '["mills", "mill"]'


def in_folder(folder: Path) -> VectorStore:
    return pytest.importorskip("langchain_chroma").Chroma(persist_directory=str(folder), embedding_function=Digests())


def test_a_second_folders_collection_of_the_same_name_does_not_overwrite_the_firsts(
    rag: RagCache, tmp_path: Path
) -> None:
    first = RagCacheVectorStore(in_folder(tmp_path / "one"), rag)
    first.add_documents(DOCUMENTS, ids=["a", "b", "c"])
    with pytest.raises(
        InvalidArgument, match=r"keeps the collection 'langchain' of .*one, not of .*two; .*collection="
    ):
        RagCacheVectorStore(in_folder(tmp_path / "two"), rag)
    second = RagCacheVectorStore(in_folder(tmp_path / "two"), rag, collection="two")
    second.add_documents([Document("It grinds oats.")], ids=["a"])
    assert first.kv.names() == ["a", "b", "c"]
    assert RagCacheVectorStore(in_folder(tmp_path / "one"), rag).kv.names() == ["a", "b", "c"]  # itself again
