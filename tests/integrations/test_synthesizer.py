"""`RagCacheSynthesizer`: whatever follows a LlamaIndex model's chats follows its questions too."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("llama_index.core")
from llama_index.core import PromptTemplate
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler, TokenCountingHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.base import BaseEvent
from llama_index.core.instrumentation.events.llm import LLMChatEndEvent, LLMChatInProgressEvent, LLMChatStartEvent
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index_ragcache import RagCacheLLM, RagCacheRetriever, RagCacheSynthesizer, RagCacheVectorStore
from pydantic import BaseModel

from ragcache import RagCache, Reader
from ragcache.engine.stream import Stream
from ragcache.errors import InvalidArgument

NOTES = ("The Otter ferry crosses the sound every hour.", "Mara Voss keeps bees behind the mill.")
QUESTION = "Who keeps bees?"
EVERY_WAY = pytest.mark.parametrize(("is_async", "streaming"), [(a, s) for a in (False, True) for s in (False, True)])


@pytest.fixture(scope="module")
def rag(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RagCache]:
    folder = tmp_path_factory.mktemp("asked")
    for number, note in enumerate(NOTES):
        (folder / f"{number}.txt").write_text(note)
    with RagCache.open(folder / "index", dtype="float32") as rag:
        rag.ingest(folder, titles="none", exclude=["index"])
        yield rag


@pytest.fixture
def events() -> Iterator[list[BaseEvent]]:
    seen: list[BaseEvent] = []

    class Handler(BaseEventHandler):
        def handle(self, event: BaseEvent, **kwargs: Any) -> None:
            if type(event) in (LLMChatStartEvent, LLMChatInProgressEvent, LLMChatEndEvent):
                seen.append(event)

    handlers = get_dispatcher().event_handlers
    handlers.append(Handler())
    yield seen
    handlers.pop()


def nodes() -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(text=text), score=1.0) for text in NOTES]


def node(text: str, name: str, document: str | None = None, **metadata: Any) -> TextNode:
    of = {} if document is None else {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
    return TextNode(text=text, id_=name, metadata=metadata, relationships=of, embedding=[1.0])


async def answered(over: RagCacheSynthesizer, *, is_async: bool, streaming: bool) -> tuple[str, dict[str, Any]]:
    """An answer's text by whatever way, and its report."""
    response = await over.asynthesize(QUESTION, nodes()) if is_async else over.synthesize(QUESTION, nodes())
    if streaming and is_async:
        text = "".join([piece async for piece in response.async_response_gen()])
    else:
        text = "".join(response.response_gen) if streaming else str(response)
    return text.rstrip(), response.metadata["ragcache"]


@EVERY_WAY
async def test_a_question_is_seen_as_a_chat_of_the_model_s(
    rag: RagCache, events: list[BaseEvent], is_async: bool, streaming: bool
) -> None:
    debug, counter = LlamaDebugHandler(print_trace_on_end=False), TokenCountingHandler(tokenizer=str.split)
    llm = RagCacheLLM(rag, max_tokens=8, callback_manager=CallbackManager([debug, counter]))
    own = rag.engine.answer(QUESTION, [rag.engine.chunk(note) for note in NOTES])
    text, report = await answered(RagCacheSynthesizer(llm, streaming=streaming), is_async=is_async, streaming=streaming)
    assert text
    assert own.text.startswith(text)
    assert [chunk["id"] for chunk in report["chunks"]] == [chunk.id for chunk in own.report.chunks]
    first, *between, last = events
    assert isinstance(first, LLMChatStartEvent)
    assert isinstance(last, LLMChatEndEvent)
    assert bool(between) == streaming
    asked = first.messages[-1].content
    assert all(part in asked for part in (*NOTES, QUESTION))
    assert last.response.message.content.strip() == text
    [(began, ended)] = debug.get_event_pairs(CBEventType.LLM)
    assert began.payload["messages"][-1].content == asked
    assert ended.payload["response"].message.content.strip() == text
    assert counter.prompt_llm_token_count > len(asked.split())
    assert counter.completion_llm_token_count > 0


async def test_a_question_that_fails_ends_as_a_chat_that_failed(rag: RagCache) -> None:
    debug = LlamaDebugHandler(print_trace_on_end=False)
    over = RagCacheSynthesizer(RagCacheLLM(rag, callback_manager=CallbackManager([debug])))
    with pytest.raises(InvalidArgument, match="blank"):
        over.synthesize(" ", nodes())
    [(_, ended)] = debug.get_event_pairs(CBEventType.LLM)
    assert isinstance(ended.payload["exception"], InvalidArgument)


