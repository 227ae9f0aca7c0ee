"""Several requests through a framework are one joint forward at a time, and each gets the answer it gets alone."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")
from conftest import tiny_reader
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, trim_messages
from langchain_core.prompts import ChatPromptTemplate
from langchain_ragcache import ChatRagCache, RagCacheRetriever
from langchain_ragcache import RagCacheLLM as TextModel
from llama_index.core.base.llms.types import ChatMessage
from llama_index_ragcache import RagCacheLLM

from ragcache import RagCache
from ragcache.errors import InvalidArgument
from ragcache.index.collection import Entry
from ragcache.model.reader import Reader

READER = tiny_reader()
TEXTS = [f"The {name} mill grinds rye on the first day of every month." for name in ("Otter", "Tide", "Kelp")]
PROMPTS = [f"{TEXTS[n % 3]}\n\n{TEXTS[(n + 1) % 3]}\n\nWhen does it grind, for the {n}th time?" for n in range(5)]


@pytest.fixture
def rag(tmp_path: Path) -> Iterator[RagCache]:
    with RagCache.open(tmp_path / "index", model=READER) as rag:
        rag.collection("mills").add([Entry.of(text, text, None) for text in TEXTS])
        yield rag


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many requests were run at once, each time that several were."""
    seen: list[int] = []
    run_batch = Reader.run_batch

    def noted(self: Reader, requests: Any) -> Any:
        seen.append(len(requests))
        return run_batch(self, requests)

    monkeypatch.setattr(Reader, "run_batch", noted)
    return seen


class Noting(BaseCallbackHandler):
    """Which runs began and ended, and under which tags."""

    def __init__(self) -> None:
        self.began: list[list[str]] = []
        self.ended = 0

    def on_chat_model_start(self, *args: Any, tags: list[str] | None = None, **kwargs: Any) -> None:
        self.began.append(tags or [])

    def on_llm_end(self, *args: Any, **kwargs: Any) -> None:
        self.ended += 1


# -- LangChain


async def test_a_batch_is_answered_at_once_and_as_one_by_one(rag: RagCache, groups: list[int]) -> None:
    chat, text = ChatRagCache(rag, max_tokens=6), TextModel(rag, max_tokens=6)
    alone, continued = [chat.invoke(one) for one in PROMPTS], [text.invoke(one) for one in PROMPTS]
    assert groups == []
    for said in (chat.batch(PROMPTS), await chat.abatch(PROMPTS)):
        assert [one.text for one in said] == [one.text for one in alone]
        assert [one.usage_metadata["output_tokens"] for one in said] == [6] * 5
        reports = [one.response_metadata["ragcache"] for one in said]
        assert all(len(report["chunks"]) == 2 for report in reports)
        assert {chunk["cache"] for report in reports for chunk in report["chunks"]} <= {"hit", "exact"}
    generated = [one.text for [one] in text.generate(PROMPTS).generations]
    for made in (text.batch(PROMPTS), await text.abatch(PROMPTS), generated):
        assert made == continued
    turns = [[HumanMessage(one)] for one in PROMPTS]
    for result in (chat.generate(turns), await chat.agenerate(turns)):
        assert [one[0].text for one in result.generations] == [one.text for one in alone]
        assert len({run.run_id for run in result.run or ()}) == 5
    assert groups == [5] * 7


def test_chains_batch_their_model(rag: RagCache, groups: list[int]) -> None:
    chain = ChatPromptTemplate([("human", "{words}")]) | ChatRagCache(rag, max_tokens=3)
    assert len(chain.batch([{"words": one} for one in PROMPTS])) == 5
    assert groups == [5]


def test_a_batch_may_be_cut_into_parts(rag: RagCache, groups: list[int]) -> None:
    model = ChatRagCache(rag, max_tokens=2)
    assert len(model.batch(PROMPTS, {"max_concurrency": 2})) == 5
    assert groups == [2, 2, 1]
    assert model.batch([]) == []


def test_every_input_has_its_own_callbacks_and_errors(rag: RagCache) -> None:
    model, seen = ChatRagCache(rag, max_tokens=2), Noting()
    configs = [{"callbacks": [seen], "tags": [str(n)]} for n in range(2)]
    model.batch(PROMPTS[:2], configs)
    assert (sorted(seen.began), seen.ended) == ([["0"], ["1"]], 2)
    good, bad = model.batch([PROMPTS[0], " "], return_exceptions=True)
    assert isinstance(good, AIMessage)
    assert isinstance(bad, InvalidArgument)
    with pytest.raises(InvalidArgument, match="blank"):
        model.batch([PROMPTS[0], " "])


def test_tokens_are_counted_as_the_reader_counts_them(rag: RagCache) -> None:
    chat, text = ChatRagCache(rag, max_tokens=1), TextModel(rag)
    assert chat.get_num_tokens("rye") == text.get_num_tokens("rye") == 3  # bytes are tokens here
    turns = [SystemMessage("Be brief."), HumanMessage(PROMPTS[0])]
    assert chat.get_num_tokens_from_messages(turns) == chat.invoke(turns).usage_metadata["input_tokens"]
    assert chat.get_num_tokens_from_messages([]) == 0
    long = [HumanMessage("a" * 100), AIMessage("b" * 100), HumanMessage("c" * 10)]
    kept = trim_messages(long, max_tokens=60, token_counter=chat, strategy="last")
    assert [message.text for message in kept] == ["c" * 10]
    assert ChatRagCache(rag, custom_get_token_ids=lambda words: [1]).get_num_tokens("rye") == 1


