"""Prompts as front ends write them, over chunks in any order: what is verbatim is hit, and what is not is said."""

import json
import random
from collections.abc import Callable, Iterator, Sequence

import pytest
from langchain_openai import ChatOpenAI
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike
from openai import OpenAI
from serve.served import MODEL, ask

from ragcache import Chunk

pytestmark = pytest.mark.slow

QUESTION = "Who leads the project Amber Raven?"
Messages = list[dict[str, str]]


def open_webui(texts: Sequence[str]) -> Messages:
    """Its template stands in front of the question, in the user's message."""
    sources = "\n".join(f'<source id="{i}" name="page-{i}.md">{text}</source>' for i, text in enumerate(texts, 1))
    task = "### Task:\nRespond to the user query using the provided context, with inline citations like [id]."
    return [{"role": "user", "content": f"{task}\n\n<context>\n{sources}\n</context>\n\n{QUESTION}"}]


def anything_llm(texts: Sequence[str]) -> Messages:
    """Contexts are numbered in the system message."""
    contexts = "".join(f"[CONTEXT {i}]:\n{text}\n[END CONTEXT {i}]\n\n" for i, text in enumerate(texts))
    system = "Given the following conversation, relevant context, and a follow up question, reply with an answer."
    return [
        {"role": "system", "content": f"{system}\nContext:\n{contexts}"},
        {"role": "user", "content": QUESTION},
    ]


def light_rag(texts: Sequence[str]) -> Messages:
    """Chunks are JSON, a line each, in a fence."""
    rows = (
        json.dumps({"reference_id": str(i), "content": text}, ensure_ascii=False) for i, text in enumerate(texts, 1)
    )
    system = "---Role---\nYou answer from the context.\n\nDocument Chunks:\n\n```json\n" + "\n".join(rows) + "\n```\n"
    return [{"role": "system", "content": system}, {"role": "user", "content": QUESTION}]


def langchain_default(texts: Sequence[str]) -> Messages:
    """`create_stuff_documents_chain` joins page contents with blank lines."""
    context = "\n\n".join(texts)
    said = "You are an assistant for question-answering tasks. Use the following pieces of retrieved context."
    return [{"role": "user", "content": f"{said}\nQuestion: {QUESTION} \nContext: {context} \nAnswer:"}]


def numbered(texts: Sequence[str]) -> Messages:
    """A list with numbers, as many templates of one's own have it."""
    notes = "\n---\n".join(f"[{i}] {text}" for i, text in enumerate(texts, 1))
    return [{"role": "user", "content": f"{notes}\n\n{QUESTION}"}]


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        yield client


def report(client: OpenAI, messages: Messages) -> dict:
    return client.chat.completions.create(model=MODEL, messages=messages, max_tokens=1).model_extra["ragcache"]


@pytest.mark.parametrize("write", [open_webui, anything_llm, langchain_default, numbered])
def test_verbatim_chunks_are_hit_in_any_order(
    client: OpenAI, chunks: list[Chunk], write: Callable[[Sequence[str]], Messages]
) -> None:
    hit = there = 0
    for seed in range(4):
        some = random.Random(seed).sample(chunks, 8)
        found = report(client, write([chunk.text for chunk in some]))["chunks"]
        assert [chunk["id"] for chunk in found] == [chunk.id for chunk in some]
        hit += sum(chunk["tokens"] for chunk in found if chunk["cache"] in ("hit", "exact"))
        there += sum(len(chunk.segment) for chunk in some)
    assert hit / there >= 0.95


def test_chunks_that_json_escapes_are_prefilled_and_a_note_says_so(client: OpenAI, chunks: list[Chunk]) -> None:
    lines = [chunk.text for chunk in chunks[:4]]
    assert all("\n" in text for text in lines)  # a title line
    found = report(client, light_rag(lines))
    assert found["hit"] + found["exact"] == 0
    assert any("4 chunks stand in the prompt escaped" in note for note in found["notes"])


def test_langchain_s_chat_model_is_answered_by_url(url: str, client: OpenAI, chunks: list[Chunk]) -> None:
    said = ask(chunks[:4], QUESTION)
    own = client.chat.completions.create(model=MODEL, messages=said)
    model = ChatOpenAI(base_url=url, api_key="none", model=MODEL, max_retries=0)
    answer = model.invoke([("human", said[0]["content"])])
    assert answer.content == own.choices[0].message.content
    assert own.usage is not None
    assert answer.usage_metadata["total_tokens"] == own.usage.total_tokens
    pieces = list(model.stream([("human", said[0]["content"])], stream_usage=True))
    assert len(pieces) > 2
    assert "".join(piece.content for piece in pieces) == answer.content
    assert sum((piece.usage_metadata or {}).get("total_tokens", 0) for piece in pieces) == own.usage.total_tokens


async def test_langchain_s_chat_model_is_answered_asynchronously(url: str, chunks: list[Chunk]) -> None:
    [message] = ask(chunks[:2], QUESTION)
    model = ChatOpenAI(base_url=url, api_key="none", model=MODEL, max_retries=0, max_completion_tokens=4)
    whole = await model.ainvoke(message["content"])
    assert whole.content == "".join([piece.content async for piece in model.astream(message["content"])])


def test_llama_index_s_model_is_answered_by_url(url: str, client: OpenAI, chunks: list[Chunk]) -> None:
    said = ask(chunks[:4], QUESTION)
    own = client.chat.completions.create(model=MODEL, messages=said).choices[0].message.content
    model = OpenAILike(
        api_base=url, api_key="none", model=MODEL, is_chat_model=True, context_window=4096, max_retries=0, temperature=0
    )
    turn = ChatMessage(role="user", content=said[0]["content"])
    assert model.chat([turn]).message.content == own
    assert "".join(piece.delta or "" for piece in model.stream_chat([turn])) == own
    assert model.complete(said[0]["content"]).text == own
