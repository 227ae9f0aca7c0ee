"""LangChain: stored chunks answer, handed over or found in the prompt; their KV lives as long as the store's own."""

import asyncio
import copy
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

pytest.importorskip("langchain_chroma")
from integrations.notes import asked, embedded, pieces, stored
from langchain_chroma import Chroma
from langchain_core.caches import InMemoryCache
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.globals import set_llm_cache
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.load import dumps, loads
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, Runnable, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_ragcache import ChatRagCache, RagCacheLLM, RagCacheRetriever, RagCacheVectorStore

from ragcache import Message, RagCache
from ragcache.engine.stream import Stream
from ragcache.errors import InvalidArgument
from ragcache.index.chunks import Chunk
from ragcache.prompt import BEFORE_CHUNKS, BEFORE_QUESTION, SYSTEM, Segment
from ragcache.retrieve.places import Mark

SAID = BEFORE_CHUNKS + "{notes}\n\n" + BEFORE_QUESTION + "{question}"
ASK = ChatPromptTemplate([("system", SYSTEM), ("human", SAID)])


class MiniLM(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return embedded(texts)

    def embed_query(self, text: str) -> list[float]:
        return embedded([text])[0]


def documents() -> list[Document]:
    return [Document(one.text, metadata={"source": one.source, "start_index": one.start}) for one in pieces()]


@pytest.fixture(scope="module")
def rag(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RagCache]:
    with RagCache.open(tmp_path_factory.mktemp("langchain") / "index", dtype="float32", retriever="dense") as rag:
        yield rag


@pytest.fixture(scope="module")
def store(rag: RagCache, tmp_path_factory: pytest.TempPathFactory) -> RagCacheVectorStore:
    chroma = Chroma("corpus", MiniLM(), persist_directory=str(tmp_path_factory.mktemp("chroma")))
    store = RagCacheVectorStore(chroma, rag)
    store.add_documents(documents())
    return store


@pytest.fixture
def model(rag: RagCache) -> ChatRagCache:
    return ChatRagCache(rag, max_tokens=24)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[RagCache]:
    with RagCache.open(tmp_path / "index") as rag:
        yield rag


def report(message: Any) -> dict[str, Any]:
    found: dict[str, Any] = message.response_metadata["ragcache"]
    return found


def states(message: Any) -> list[str]:
    return [chunk["cache"] for chunk in report(message)["chunks"]]


def chain(model: Runnable[Any, Any], store: VectorStore, k: int = 6) -> Runnable[str, Any]:
    def joined(question: str) -> str:
        return "\n\n".join(found.page_content for found in store.similarity_search(question, k=k))

    return {"notes": joined, "question": RunnablePassthrough()} | ASK | model


# -- answers


@pytest.mark.slow
def test_documents_are_answered_as_the_engine_answers_in_their_order(
    rag: RagCache, store: RagCacheVectorStore, model: ChatRagCache
) -> None:
    for question in asked():
        own = rag.engine.answer(question, rag.retrieve(question, top_k=6), method=rag.method)
        found = store.similarity_search(question, k=6)
        assert [one.text for one in own.sources] == [one.page_content for one in found]
        said = model.invoke(question, documents=found)
        assert said.text == own.text
        assert [chunk["id"] for chunk in report(said)["chunks"]] == [one.id for one in own.sources]
        assert "miss" not in states(said)


def test_chunks_are_found_in_a_plain_chain(
    rag: RagCache, store: RagCacheVectorStore, model: ChatRagCache, streams: list[Stream]
) -> None:
    for question in asked():
        said = chain(model, store).invoke(question)
        found = store.similarity_search(question, k=6)
        assert len(states(said)) == len(found)
        assert set(states(said)) <= {"hit", "exact"}
        # The words are the house's, so are the tokens, and so is the first token.
        chunks = [rag.engine.chunk(one.page_content, one.id) for one in found]
        house = rag.engine.prefill(question, chunks)
        assert streams[-1].prompt.token_ids == house.prompt.token_ids
        assert torch.equal(streams[-1].logits, house.logits)


def test_recomputing_everything_is_the_ordinary_prefill_of_the_same_ids(
    rag: RagCache, store: RagCacheVectorStore, model: ChatRagCache, streams: list[Stream]
) -> None:
    for question in asked()[:4]:
        chain(model.bind(recompute=1.0), store).invoke(question)
        stock, _ = rag.reader.stock(streams[-1].prompt.token_ids)
        assert (streams[-1].logits - stock).abs().max() <= 1e-4


def test_streams_say_what_answers_say(store: RagCacheVectorStore, model: ChatRagCache) -> None:
    [question, *_] = asked()
    whole = chain(model, store).invoke(question)
    parts = list(chain(model, store).stream(question))
    assert len(parts) > 2
    together = parts[0]
    for part in parts[1:]:
        together += part
    assert together.text.rstrip() == whole.text
    assert together.usage_metadata == whole.usage_metadata
    assert [one["id"] for one in report(together)["chunks"]] == [one["id"] for one in report(whole)["chunks"]]
    usage = whole.usage_metadata
    assert 0 < usage["input_token_details"]["cache_read"] < usage["input_tokens"]


def test_batches_and_threads_give_the_answers_of_one_after_the_other(
    store: RagCacheVectorStore, model: ChatRagCache
) -> None:
    one_by_one = [chain(model, store).invoke(question).text for question in asked()[:6]]
    assert [said.text for said in chain(model, store).batch(asked()[:6])] == one_by_one


async def test_the_event_loop_goes_on_while_an_answer_is_made(store: RagCacheVectorStore, model: ChatRagCache) -> None:
    threads: set[int] = set()
    prefill, own = type(model.opened().engine).prefill, threading.get_ident()

    def noted(*args: Any, **options: Any) -> Any:
        threads.add(threading.get_ident())
        return prefill(*args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(model.opened().engine), "prefill", noted)
        found = store.similarity_search(asked()[0], k=6)
        said = await asyncio.gather(*(model.ainvoke(asked()[0], documents=found) for _ in range(3)))
        pieces = [piece async for piece in model.astream(asked()[0], documents=found)]
    assert {one.text for one in said} == {"".join(piece.text for piece in pieces).rstrip()}
    assert own not in threads


async def test_adding_and_deleting_leave_the_event_loop_alone(small: RagCache, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RagCacheVectorStore(InMemoryVectorStore(MiniLM()), small, collection="notes")
    threads: set[int] = set()
    for name in ("add", "discard"):
        method = getattr(store.kv, name)

        def noted(argument: Any, method: Callable[[Any], None] = method) -> None:
            threads.add(threading.get_ident())
            method(argument)

        monkeypatch.setattr(store.kv, name, noted)
    names = await store.aadd_documents(documents()[:2])
    names += await store.aadd_texts(["The mill grinds rye on Mondays."])
    assert small.stats()["chunks"] == 3
    await store.adelete(names)
    assert small.stats()["chunks"] == 0
    assert threading.get_ident() not in threads


def test_earlier_turns_are_fresh_text_and_chunks_stay_hits(store: RagCacheVectorStore, model: ChatRagCache) -> None:
    found = store.similarity_search(asked()[0], k=4)
    history = [SystemMessage("Answer briefly."), HumanMessage("Hello"), AIMessage("Hello, what is it?")]
    for said in (
        model.invoke([*history, HumanMessage(asked()[0])], documents=found),
        model.invoke([*history, HumanMessage(f"{found[0].page_content}\n\n{found[1].page_content}\n\n{asked()[0]}")]),
    ):
        assert set(states(said)) == {"hit"}
    assert len(states(said)) == 2


def test_content_blocks_may_be_chunks(store: RagCacheVectorStore, model: ChatRagCache) -> None:
    one, other = store.similarity_search(asked()[0], k=2)
    blocks = [
        {"type": "text", "text": "Notes:\n\n"},
        {"type": "text-plain", "text": one.page_content, "mime_type": "text/plain"},
        {"type": "text", "text": other.page_content, "extras": {"chunk": other.id}},
        {"type": "text", "text": f"\n\nQuestion: {asked()[0]}"},
    ]
    said = model.invoke([HumanMessage(content=blocks)])
    assert [chunk["source"] for chunk in report(said)["chunks"]] == [one.metadata["source"], other.metadata["source"]]
    assert "miss" not in states(said)
    marked = model.invoke(f"<chunk>{one.page_content}</chunk>\n{asked()[0]}")
    assert len(states(marked)) == 1
    with pytest.raises(InvalidArgument, match="type 'image'"):
        model.invoke([HumanMessage(content=[{"type": "image", "url": "x"}])])


def test_tool_results_and_reasoning_are_read_as_far_as_they_are_text(model: ChatRagCache) -> None:
    call = {"name": "look", "args": {}, "id": "1"}
    turns = [
        HumanMessage("Look it up."),
        AIMessage(content=[{"type": "reasoning", "reasoning": "hm"}, "I look."], tool_calls=[call]),
        ToolMessage("The mill grinds rye.", tool_call_id="1"),
    ]
    assert isinstance(model.invoke(turns).text, str)


def test_what_is_bound_counts_and_what_is_wrong_is_refused(
    store: RagCacheVectorStore, model: ChatRagCache, rag: RagCache
) -> None:
    found = store.similarity_search(asked()[0], k=4)
    bound = model.bind(documents=found, recompute=0.5, max_tokens=1, stop=["zzz"])
    said = bound.invoke(asked()[0])
    assert report(said)["recompute"] == 0.5
    assert said.response_metadata["finish_reason"] == "length"
    assert said.usage_metadata["output_tokens"] == 1
    whole = model.invoke(asked()[0], documents=found).text
    assert model.invoke(asked()[0], documents=found, stop=[whole[-2:]]).text == whole[:-2].rstrip()
    with pytest.raises(InvalidArgument, match=r"1\.5"):
        model.invoke("Hello", recompute=1.5)
    with pytest.raises(InvalidArgument, match="not of gpt"):
        model.invoke("Hello", model="gpt")
    for blank in ("", [HumanMessage(" ")]):
        with pytest.raises(InvalidArgument, match="blank"):
            model.invoke(blank, documents=found)


def test_a_list_printed_into_the_prompt_is_noted(small: RagCache) -> None:
    store = RagCacheVectorStore(InMemoryVectorStore(MiniLM()), small, collection="notes")
    lines = "The Otter ferry crosses the sound every hour.\nIt carries forty cars, said the 'harbour master'."
    store.add_texts([lines])
    prompt = "Context: {context}\n\nQuestion: how many cars?"
    printed = ChatRagCache(small, max_tokens=4).invoke(prompt.format(context=store.similarity_search("cars")))
    assert states(printed) == []
    assert "1 chunks stand in the prompt escaped" in report(printed)["notes"][0]
    joined = ChatRagCache(small, max_tokens=4).invoke(prompt.format(context=lines))
    assert (states(joined), report(joined)["notes"]) == (["exact"], []) or states(joined) == ["hit"]


@pytest.mark.filterwarnings("ignore:The function `loads` is in beta")
def test_a_model_is_its_fields(rag: RagCache, store: RagCacheVectorStore) -> None:
    written = dumps(ChatRagCache(rag, recompute=0.3, max_tokens=24))
    model = loads(written, allowed_objects=[ChatRagCache], valid_namespaces=["langchain_ragcache"])
    assert (model.index, model.recompute) == (str(rag.index.path), 0.3)
    said = model.invoke(asked()[0], documents=store.similarity_search(asked()[0], k=4))  # opens the index
    assert report(said)["recompute"] == 0.3
    assert "miss" not in states(said)
    model.opened().close()


def test_the_text_model_continues_strings(rag: RagCache, store: RagCacheVectorStore) -> None:
    model = RagCacheLLM(rag, max_tokens=8)
    found = store.similarity_search(asked()[0], k=3)
    prompt = "\n\n".join(one.page_content for one in found) + f"\n\nQuestion: {asked()[0]}\nAnswer:"
    [[made]] = model.generate([prompt]).generations
    assert [one["cache"] for one in made.generation_info["ragcache"]["chunks"]] == ["hit"] * 3
    assert "".join(model.stream(prompt)).rstrip() == made.text == model.invoke(prompt)
    assert (
        model.invoke(asked()[0], documents=found)
        == rag.engine.answer(asked()[0], [rag.engine.chunk(one.page_content, one.id) for one in found]).text
    )


def test_the_retriever_gives_chunks_that_are_hits(rag: RagCache, store: RagCacheVectorStore) -> None:
    found = RagCacheRetriever(rag=rag, k=3).invoke(asked()[0])
    assert [one.id for one in found] == [chunk.id for chunk in rag.retrieve(asked()[0], top_k=3)]
    assert "miss" not in states(ChatRagCache(rag).invoke(asked()[0], documents=found))


def test_documents_may_come_with_their_scores(store: RagCacheVectorStore, model: ChatRagCache, rag: RagCache) -> None:
    found = store.similarity_search(asked()[0], k=3)
    pairs = store.similarity_search_with_score(asked()[0], k=3)
    plain, scored = model.invoke(asked()[0], documents=found), model.invoke(asked()[0], documents=pairs)
    assert (scored.text, states(scored)) == (plain.text, states(plain))
    assert RagCacheLLM(rag, max_tokens=24).invoke(asked()[0], documents=pairs) == plain.text
    with pytest.raises(InvalidArgument, match=r"one of documents= is 0\.5; give documents, texts, or pairs"):
        model.invoke(asked()[0], documents=[0.5])


@pytest.mark.parametrize("kind", [ChatRagCache, RagCacheLLM])
def test_what_is_no_index_is_refused_where_it_is_handed_over(kind: Any, rag: RagCache, tmp_path: Path) -> None:
    for other in (rag.index, ["./index"], 7):
        with pytest.raises(InvalidArgument, match=r"rag is .*; give what RagCache\.open"):
            kind(other)
    assert kind(tmp_path).index == str(tmp_path)
    assert kind().index == "./index"


def test_the_retriever_says_page_and_heading_where_a_file_has_them() -> None:
    chunks = [
        Chunk("a", "a.pdf", "one", Segment((1,), "one"), 0.5, (Mark(0, 2, "Costs"),)),
        Chunk("b", "b.txt", "two", Segment((1,), "two"), 0.4),
    ]
    rag = SimpleNamespace(retrieve=lambda question, top_k: chunks)
    first, second = RagCacheRetriever(rag=rag).invoke("?")
    assert first.metadata == {"source": "a.pdf", "score": 0.5, "page": 2, "heading": "Costs"}
    assert second.metadata == {"source": "b.txt", "score": 0.4}


# -- the life of KV


def held(store: RagCacheVectorStore, rag: RagCache) -> set[str]:
    """Texts that the index has; the store's names for them are among its own."""
    names = store.kv.names()
    assert not names or {one.id for one in store.get_by_ids(names)} == set(names)
    return stored(rag)


def test_every_way_of_changing_a_store_changes_the_kv(small: RagCache, tmp_path: Path) -> None:
    store = RagCacheVectorStore(Chroma("notes", MiniLM(), persist_directory=str(tmp_path)), small)
    one, two, three = store.add_documents(documents()[:3])
    texts = [document.page_content for document in documents()]
    assert held(store, small) == set(texts[:3])
    store.update_document(one, documents()[3])
    store.update_documents([two], [Document("It was never like this.", metadata={"source": "two"})])
    assert held(store, small) == {texts[3], "It was never like this.", texts[2]}
    store.delete([three])
    assert held(store, small) == {texts[3], "It was never like this."}
    store.delete(where={"source": "two"})
    assert held(store, small) == {texts[3]}
    store.reset_collection()
    assert held(store, small) == set()
    store.add_texts(["The mill grinds rye."], [{"source": "mill"}])
    store.add_texts(["The mill grinds rye."], [{"source": "mill"}])  # under another random id
    first, second = store.kv.names()
    store.delete([first])
    assert held(store, small) == {"The mill grinds rye."}
    store.delete_collection()
    assert held(store, small) == set()
    assert second not in store.kv.names()


def test_a_record_manager_keeps_kv_in_step(small: RagCache) -> None:
    store = RagCacheVectorStore(Chroma("indexed", MiniLM()), small)
    manager = InMemoryRecordManager("notes")
    manager.create_schema()

    def run(pages: list[Document]) -> dict[str, int]:
        return dict(index(pages, manager, store, cleanup="full", source_id_key="source", key_encoder="blake2b"))

    pages = documents()[:3]
    assert run(pages)["num_added"] == 3
    assert run(pages) == {"num_added": 0, "num_updated": 0, "num_skipped": 3, "num_deleted": 0}
    changed = Document("Changed since.", metadata=pages[0].metadata)
    assert run([changed, pages[1]])["num_deleted"] == 2
    assert held(store, small) == {"Changed since.", pages[1].page_content}


def test_stores_are_made_of_texts(small: RagCache) -> None:
    made = RagCacheVectorStore.from_texts(
        ["The mill grinds rye."], MiniLM(), [{"source": "mill"}], rag=small, collection_name="made"
    )
    assert isinstance(made.store, Chroma)
    assert held(made, small) == {"The mill grinds rye."}
    how = {"rag": small, "store": InMemoryVectorStore, "collection": "memory", "methods": ["naive"]}
    memory = RagCacheVectorStore.from_documents(documents()[:1], MiniLM(), **how)
    assert memory.kv.name == "memory"
    with pytest.raises(InvalidArgument, match="InMemoryVectorStore has no name"):
        RagCacheVectorStore(memory.store, small)
    assert len(small.index.catalog.texts()) == 2
    for other in (None, "./index", small.index):
        with pytest.raises(InvalidArgument, match=r"rag is .*; give the index that keeps the KV, rag=RagCache\.open"):
            RagCacheVectorStore.from_texts(["a"], MiniLM(), rag=other, collection_name="refused")
        with pytest.raises(InvalidArgument, match="rag is"):
            RagCacheVectorStore(memory.store, other, collection="refused")
    for other in (small, InMemoryVectorStore, MiniLM()):
        with pytest.raises(InvalidArgument, match=r"store is .*; give the vector store to wrap"):
            RagCacheVectorStore(other, small, collection="refused")
    with pytest.raises(NotImplementedError, match=r"InMemoryVectorStore.* has no update_documents"):
        memory.update_document("x", documents()[0])


def test_a_store_that_fails_leaves_no_kv_behind(small: RagCache, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RagCacheVectorStore(InMemoryVectorStore(MiniLM()), small, collection="notes")
    monkeypatch.setattr(store.store, "add_documents", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        store.add_documents(documents()[:1])
    assert stored(small) == set()
    monkeypatch.undo()
    names = store.add_documents(documents()[:1])
    monkeypatch.setattr(store.store, "delete", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        store.delete(names)
    assert stored(small) == set()  # the entry is still there, its KV is not


def test_engine_and_chat_model_agree_on_a_conversation(rag: RagCache, store: RagCacheVectorStore) -> None:
    found = store.similarity_search(asked()[1], k=3)
    chunks = [rag.engine.chunk(one.page_content, one.id) for one in found]
    history = [Message("user", "Hello"), Message("assistant", "Hello.")]
    own = rag.engine.answer(asked()[1], chunks, history=history)
    turns = [HumanMessage("Hello"), AIMessage("Hello."), HumanMessage(asked()[1])]
    assert ChatRagCache(rag).invoke(turns, documents=found).text == own.text


def test_what_a_name_stood_for_is_forgotten_before_it_is_replaced(
    small: RagCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RagCacheVectorStore(Chroma("replaced", MiniLM()), small)
    store.add_documents([Document("Told before.", id="a", metadata={"source": "s"})])
    monkeypatch.setattr(store.kv, "add", lambda *_: 1 / 0)  # as if it ended there
    with pytest.raises(ZeroDivisionError):
        store.add_documents([Document("Told since.", id="a", metadata={"source": "s"})])
    assert stored(small) == set()
    monkeypatch.undo()
    store.add_texts(["Told at last."], [{"source": "s"}], ["a"])
    assert held(store, small) == {"Told at last."}
    store.delete("a")
    assert held(store, small) == set()


async def test_ways_of_deleting_that_only_the_store_knows_are_followed(small: RagCache) -> None:
    class Own(InMemoryVectorStore):
        async def adelete_collection(self) -> None:
            self.store.clear()

        def drop_old(self) -> None:
            self.store.clear()

    store = RagCacheVectorStore(Own(MiniLM()), small, collection="own")
    for empty in (store.adelete_collection, store.drop_old):
        store.add_texts(["The mill grinds rye."])
        done = empty()
        if done is not None:
            await done
        assert held(store, small) == set()
    store.add_texts(["The mill grinds rye."])
    first, second = [*store.kv.names(), *store.add_texts(["A bridge of stone."])]
    store.store.store.pop(first)  # behind its back
    store.sync()
    assert (store.kv.names(), held(store, small)) == ([second], {"A bridge of stone."})


def test_blank_documents_and_paths_are_taken(small: RagCache, model: ChatRagCache) -> None:
    store = RagCacheVectorStore(InMemoryVectorStore(MiniLM()), small, collection="blank")
    store.add_documents([Document(" "), Document("The mill grinds rye.")])
    found = store.similarity_search("mill", k=2)
    assert len(found) == 2
    by_path = ChatRagCache(str(small.index.path), max_tokens=4)
    said = by_path.invoke("What does it grind?", documents=found, max_tokens=None)
    assert states(said) == ["exact"]
    assert by_path.opened() is by_path.bind().bound.opened()
    by_path.opened().close()
    with pytest.raises(InvalidArgument, match="no text of its own"):
        model.invoke([HumanMessage(content=[{"type": "text-plain", "url": "x"}])])


def test_a_cache_of_answers_does_not_mix_up_documents(rag: RagCache, store: RagCacheVectorStore) -> None:
    set_llm_cache(InMemoryCache())
    try:
        for model in (RagCacheLLM(rag, max_tokens=24), ChatRagCache(rag, max_tokens=24)):
            said = [
                model.invoke(asked()[0], documents=store.similarity_search(question, k=4)) for question in asked()[:3]
            ]
            assert len({getattr(one, "text", one) for one in said}) > 1
    finally:
        set_llm_cache(None)


def test_fields_may_be_configured_without_loading_the_model_again(
    rag: RagCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RagCache, "open", lambda *_, **__: pytest.fail("it was opened again"))
    model = ChatRagCache(rag, max_tokens=2).configurable_fields(recompute=ConfigurableField(id="recompute"))
    said = model.with_config(configurable={"recompute": 0.5}).invoke(f"{pieces()[0].text}\n\nWho?")
    assert report(said)["recompute"] == 0.5
    assert copy.deepcopy(ChatRagCache(rag)).opened() is rag
