"""One contract for every LlamaIndex vector store that is wrapped, whoever filled it, and when.

What a store holds already becomes hits, all at once or as queries find it. KV is forgotten when the store says that a
node is gone, and never because it says nothing. All tests are coroutines, since LlamaIndex opens an event loop wherever
none is running, and leaves it open.
"""

import hashlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_index.core")
from conftest import tiny_reader
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import (
    ExactMatchFilter,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    SimpleVectorStore,
)
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery
from llama_index_ragcache import RagCacheLLM, RagCacheVectorStore

from ragcache import RagCache
from ragcache.errors import InvalidArgument
from ragcache.index.collection import Synced

READER = tiny_reader()
TEXTS = [f"The {name} mill grinds rye on the first day of every month." for name in ("Otter", "Tide", "Kelp")]


class Digests(BaseEmbedding):
    """A vector for each text, and no model."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:8]]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def nodes() -> list[TextNode]:
    return [
        TextNode(
            text=text,
            id_=str(uuid.uuid5(uuid.NAMESPACE_OID, text)),
            embedding=Digests().get_text_embedding(text),
            metadata={"page": n},
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"{n}.txt")},
        )
        for n, text in enumerate(TEXTS)
    ]


def chroma() -> BasePydanticVectorStore:
    made = pytest.importorskip("llama_index.vector_stores.chroma").ChromaVectorStore
    import chromadb

    client = chromadb.EphemeralClient()
    return made(chroma_collection=client.create_collection(uuid.uuid4().hex))


def qdrant() -> BasePydanticVectorStore:
    made = pytest.importorskip("llama_index.vector_stores.qdrant").QdrantVectorStore
    from qdrant_client import QdrantClient

    return made("mills", client=QdrantClient(":memory:"))


def faiss() -> BasePydanticVectorStore:
    made = pytest.importorskip("llama_index.vector_stores.faiss").FaissVectorStore
    from faiss import IndexFlatL2

    return made(faiss_index=IndexFlatL2(8))


STORES: dict[str, Callable[[], BasePydanticVectorStore]] = {
    "chroma": chroma,
    "qdrant": qdrant,
    "simple": SimpleVectorStore,
    "faiss": faiss,
}
WITH_TEXT = ["chroma", "qdrant"]
pytestmark = [
    pytest.mark.filterwarnings("ignore:builtin type:DeprecationWarning"),  # faiss's own, as it is imported
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant"),
]


@pytest.fixture
def rag(tmp_path: Path) -> Iterator[RagCache]:
    with RagCache.open(tmp_path / "index", model=READER) as rag:
        yield rag


def wrapped(plain: BasePydanticVectorStore, rag: RagCache, **how: Any) -> RagCacheVectorStore:
    return RagCacheVectorStore(plain, rag, collection="mills", **how)


def over(store: BasePydanticVectorStore) -> VectorStoreIndex:
    """An index over nodes, with a docstore of its own where the vector store keeps no text."""
    storage = StorageContext.from_defaults(vector_store=store)
    return VectorStoreIndex(nodes(), storage_context=storage, embed_model=Digests())


def answered(index: VectorStoreIndex, rag: RagCache) -> list[str]:
    """The cache states of one answer over all nodes."""
    seen: list[list[str]] = []

    class Noting(RagCacheLLM):
        def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
            said = super().complete(prompt, formatted, **kwargs)
            seen.append([chunk["cache"] for chunk in said.additional_kwargs["ragcache"]["chunks"]])
            return said

        def chat(self, messages: Sequence[Any], **kwargs: Any) -> Any:
            said = super().chat(messages, **kwargs)
            seen.append([chunk["cache"] for chunk in said.additional_kwargs["ragcache"]["chunks"]])
            return said

    index.as_query_engine(llm=Noting(rag, max_tokens=1), similarity_top_k=3).query("Which mill?")
    [states] = seen
    return states


def kept(rag: RagCache) -> set[str]:
    """Texts whose KV the index holds."""
    rows = rag.index.catalog.read("SELECT DISTINCT text FROM chunks JOIN encodings ON encodings.chunk = chunks.id")
    return {text for (text,) in rows}


# -- filled before it was wrapped


@pytest.mark.parametrize("name", WITH_TEXT)
async def test_what_a_query_finds_is_a_hit_the_next_time(name: str, rag: RagCache) -> None:
    plain = STORES[name]()
    plain.add(nodes())
    index = VectorStoreIndex.from_vector_store(wrapped(plain, rag), embed_model=Digests())
    assert answered(index, rag) == ["miss"] * 3
    assert kept(rag) == set(TEXTS)
    assert set(answered(index, rag)) <= {"hit", "exact"}


@pytest.mark.parametrize("name", WITH_TEXT)
async def test_filling_can_be_bounded_and_switched_off(name: str, rag: RagCache) -> None:
    plain = STORES[name]()
    plain.add(nodes())
    off = VectorStoreIndex.from_vector_store(wrapped(plain, rag, fill=0), embed_model=Digests())
    assert [answered(off, rag) for _ in range(2)] == [[], []]
    store = VectorStoreIndex.from_vector_store(wrapped(plain, rag, fill=2), embed_model=Digests())
    for text in TEXTS:
        store.as_retriever(similarity_top_k=1).retrieve(text)
        assert rag.stats()["chunks"] <= 2
    assert {text for _, text in rag.index.catalog.texts()} == set(TEXTS[1:])


@pytest.mark.parametrize("name", WITH_TEXT)
async def test_a_store_that_lists_what_it_holds_is_adopted_whole(name: str, rag: RagCache) -> None:
    plain = STORES[name]()
    plain.add(nodes())
    store = wrapped(plain, rag)
    done = store.adopt()
    assert (done.added, done.removed, done.notes, kept(rag)) == (3, 0, (), set(TEXTS))
    index = VectorStoreIndex.from_vector_store(store, embed_model=Digests())
    assert set(answered(index, rag)) <= {"hit", "exact"}
    plain.delete("1.txt")  # behind its back
    again = store.adopt()
    assert (again.added, again.removed, again.unchanged, kept(rag)) == (0, 1, 2, {TEXTS[0], TEXTS[2]})


@pytest.mark.parametrize("name", ["simple", "faiss"])
async def test_a_store_without_text_is_adopted_from_the_docstore(name: str, rag: RagCache) -> None:
    plain = STORES[name]()
    index = over(plain)
    store = wrapped(plain, rag)
    with pytest.raises(InvalidArgument, match=r"no way to list.*adopt\(index\.docstore\.docs\.values\(\)\)"):
        store.adopt()
    done = store.adopt(index.docstore.docs.values())
    assert (done.added, kept(rag)) == (3, set(TEXTS))
    assert set(answered(index, rag)) <= {"hit", "exact"}


async def test_a_listing_that_may_be_cut_short_forgets_nothing(rag: RagCache, monkeypatch: pytest.MonkeyPatch) -> None:
    store = wrapped(SimpleVectorStore(), rag)
    store.add(nodes())

    def first(self: SimpleVectorStore, node_ids: Any = None, filters: Any = None) -> list[BaseNode]:
        return list(nodes()[:1])

    monkeypatch.setattr(SimpleVectorStore, "get_nodes", first)
    assert store.adopt().removed == 0
    assert kept(rag) == set(TEXTS)


# -- nothing is forgotten for want of evidence


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("name", STORES)
async def test_sync_forgets_what_is_gone_and_nothing_else(name: str, rag: RagCache, is_async: bool) -> None:
    plain = STORES[name]()
    store = wrapped(plain, rag)
    store.add(nodes())

    async def sync() -> Synced:
        return await store.async_sync() if is_async and name != "qdrant" else store.sync()  # it has a client for each

    done = await sync()
    assert (done.removed, kept(rag)) == (0, set(TEXTS))
    if name == "faiss":  # it can neither say what it has, nor delete
        assert "cannot say which ids" in done.note
        return
    plain.delete("0.txt")  # behind its back
    assert ((await sync()).removed, kept(rag)) == (1, set(TEXTS[1:]))
    for text in (1, 2):
        plain.delete(f"{text}.txt")
    done = await sync()
    assert (done.removed, kept(rag)) == (0, set(TEXTS[1:]))  # an empty answer is no evidence
    assert "kv.clear()" in done.note
    store.kv.clear()
    assert kept(rag) == set()


# -- what is deleted through the wrapper is forgotten


@pytest.mark.parametrize("name", WITH_TEXT)
async def test_what_only_a_query_brought_goes_when_its_document_does(name: str, rag: RagCache) -> None:
    plain = STORES[name]()
    plain.add(nodes())
    store = wrapped(plain, rag)
    index = VectorStoreIndex.from_vector_store(store, embed_model=Digests())
    answered(index, rag)
    store.delete("0.txt")
    assert kept(rag) == set(TEXTS[1:])
    store.delete_nodes([nodes()[1].node_id])
    assert kept(rag) == {TEXTS[2]}


async def test_deleting_by_a_filter_forgets_what_was_chosen_and_no_more(rag: RagCache) -> None:
    for name in ("chroma", "qdrant", "simple"):
        store = RagCacheVectorStore(STORES[name](), rag, collection=name)
        store.add(nodes())
        store.delete_nodes(filters=MetadataFilters(filters=[ExactMatchFilter(key="page", value=1)]))
        assert len(store.kv.names()) == 2, name
        store.kv.clear()


async def test_deleting_what_has_no_document_leaves_what_has_one(rag: RagCache) -> None:
    store = wrapped(SimpleVectorStore(), rag)
    alone = TextNode(text="A bridge of stone.", id_="alone", embedding=[0.0] * 8)
    store.add([*nodes(), alone])
    store.delete("None")
    assert kept(rag) == set(TEXTS)


async def test_what_cannot_be_told_is_kept_and_said(rag: RagCache, monkeypatch: pytest.MonkeyPatch) -> None:
    store = wrapped(faiss(), rag)
    store.add(nodes())
    monkeypatch.setattr(type(store.store), "delete_nodes", lambda *_, **__: None)
    page = MetadataFilters(filters=[ExactMatchFilter(key="page", value=1)])
    with pytest.warns(UserWarning, match="cannot say which ids"):
        store.delete_nodes(filters=page)
    assert kept(rag) == set(TEXTS)


def later() -> BasePydanticVectorStore:
    """A store whose client is asynchronous, and that cannot be asked in any other way."""
    made = pytest.importorskip("llama_index.vector_stores.qdrant").QdrantVectorStore
    from qdrant_client import AsyncQdrantClient

    return made("mills", aclient=AsyncQdrantClient(":memory:"))


@pytest.mark.parametrize("is_async", [False, True])
async def test_deleting_by_a_filter_goes_on_behind_the_store_s_limit(
    rag: RagCache, monkeypatch: pytest.MonkeyPatch, is_async: bool
) -> None:
    plain = later() if is_async else qdrant()
    store = wrapped(plain, rag)
    await store.async_add(nodes()) if is_async else store.add(nodes())
    for name in ("get_nodes", "aget_nodes"):  # as if it held a few more than it names at most
        monkeypatch.setattr(type(plain), name, partialmethod(getattr(type(plain), name), limit=2))
    mills = MetadataFilters(filters=[MetadataFilter(key="page", value=-1, operator=FilterOperator.GT)])
    await store.adelete_nodes(filters=mills) if is_async else store.delete_nodes(filters=mills)
    left = await plain.aget_nodes() if is_async else plain.get_nodes()
    assert (left, kept(rag), store.kv.names()) == ([], set(), [])


async def test_a_store_that_names_what_is_gone_is_told_the_filter_itself(
    rag: RagCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = wrapped(SimpleVectorStore(), rag)
    store.add(nodes())
    first = nodes()[:1]
    monkeypatch.setattr(SimpleVectorStore, "get_nodes", lambda *_: first)  # whatever was deleted
    pages = MetadataFilters(filters=[MetadataFilter(key="page", value=2, operator=FilterOperator.LT)])
    store.delete_nodes(filters=pages)
    assert ([*store.store.data.embedding_dict], kept(rag)) == ([nodes()[2].node_id], {TEXTS[2]})


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("name", WITH_TEXT)
async def test_what_a_refused_add_would_replace_is_still_there(name: str, rag: RagCache, is_async: bool) -> None:
    plain = later() if is_async and name == "qdrant" else STORES[name]()
    store = wrapped(plain, rag)

    async def add(some: Sequence[BaseNode]) -> None:
        await store.async_add(some) if is_async else store.add(some)

    async def texts() -> set[str]:
        found = await store.aget_nodes([one.node_id for one in nodes()]) if is_async else store.get_nodes(None)
        return {one.get_content() for one in found}

    await add(nodes())
    [changed, *rest] = nodes()
    changed.text, changed.embedding = "The Otter mill burnt down.", [0.5] * 3
    with pytest.raises(Exception, match=r"dimension|shape|broadcast"):
        await add([changed])
    assert (await texts(), kept(rag)) == (set(TEXTS), set(TEXTS[1:]))
    changed.embedding = [0.5] * 8
    for _ in range(2):
        await add([changed, rest[0]])
        assert await texts() == kept(rag) == {changed.text, *TEXTS[1:]}


class Appending(SimpleVectorStore):
    """Keeps both texts of an id that comes twice."""

    _rows: list[BaseNode] = PrivateAttr(default_factory=list)

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        self._rows += nodes
        return [one.node_id for one in nodes]

    def get_nodes(self, node_ids: Any = None, filters: Any = None) -> list[BaseNode]:
        return [one for one in self._rows if one.node_id in node_ids]

    def delete_nodes(self, node_ids: Any = None, filters: Any = None, **kwargs: Any) -> None:
        self._rows = [one for one in self._rows if one.node_id not in node_ids]


class Silent(Appending):
    """The same, which does not say what it has."""

    def get_nodes(self, node_ids: Any = None, filters: Any = None) -> list[BaseNode]:
        raise NotImplementedError


class AppendingLater(Appending):
    """The same, asynchronous only."""

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        return Appending.add(self, nodes)

    async def aget_nodes(self, node_ids: Any = None, filters: Any = None) -> list[BaseNode]:
        return Appending.get_nodes(self, node_ids)

    async def adelete_nodes(self, node_ids: Any = None, filters: Any = None, **kwargs: Any) -> None:
        Appending.delete_nodes(self, node_ids)

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        raise AttributeError("'NoneType' object has no attribute 'upsert'")

    def get_nodes(self, node_ids: Any = None, filters: Any = None) -> list[BaseNode]:
        raise AttributeError("'NoneType' object has no attribute 'scroll'")

    def delete_nodes(self, node_ids: Any = None, filters: Any = None, **kwargs: Any) -> None:
        raise AttributeError("'NoneType' object has no attribute 'delete'")


@pytest.mark.parametrize("kind", [Appending, Silent, AppendingLater])
async def test_a_store_that_keeps_both_texts_of_an_id_is_left_with_the_new_one(
    rag: RagCache, kind: type[Appending]
) -> None:
    store = wrapped(kind(), rag)
    changed = nodes()[0]
    changed.text = "The Otter mill burnt down."
    for some in (nodes(), [changed]):
        await store.async_add(some) if kind is AppendingLater else store.add(some)
    assert sorted(one.get_content() for one in store.store._rows) == sorted(kept(rag))
    assert kept(rag) == {changed.text, *TEXTS[1:]}


async def test_bookkeeping_that_fails_fails_no_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    RagCache.open(tmp_path / "index", model=READER).close()
    monkeypatch.setattr("ragcache.store.database.is_writable", lambda path: False)
    plain = chroma()
    plain.add(nodes())
    asked = VectorStoreQuery(query_embedding=[0.5] * 8, similarity_top_k=3)
    with RagCache.open(tmp_path / "index", model=READER) as rag:
        store = wrapped(plain, rag)
        for found in (store.query(asked), await store.aquery(asked)):
            assert len(found.nodes or ()) == 3


async def test_a_document_whose_name_is_no_valid_unicode_comes_and_goes(rag: RagCache) -> None:
    store = wrapped(SimpleVectorStore(), rag)
    strange = nodes()[:1]
    strange[0].relationships = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="\udcff.txt")}
    store.add([*strange, nodes()[1]])
    assert kept(rag) == set(TEXTS[:2])
    store.delete("\udcff.txt")
    assert kept(rag) == {TEXTS[1]}


async def test_a_second_folders_collection_of_the_same_name_does_not_overwrite_the_firsts(
    rag: RagCache, tmp_path: Path
) -> None:
    made = pytest.importorskip("llama_index.vector_stores.chroma").ChromaVectorStore
    RagCacheVectorStore(made.from_params("mills", persist_dir=str(tmp_path / "one")), rag).add(nodes())
    second = made.from_params("mills", persist_dir=str(tmp_path / "two"))
    with pytest.raises(InvalidArgument, match=r"keeps the collection 'mills' of .*one, not of .*two; .*collection="):
        RagCacheVectorStore(second, rag)
    assert RagCacheVectorStore(second, rag, collection="two").kv.names() == []
