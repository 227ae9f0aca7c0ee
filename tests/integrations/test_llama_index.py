"""A contract for LlamaIndex, which has no conformance suite: each way to an answer, and each way a node comes and goes.

Sync and async, plain and streamed, each response mode, the chat engines: what is verbatim in the prompt is a hit.
"""

import asyncio
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

pytest.importorskip("llama_index.vector_stores.chroma")
import chromadb
from integrations.notes import asked, embedded, pieces, stored
from llama_index.core import Document, PromptTemplate, StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock, ThinkingBlock
from llama_index.core.ingestion import IngestionCache, IngestionPipeline
from llama_index.core.llms import LLM, CustomLLM, MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import ExactMatchFilter, MetadataFilters, SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from llama_index.vector_stores.chroma import ChromaVectorStore
from llama_index_ragcache import RagCacheLLM, RagCacheRetriever, RagCacheSynthesizer, RagCacheVectorStore

from ragcache import RagCache, Sampling
from ragcache.engine.engine import Engine
from ragcache.engine.prefill import choose_strategy
from ragcache.engine.request import RequestOptions
from ragcache.engine.stream import Stream
from ragcache.errors import InvalidArgument
from ragcache.index.chunks import Chunk
from ragcache.prompt import Segment
from ragcache.retrieve.places import Mark

TOP = 4
#: Response mode to how many prompts it makes of TOP nodes, and how many chunks are verbatim in each.
MODES = {
    "compact": (1, TOP),
    "tree_summarize": (1, TOP),
    "compact_accumulate": (1, TOP),
    "refine": (TOP, 1),
    "accumulate": (TOP, 1),
}