def test_what_the_model_does_not_do_is_said_in_words(rag: RagCache) -> None:
    with pytest.raises(NotImplementedError, match="calls no tools"):
        ChatRagCache(rag).bind_tools([])
    with pytest.raises(NotImplementedError, match="with_structured_output"):
        ChatRagCache(rag).with_structured_output({"title": "Reply", "type": "object", "properties": {}})


@pytest.mark.parametrize("kind", [ChatRagCache, TextModel])
def test_misspelt_options_are_refused_with_the_nearest_one(rag: RagCache, kind: Any) -> None:
    with pytest.raises(InvalidArgument, match=rf"{kind.__name__} has no option 'max_tokns'; did you mean max_tokens\?"):
        kind(rag, max_tokns=3)
    with pytest.raises(InvalidArgument, match=r"has no option 'recompte'; did you mean recompute\?"):
        kind(rag).invoke("Hello", recompte=0.5)
    with pytest.raises(InvalidArgument, match=r"has no option 'tools'; it takes documents, max_new_tokens"):
        kind(rag).bind(tools=[]).invoke("Hello")
    assert kind(rag, timeout=60, max_retries=2, api_key="x", streaming=True, tags=["a"]).tags == ["a"]
    assert kind(rag).invoke("Hello", max_new_tokens=1, stop=["x"], temperature=0.0)


def test_a_retriever_s_options_are_no_different(rag: RagCache) -> None:
    with pytest.raises(InvalidArgument, match=r"RagCacheRetriever has no option 'top_k'"):
        RagCacheRetriever(rag=rag, top_k=3)


class Pieces(BaseCallbackHandler):
    """What came before the answer was whole."""

    def __init__(self) -> None:
        self.came: list[str] = []

    def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
        self.came.append(token)


async def test_a_model_that_is_told_to_stream_tells_its_callbacks(rag: RagCache) -> None:
    whole, seen = ChatRagCache(rag, max_tokens=4).invoke(PROMPTS[0]), Pieces()
    model = ChatRagCache(rag, max_tokens=4, streaming=True)
    for said in (model.invoke(PROMPTS[0], {"callbacks": [seen]}), await model.ainvoke(PROMPTS[0])):
        assert said.text == whole.text
        assert said.usage_metadata == whole.usage_metadata
        assert len(said.response_metadata["ragcache"]["chunks"]) == 2
    assert "".join(seen.came) == whole.text != ""
    silent = Pieces()
    ChatRagCache(rag, max_tokens=4, streaming=False).invoke(PROMPTS[0], {"callbacks": [silent]})
    assert silent.came == []


@pytest.mark.parametrize("kind", [ChatRagCache, TextModel])
def test_one_document_may_be_handed_over_by_itself(rag: RagCache, kind: Any) -> None:
    model = kind(rag, max_tokens=4)
    for one in (TEXTS[0], Document(TEXTS[0])):
        stream = model.asked("When?", one, None, {})
        assert [segment.text for segment in stream.prompt.segments if segment.chunk] == [TEXTS[0]]
        assert model.invoke("When?", documents=one)


# -- LlamaIndex


async def test_what_comes_together_is_answered_at_once(rag: RagCache, groups: list[int]) -> None:
    llm = RagCacheLLM(rag, max_tokens=6)
    alone = [llm.complete(one).text for one in PROMPTS]
    made = await asyncio.gather(*(llm.acomplete(one) for one in PROMPTS))
    assert [one.text for one in made] == alone
    turns = [[ChatMessage(one, role="user")] for one in PROMPTS]
    said = await asyncio.gather(*(llm.achat(one) for one in turns))
    assert [one.message.content for one in said] == [llm.chat(one).message.content for one in turns]
    assert groups == [5, 5]
    await llm.acomplete(PROMPTS[0])
    assert groups == [5, 5]  # one alone runs as ever


async def test_an_error_is_nobody_else_s(rag: RagCache, groups: list[int]) -> None:
    llm = RagCacheLLM(rag, max_tokens=2)
    good, bad = await asyncio.gather(llm.acomplete(PROMPTS[0]), llm.acomplete(" "), return_exceptions=True)
    assert good.text == llm.complete(PROMPTS[0]).text
    assert isinstance(bad, InvalidArgument)
    assert groups == [2]


class Ended(BaseException):
    """As when a program is told to end."""


@pytest.mark.parametrize("error", [RuntimeError("no thread can be started"), Ended()])
async def test_nobody_waits_for_ever_when_the_batch_itself_fails(
    rag: RagCache, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(Reader, "run_batch", fail)
    llm = RagCacheLLM(rag, max_tokens=2)
    waiting = asyncio.gather(*(llm.acomplete(one) for one in PROMPTS * 4), return_exceptions=True)  # two batches
    assert await asyncio.wait_for(waiting, 20) == [error] * 20


def test_llama_index_s_misspelt_options_are_refused_too(rag: RagCache) -> None:
    with pytest.raises(InvalidArgument, match=r"RagCacheLLM has no option 'max_tokns'; did you mean max_tokens\?"):
        RagCacheLLM(rag, max_tokns=3)
    with pytest.raises(InvalidArgument, match=r"'recompte'; did you mean recompute\?"):
        RagCacheLLM(rag).complete("Hello", recompte=0.5)