async def test_questions_that_come_together_are_answered_at_once(
    rag: RagCache, monkeypatch: pytest.MonkeyPatch, streams: list[Stream]
) -> None:
    together: list[int] = []
    run_batch = Reader.run_batch

    def noted(self: Reader, tasks: Any) -> Any:
        together.append(len(tasks))
        return run_batch(self, tasks)

    monkeypatch.setattr(Reader, "run_batch", noted)
    over = RagCacheSynthesizer(RagCacheLLM(rag, max_tokens=4))
    one, other = await asyncio.gather(*(over.asynthesize(QUESTION, nodes()) for _ in range(2)))
    assert str(one) == str(other)
    assert together == [2]
    assert over.get_response(QUESTION, NOTES) == str(one)  # texts that come without nodes


@EVERY_WAY
async def test_the_model_s_system_prompt_stands_in_front_as_in_a_chat_of_its_own(
    rag: RagCache, streams: list[Stream], is_async: bool, streaming: bool
) -> None:
    llm = RagCacheLLM(rag, max_tokens=4, system_prompt="Answer in one word.")
    _, report = await answered(RagCacheSynthesizer(llm, streaming=streaming), is_async=is_async, streaming=streaming)
    assert [chunk["cache"] for chunk in report["chunks"]] == ["hit", "hit"]
    said = "Notes:\n\n" + "".join(f"{note}\n\n" for note in NOTES) + f"Question: {QUESTION}"
    llm.chat([ChatMessage("Answer in one word.", role=MessageRole.SYSTEM), ChatMessage(said)])
    over_nodes, chat = streams[-2:]
    assert over_nodes.prompt.token_ids == chat.prompt.token_ids
    assert rag.index.template.system not in "".join(part.text for part in over_nodes.prompt.segments)


def test_what_the_synthesizer_has_no_use_for_is_refused_by_name(rag: RagCache) -> None:
    class Summary(BaseModel):
        words: str

    llm, template = RagCacheLLM(rag), PromptTemplate("{context_str}\n\n{query_str}")
    over = RagCacheSynthesizer(llm, output_cls=None)
    engine = RetrieverQueryEngine(RagCacheRetriever(rag), over)
    with pytest.raises(InvalidArgument, match=r"text_qa_template=PromptTemplate; use LlamaIndex's synthesizer"):
        RagCacheSynthesizer(llm, text_qa_template=template)
    with pytest.raises(InvalidArgument, match=r"output_cls=Summary"):
        RagCacheSynthesizer(llm, output_cls=Summary)
    for given in (over.update_prompts, lambda prompts: over.synthesize(QUESTION, nodes(), **prompts)):
        with pytest.raises(InvalidArgument, match=r"refine_template=PromptTemplate"):
            given({"refine_template": template})
    with pytest.raises(InvalidArgument, match=r"text_qa_template=PromptTemplate"):
        engine.update_prompts({"response_synthesizer:text_qa_template": template})
    assert engine.get_prompts() == {}


def test_what_is_named_instead_takes_it(rag: RagCache, streams: list[Stream]) -> None:
    template = PromptTemplate("{context_str}\n\nAsked: {query_str}")
    llm = RagCacheLLM(rag, max_tokens=4)
    engine = RetrieverQueryEngine.from_args(RagCacheRetriever(rag), llm, text_qa_template=template)
    engine.query(QUESTION)
    assert "Asked: " in "".join(part.text for part in streams[-1].prompt.segments)
    assert "miss" not in [chunk.cache for chunk in streams[-1].report.chunks]


@pytest.mark.parametrize("known", [True, False])
def test_nodes_are_reported_by_their_documents(rag: RagCache, streams: list[Stream], known: bool) -> None:
    told = [
        node("Rye is ground on Mondays.", "one", "almanac", file_name="mill.txt"),
        node("The bridge is painted green.", "two", "surveys"),
        node("Nobody knows who wrote this.", "three"),
    ]
    store = RagCacheVectorStore(SimpleVectorStore(), rag, collection=f"reported-{known}")
    if known:
        store.add(told)
    response = RagCacheSynthesizer(RagCacheLLM(rag, max_tokens=2)).synthesize(
        QUESTION, [NodeWithScore(node=one) for one in told]
    )
    chunks = response.metadata["ragcache"]["chunks"]
    assert [chunk["source"] for chunk in chunks] == ["mill.txt", "surveys", "three"]
    assert [source.source for source in streams[-1].answer.sources] == ["mill.txt", "surveys", "three"]
    assert ("miss" not in [chunk["cache"] for chunk in chunks]) == known
    named = [one.source for one in rag.documents() if one.collection == f"reported-{known}"]
    assert sorted(named) == (["mill.txt", "surveys", "three"] if known else [])
    if known:
        store.delete("surveys")
        assert "surveys" not in [one.source for one in rag.documents()]
        store.clear()