class MiniLM(BaseEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        return embedded([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return embedded([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return embedded([query])[0]


def nodes() -> list[TextNode]:
    return [
        TextNode(
            text=one.text,
            id_=f"{one.source} {one.start}",
            start_char_idx=one.start,
            metadata={"file_name": one.source},
            excluded_embed_metadata_keys=["file_name"],  # as the index itself embeds
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=one.source)},
        )
        for one in pieces()
    ]


def chroma(name: str) -> ChromaVectorStore:
    client = chromadb.EphemeralClient()
    return ChromaVectorStore(chroma_collection=client.get_or_create_collection(name))


def over(store: RagCacheVectorStore) -> VectorStoreIndex:
    return VectorStoreIndex.from_vector_store(store, embed_model=MiniLM())


@pytest.fixture(scope="module")
def rag(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RagCache]:
    with RagCache.open(tmp_path_factory.mktemp("llama") / "index", dtype="float32", retriever="dense") as rag:
        yield rag


@pytest.fixture(scope="module")
def index(rag: RagCache) -> VectorStoreIndex:
    storage = StorageContext.from_defaults(vector_store=RagCacheVectorStore(chroma("corpus"), rag))
    return VectorStoreIndex(nodes(), storage_context=storage, embed_model=MiniLM())


@pytest.fixture
def llm(rag: RagCache) -> RagCacheLLM:
    return RagCacheLLM(rag, max_tokens=24)


@pytest.fixture
def small(tmp_path: Any) -> Iterator[RagCache]:
    with RagCache.open(tmp_path / "index") as rag:
        yield rag


def hits(stream: Stream) -> list[str]:
    return [chunk.cache for chunk in stream.report.chunks]


async def said(engine: Any, question: str, *, is_async: bool) -> tuple[str, Any]:
    """An answer's text by whatever way, and the response."""
    response = await engine.aquery(question) if is_async else engine.query(question)
    if hasattr(response, "async_response_gen"):
        return "".join([piece async for piece in response.async_response_gen()]), response
    if hasattr(response, "response_gen"):
        return "".join(response.response_gen), response
    return str(response), response


# -- answers


def test_the_classes_are_what_llama_index_takes_them_for() -> None:
    assert issubclass(RagCacheVectorStore, BasePydanticVectorStore)
    assert issubclass(RagCacheLLM, CustomLLM)
    assert LLM in RagCacheLLM.__mro__
    assert BaseSynthesizer in RagCacheSynthesizer.__mro__
    assert [RagCacheVectorStore.class_name(), RagCacheLLM.class_name()] == ["RagCacheVectorStore", "RagCacheLLM"]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("mode", MODES)
async def test_every_response_mode_finds_what_it_left_verbatim(
    index: VectorStoreIndex, llm: RagCacheLLM, streams: list[Stream], mode: str, streaming: bool, is_async: bool
) -> None:
    if streaming and "accumulate" in mode:
        pytest.skip("LlamaIndex refuses to stream this mode")
    engine = index.as_query_engine(llm=llm, response_mode=mode, streaming=streaming, similarity_top_k=TOP)
    text, response = await said(engine, asked()[0], is_async=is_async)
    prompts, chunks = MODES[mode]
    assert text.strip()
    assert len(response.source_nodes) == TOP
    assert len(streams) == prompts
    assert all(len(hits(stream)) == chunks and "miss" not in hits(stream) for stream in streams)


@pytest.mark.slow
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("streaming", [False, True])
async def test_nodes_are_answered_as_the_engine_answers_in_their_order(
    index: VectorStoreIndex, llm: RagCacheLLM, rag: RagCache, streaming: bool, is_async: bool
) -> None:
    synthesizer = RagCacheSynthesizer(llm, streaming=streaming)
    engine = index.as_query_engine(llm=llm, response_synthesizer=synthesizer, similarity_top_k=6)
    for question in asked():
        own = rag.engine.answer(question, rag.retrieve(question, top_k=6), method=rag.method)
        text, response = await said(engine, question, is_async=is_async)
        assert [one.text for one in own.sources] == [node.get_content() for node in response.source_nodes]
        assert text.rstrip() == own.text
        told = response.metadata["ragcache"]
        assert [chunk["id"] for chunk in told["chunks"]] == [one.id for one in own.sources]
        assert "miss" not in [chunk["cache"] for chunk in told["chunks"]]


def test_the_first_token_is_the_engine_s_and_all_recomputed_it_is_full_prefill(
    index: VectorStoreIndex, rag: RagCache, streams: list[Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts: list[Any] = []
    complete = Engine.complete

    def noted(self: Engine, prompt: Any, **how: Any) -> Stream:
        prompts.append(prompt)
        return complete(self, prompt, **how)

    monkeypatch.setattr(Engine, "complete", noted)
    for recompute in (None, 1.0):
        engine = index.as_query_engine(llm=RagCacheLLM(rag, recompute=recompute), similarity_top_k=TOP)
        for question in asked()[:4]:
            engine.query(question)
            request = rag.engine.requests.from_prompt(prompts[-1], RequestOptions(rag.method, recompute))
            own = choose_strategy(request.method).prefill(request, rag.index)
            assert own.prompt.token_ids == streams[-1].prompt.token_ids
            assert torch.equal(streams[-1].logits, own.logits)
            if recompute == 1:
                stock, _ = rag.reader.stock(own.prompt.token_ids)
                assert (own.logits - stock).abs().max() <= 1e-4


@pytest.mark.parametrize("mode", ["context", "condense_plus_context", "simple"])
@pytest.mark.parametrize("is_async", [False, True])
async def test_chat_engines_keep_their_hits_in_every_turn(
    index: VectorStoreIndex, llm: RagCacheLLM, streams: list[Stream], mode: str, is_async: bool
) -> None:
    how = {"chat_mode": mode, "llm": llm, "similarity_top_k": TOP}
    # Not the default memory, which leaves a database connection open behind itself.
    engine = index.as_chat_engine(**how, memory=ChatMemoryBuffer.from_defaults(llm=llm))
    for question in asked()[:2]:
        response = await engine.achat(question) if is_async else engine.chat(question)
        assert str(response).strip()
        assert hits(streams[-1]) == [] if mode == "simple" else set(hits(streams[-1])) <= {"hit", "exact"}
        assert len(hits(streams[-1])) == (0 if mode == "simple" else TOP)
    engine.reset()
    assert "".join(engine.stream_chat(asked()[0]).response_gen).strip()


def test_simple_summarize_prints_a_list_into_the_prompt_and_is_told_so(small: RagCache, streams: list[Stream]) -> None:
    store = RagCacheVectorStore(chroma("printed"), small)
    lines = "The Otter ferry crosses the sound every hour.\nIt carries forty cars, said the harbour master."
    store.add([TextNode(text=lines, id_="otter", embedding=embedded([lines])[0])])
    llm = RagCacheLLM(small, max_tokens=4)
    over(store).as_query_engine(llm=llm, response_mode="simple_summarize").query("How many cars?")
    assert hits(streams[-1]) == []
    assert "simple_summarize" in streams[-1].report.notes[0]
    over(store).as_query_engine(llm=llm, response_synthesizer=RagCacheSynthesizer(llm)).query("How many cars?")
    assert hits(streams[-1]) == ["exact"]


async def test_the_event_loop_goes_on_while_an_answer_is_made(
    index: VectorStoreIndex, llm: RagCacheLLM, streams: list[Stream]
) -> None:
    message = [ChatMessage(role=MessageRole.USER, content=asked()[0])]
    one, other, *_ = await asyncio.gather(llm.acomplete(asked()[0]), llm.acomplete(asked()[0]), llm.achat(message))
    assert one.text == other.text == llm.complete(asked()[0]).text
    own = streams.pop()  # the one just made here
    parts = [part async for part in await llm.astream_complete(asked()[0])]
    chat = [part async for part in await llm.astream_chat(message)]
    assert parts[-1].text.rstrip() == one.text
    assert chat[-1].message.content.rstrip() == llm.chat(message).message.content
    streams.pop()
    assert own.thread not in {stream.thread for stream in streams}


def test_conversations_options_and_refusals(index: VectorStoreIndex, llm: RagCacheLLM, rag: RagCache) -> None:
    turns = [
        ChatMessage(role=MessageRole.SYSTEM, content="Answer briefly."),
        ChatMessage(role=MessageRole.USER, content=nodes()[0].text),
        ChatMessage(role=MessageRole.USER, content=asked()[0]),
    ]
    response = llm.chat(turns, max_tokens=1, recompute=0.5)
    told = response.additional_kwargs
    assert (told["completion_tokens"], told["ragcache"]["recompute"]) == (1, 0.5)
    assert [chunk["cache"] for chunk in told["ragcache"]["chunks"]] == ["hit"]
    assert RagCacheLLM(rag, stop=["e"], max_tokens=24).chat(turns).message.content.count("e") == 0
    with pytest.raises(InvalidArgument, match="image"):
        llm.chat([ChatMessage(role=MessageRole.USER, blocks=[ImageBlock(url="http://x/y.png")])])
    with pytest.raises(InvalidArgument, match="blank"):
        llm.complete(" ")
    assert llm.metadata.context_window == rag.reader.limit
    assert llm.metadata.is_chat_model


def test_the_retriever_gives_nodes_that_are_hits(rag: RagCache, index: VectorStoreIndex, llm: RagCacheLLM) -> None:
    retriever = RagCacheRetriever(rag, similarity_top_k=3)
    assert [one.node.node_id for one in retriever.retrieve(asked()[0])] == [
        chunk.id for chunk in rag.retrieve(asked()[0], top_k=3)
    ]
    engine = RetrieverQueryEngine(retriever, RagCacheSynthesizer(llm))
    told = engine.query(asked()[0]).metadata["ragcache"]
    assert "miss" not in [chunk["cache"] for chunk in told["chunks"]]


def test_the_retriever_says_page_and_heading_where_a_file_has_them() -> None:
    chunks = [
        Chunk("a", "a.pdf", "one", Segment((1,), "one"), 0.5, (Mark(0, 2, "Costs"),)),
        Chunk("b", "b.txt", "two", Segment((1,), "two"), 0.4),
    ]
    rag: Any = SimpleNamespace(retrieve=lambda question, top_k: chunks)
    first, second = RagCacheRetriever(rag).retrieve("?")
    assert first.node.metadata == {"source": "a.pdf", "page": 2, "heading": "Costs"}
    assert first.node.get_content(MetadataMode.LLM) == first.node.get_content(MetadataMode.EMBED) == "one"
    assert second.node.metadata == {"source": "b.txt"}


def test_what_is_no_store_or_no_index_is_refused_where_it_is_handed_over(rag: RagCache) -> None:
    plain = SimpleVectorStore()
    for other in (None, "./index", rag.index):
        with pytest.raises(InvalidArgument, match=r"rag is .*; give the index that keeps the KV, RagCache\.open"):
            RagCacheVectorStore(plain, other, collection="refused")
    for other in (rag, SimpleVectorStore, MiniLM()):
        with pytest.raises(InvalidArgument, match=r"store is .*; give the vector store to wrap"):
            RagCacheVectorStore(other, rag, collection="refused")


# -- the life of KV


def held(store: RagCacheVectorStore, rag: RagCache) -> set[str]:
    """Texts that the index has; the store's names for them are among its own."""
    return stored(rag)


def ready(count: int) -> list[TextNode]:
    some = nodes()[:count]
    for node, vector in zip(some, embedded([node.text for node in some]), strict=True):
        node.embedding = vector
    return some


@pytest.mark.parametrize("is_async", [False, True])
async def test_every_way_of_deleting_deletes_the_kv(small: RagCache, is_async: bool) -> None:
    store = RagCacheVectorStore(chroma(f"deleting-{is_async}"), small)
    one, two, *rest = some = ready(8)
    assert (await store.async_add(some) if is_async else store.add(some)) == [node.node_id for node in some]
    assert held(store, small) == {node.text for node in some}
    await store.adelete_nodes([one.node_id]) if is_async else store.delete_nodes([one.node_id])
    assert held(store, small) == {node.text for node in (two, *rest)}
    page = some[-1].metadata["file_name"]
    chosen = MetadataFilters(filters=[ExactMatchFilter(key="file_name", value=page)])
    await store.adelete_nodes(filters=chosen) if is_async else store.delete_nodes(filters=chosen)
    left = [node for node in (two, *rest) if node.metadata["file_name"] != page]
    assert left
    assert held(store, small) == {node.text for node in left}
    gone = left[0].ref_doc_id
    await store.adelete(gone) if is_async else store.delete(gone)
    assert held(store, small) == {node.text for node in left if node.ref_doc_id != gone}
    store.add(some)
    await store.aclear() if is_async else store.clear()
    assert held(store, small) == set()
    assert store.kv.names() == []


def test_an_index_inserts_refreshes_and_deletes(small: RagCache) -> None:
    storage = StorageContext.from_defaults(vector_store=RagCacheVectorStore(chroma("refreshed"), small))
    pages = [Document(text=f"Page {n} tells of the {n}th mill.", id_=f"page {n}") for n in range(3)]
    index = VectorStoreIndex.from_documents(pages[:2], storage_context=storage, embed_model=MiniLM())
    store = index.vector_store
    index.insert(pages[2])
    assert held(store, small) == {page.text for page in pages}
    index.update_ref_doc(Document(text="Page 1 was written anew.", id_="page 1"))
    assert held(store, small) == {pages[0].text, "Page 1 was written anew.", pages[2].text}
    index.delete_ref_doc("page 0")
    assert held(store, small) == {"Page 1 was written anew.", pages[2].text}


def test_a_pipeline_with_its_cache_on_never_leaves_kv_out(small: RagCache) -> None:
    cache = IngestionCache()
    pages = [Document(text=f"Page {n} tells of the {n}th mill.", id_=f"page {n}") for n in range(3)]

    def run(store: RagCacheVectorStore, pages: list[Document], docstore: SimpleDocumentStore | None = None) -> None:
        pipeline = IngestionPipeline(
            transformations=[SentenceSplitter(), MiniLM()], vector_store=store, cache=cache, docstore=docstore
        )
        pipeline.run(documents=pages)

    first = RagCacheVectorStore(chroma("piped"), small)
    run(first, pages)
    first.clear()
    assert held(first, small) == set()
    run(first, pages)  # every transformation comes from the cache now
    assert held(first, small) == {page.text for page in pages}
    docstore, second = SimpleDocumentStore(), RagCacheVectorStore(chroma("piped-again"), small)
    run(second, pages, docstore)
    run(second, [Document(text="Page 1 was written anew.", id_="page 1")], docstore)
    assert "Page 1 was written anew." in held(second, small)
    assert sources(small).count('["piped-again", "page 1"]') == 1


def sources(rag: RagCache) -> list[str]:
    return [row.source for row in rag.index.catalog.documents()]


def test_any_store_can_be_wrapped(small: RagCache, tmp_path: Any) -> None:
    with pytest.raises(InvalidArgument, match="SimpleVectorStore has no name"):
        RagCacheVectorStore(SimpleVectorStore(), small)
    store = RagCacheVectorStore(SimpleVectorStore(), small, collection="simple")
    store.add(iter(ready(2)))
    other = TextNode(text="A bridge of stone.", embedding=embedded(["A bridge of stone."])[0])
    store.add([other])
    assert len(held(store, small)) == 3
    page = MetadataFilters(filters=[ExactMatchFilter(key="file_name", value=nodes()[0].metadata["file_name"])])
    store.delete_nodes(filters=page)  # it cannot say which, but has fewer ids than before
    assert held(store, small) == {"A bridge of stone."}
    store.persist(str(tmp_path / "store.json"))
    assert (tmp_path / "store.json").exists()
    assert RagCacheVectorStore(chroma("named"), small).kv.name == "named"


def test_metadata_around_a_chunk_is_fresh_text(small: RagCache, streams: list[Stream]) -> None:
    store = RagCacheVectorStore(chroma("metadata"), small)
    text = "The Otter ferry crosses the sound every hour. It carries forty cars."
    node = TextNode(text=f"\n {text}\n\n", metadata={"author": "Mara Voss", "page": 3}, embedding=embedded([text])[0])
    store.add([node])
    over(store).as_query_engine(llm=RagCacheLLM(small, max_tokens=4)).query("How many cars?")
    assert hits(streams[-1]) == ["hit"]
    words = "".join(segment.text for segment in streams[-1].prompt.segments if segment.chunk is None)
    assert "author: Mara Voss" in words
    assert text not in words


def test_a_known_id_with_another_text_is_replaced_in_both(small: RagCache) -> None:
    store = RagCacheVectorStore(chroma("replaced"), small)
    for text in ("Told before.", "Told since."):
        store.add([TextNode(text=text, id_="a", embedding=embedded([text])[0])])
        assert held(store, small) == {text}
        assert [node.get_content() for node in store.get_nodes(["a"])] == [text]
    store.add([TextNode(text="A bridge.", id_="b", embedding=embedded(["A bridge."])[0])])
    store.store.client.delete(ids=["a"])  # behind its back
    store.sync()
    assert held(store, small) == {"A bridge."}
    store.delete_nodes(["b"])
    store.add([TextNode(text="Told again.", id_="a", embedding=embedded(["again"])[0])])
    store.delete("None")  # what has no document
    assert held(store, small) == set()


def test_roles_and_blocks_of_other_models_are_read(llm: RagCacheLLM) -> None:
    turns = [
        ChatMessage(role=MessageRole.USER, content="Hello."),
        ChatMessage(role=MessageRole.MODEL, blocks=[ThinkingBlock(content="hm"), TextBlock(text="Hello.")]),
        ChatMessage(role=MessageRole.USER, content=asked()[0]),
    ]
    plain = [turns[0], ChatMessage("Hello.", role="assistant"), turns[2]]
    assert llm.chat(turns).message.content == llm.chat(plain).message.content
    with pytest.raises(InvalidArgument, match="MockLLM"):
        RagCacheSynthesizer(MockLLM())
    with pytest.raises(InvalidArgument, match=r"RagCache\.open"):
        RagCacheLLM("./index")
    assert llm.complete("Hello.", stop=None, max_tokens=1).additional_kwargs["completion_tokens"] == 1


async def test_retrieval_leaves_the_event_loop_alone(rag: RagCache, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[int] = set()
    retrieve = RagCache.retrieve

    def noted(self: RagCache, *args: Any, **options: Any) -> Any:
        threads.add(threading.get_ident())
        return retrieve(self, *args, **options)

    monkeypatch.setattr(RagCache, "retrieve", noted)
    [found, *_] = await RagCacheRetriever(rag, similarity_top_k=2).aretrieve(asked()[0])
    assert threading.get_ident() not in threads
    assert found.node.get_content(MetadataMode.LLM) == found.node.get_content(MetadataMode.NONE)


# -- what a call says, and prompts of the user's own


def test_none_in_a_call_is_an_option_that_was_not_given(small: RagCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def spy(prompt: Any, **row: Any) -> Stream:
        seen.append(row["sampling"])
        return complete(prompt, **row)

    seen, complete = list[Sampling](), small.engine.complete
    monkeypatch.setattr(small.engine, "complete", spy)
    llm = RagCacheLLM(small, max_tokens=3, temperature=1.0, seed=5)
    llm.chat([ChatMessage("Who leads the Tide project?")], max_tokens=None, temperature=None)
    llm.complete("Who leads the Tide project?", max_tokens=None, seed=None)
    assert seen == [Sampling(max_new_tokens=3, temperature=1.0, seed=5)] * 2


def test_prompts_are_written_by_the_functions_that_were_given(small: RagCache) -> None:
    """As `HuggingFaceLLM` does, and not twice where LlamaIndex has done it."""
    seen: list[str] = []

    def write_chat(messages: Any) -> str:
        seen.append("chat")
        return "".join(f"<{one.role.value}> {one.content}\n" for one in messages)

    def write_completion(prompt: str) -> str:
        seen.append(prompt)
        return f"[{prompt}]"

    outer = PromptTemplate("Notes first. {query_str}")
    own = RagCacheLLM(
        small,
        max_tokens=4,
        messages_to_prompt=write_chat,
        completion_to_prompt=write_completion,
        query_wrapper_prompt=outer,
    )
    plain = RagCacheLLM(small, max_tokens=4)
    asked = [ChatMessage("Who leads it?")]
    wanted = plain.complete("<user> Who leads it?\n", formatted=True).text
    assert own.chat(asked).message.content == wanted != plain.chat(asked).message.content
    assert asyncio.run(own.achat(asked)).message.content == wanted
    assert list(own.stream_chat(asked))[-1].message.content == wanted
    assert seen == ["chat"] * 3
    seen.clear()
    wanted = plain.complete("[Notes first. Who?]", formatted=True).text
    assert own.complete("Who?").text == asyncio.run(own.acomplete("Who?")).text == wanted
    assert list(own.stream_complete("Who?"))[-1].text == wanted
    assert seen == ["Notes first. Who?"] * 3
    assert own.complete("Who?", formatted=True).text == plain.complete("Who?", formatted=True).text
