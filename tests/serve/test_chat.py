"""The official client asks a real server, and is answered from the cache."""

from collections.abc import Iterator

import openai
import pytest
from openai import OpenAI
from openai_ragcache.names import file_name
from serve.served import MODEL, ask

from ragcache import Chunk, Message, RagCache, Sampling


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        yield client


def test_models_are_the_reader_and_the_embedder(client: OpenAI, rag: RagCache) -> None:
    assert [model.id for model in client.models.list()] == [MODEL, rag.embedder.name]
    assert client.models.retrieve(rag.embedder.name).id == rag.embedder.name
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-4o")


def test_an_answer_is_the_engine_s_and_says_what_was_reused(client: OpenAI, rag: RagCache, chunks: list[Chunk]) -> None:
    said = ask(chunks[::-1])
    answer = client.chat.completions.create(model=MODEL, messages=said)
    own = rag.engine.complete([Message(**one) for one in said]).answer
    assert answer.choices[0].message.content == own.text
    assert answer.choices[0].finish_reason == "stop"
    about = answer.model_extra["ragcache"]
    assert (about["hit"] + about["exact"], about["miss"]) == (len(chunks), 0)
    assert about["method"] == rag.method
    assert about["charged"] == own.report.charged
    assert all(chunk["reason"] for chunk in about["chunks"])
    assert {chunk["source"] for chunk in about["chunks"]} == {"amber-raven.md", "cold-raven.md", "delquil.md"}
    assert about["ms"]["first_token"] > 0
    assert about["ms"]["queue"] >= 0


def test_reuse_is_never_called_cached_tokens(client: OpenAI, chunks: list[Chunk]) -> None:
    answer = client.chat.completions.create(model=MODEL, messages=ask(chunks))
    assert answer.usage is not None
    assert answer.usage.prompt_tokens_details is None
    assert "cached_tokens" not in answer.to_json()
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_stream_says_the_same_and_ends_with_the_report_and_usage(client: OpenAI, chunks: list[Chunk]) -> None:
    said = ask(chunks)
    whole = client.chat.completions.create(model=MODEL, messages=said)
    with client.chat.completions.create(
        model=MODEL, messages=said, stream=True, stream_options={"include_usage": True}
    ) as stream:
        events = list(stream)
    pieces = [event.choices[0].delta.content for event in events if event.choices and event.choices[0].delta.content]
    assert len(pieces) > 1
    assert "".join(pieces) == whole.choices[0].message.content
    assert events[0].choices[0].delta.role == "assistant"
    assert events[-2].choices[0].finish_reason == "stop"
    assert events[-2].model_extra["ragcache"]["hit"] > 0
    assert events[-1].usage == whole.usage
    assert not events[-1].choices


def test_a_stream_without_usage_has_none(client: OpenAI) -> None:
    said = [{"role": "user", "content": "Who leads it?"}]
    with client.chat.completions.create(model=MODEL, messages=said, stream=True, max_tokens=3) as stream:
        assert all(event.usage is None and event.choices for event in stream)


def test_content_parts_are_lines(client: OpenAI, chunks: list[Chunk]) -> None:
    [message] = ask(chunks[:2])
    parts = [{"type": "text", "text": line} for line in message["content"].split("\n")]
    whole = client.chat.completions.create(model=MODEL, messages=[message])
    answer = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": parts}])
    assert answer.choices[0].message.content == whole.choices[0].message.content
    assert answer.model_extra["ragcache"]["hit"] == whole.model_extra["ragcache"]["hit"] > 0


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_an_answer_ends_at_its_most_tokens(client: OpenAI, chunks: list[Chunk], name: str) -> None:
    answer = client.chat.completions.create(model=MODEL, messages=ask(chunks), **{name: 2})
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 2


def test_an_answer_ends_before_a_stop_string(client: OpenAI, chunks: list[Chunk]) -> None:
    said = ask(chunks)
    whole = client.chat.completions.create(model=MODEL, messages=said).choices[0].message.content
    assert whole is not None
    word = whole.split()[1]
    for stop in (word, [word, "none of it"]):
        answer = client.chat.completions.create(model=MODEL, messages=said, stop=stop)
        assert answer.choices[0].message.content == whole[: whole.index(word)].strip()
        assert answer.choices[0].finish_reason == "stop"


def test_a_seed_repeats_a_sampled_answer(client: OpenAI, rag: RagCache) -> None:
    said = [{"role": "user", "content": "Tell me about ferries."}]
    how = {"temperature": 1.5, "top_p": 0.9, "max_tokens": 12}
    first, again, other = (
        client.chat.completions.create(model=MODEL, messages=said, seed=seed, **how).choices[0].message.content
        for seed in (7, 7, 8)
    )
    assert first == again != other
    sampling = Sampling(max_new_tokens=12, temperature=1.5, top_p=0.9, seed=7)
    assert first == rag.engine.complete([Message(**said[0])], sampling=sampling).answer.text


def test_documents_are_chunks_of_the_index_or_prefilled_with_their_title(
    client: OpenAI, rag: RagCache, chunks: list[Chunk]
) -> None:
    documents = [
        {"title": "of no account, since the index knows the text", "text": chunks[0].text},
        {"title": "A letter", "text": "Mara Voss keeps bees."},
    ]
    said = [{"role": "user", "content": "Who keeps bees?"}]
    answer = client.chat.completions.create(model=MODEL, messages=said, extra_body={"documents": documents})
    own = rag.engine.answer("Who keeps bees?", [chunks[0], "A letter\nMara Voss keeps bees."])
    assert answer.choices[0].message.content == own.text
    states = [chunk["cache"] for chunk in answer.model_extra["ragcache"]["chunks"]]
    assert states == [chunk.cache for chunk in own.report.chunks]
    assert states[1] == "miss"
    with pytest.raises(openai.BadRequestError, match="last message"):
        client.chat.completions.create(
            model=MODEL, messages=[{"role": "assistant", "content": "Yes."}], extra_body={"documents": documents}
        )


def test_what_a_document_is_called_is_reported_and_stays_out_of_known_texts(
    client: OpenAI, chunks: list[Chunk], rag: RagCache
) -> None:
    documents = [
        {"title": "called otherwise", "text": chunks[0].text},
        {"title": "Letters/1931: Ålesund", "text": "Mara Voss keeps bees."},
        {"id": "note-7", "text": "The mill is closed."},
        {"text": "Nobody wrote this."},
    ]
    said = [{"role": "user", "content": "Who keeps bees?"}]
    extra = {"documents": documents, "ragcache": {"texts": True}}
    about = client.chat.completions.create(model=MODEL, messages=said, extra_body=extra).model_extra["ragcache"]
    called = [file_name(chunks[0].source), "Letters/1931: Ålesund", "note-7", ""]
    assert [chunk["source"] for chunk in about["chunks"]] == called
    assert [one["source"] for one in about["texts"]] == called
    assert "called otherwise" not in "".join(run["text"] for run in about["texts"][0]["runs"])
    plain = rag.engine.chunk("The mill is closed.")
    assert about["chunks"][2]["id"] == plain.id


def test_a_request_may_name_a_method_and_how_much_it_recomputes(client: OpenAI, chunks: list[Chunk]) -> None:
    def about(**choice: object) -> dict:
        how = {"extra_body": {"ragcache": choice}}
        return client.chat.completions.create(model=MODEL, messages=ask(chunks), **how).model_extra["ragcache"]

    full, half = about(method="full"), about(recompute=0.5)
    assert full["method"] == "full"
    assert full["miss"] == len(chunks)
    assert half["tokens"]["recomputed"] == pytest.approx(0.5 * half["tokens"]["context"], abs=2)
    with pytest.raises(openai.BadRequestError, match="no method is called"):
        about(method="magic")


def test_two_system_messages_are_one_and_a_developer_is_the_system(client: OpenAI, chunks: list[Chunk]) -> None:
    [question] = ask(chunks[:2])
    two = [{"role": "system", "content": "Be brief."}, {"role": "developer", "content": "Be right."}, question]
    one = [{"role": "system", "content": "Be brief.\n\nBe right."}, question]
    first, second = (client.chat.completions.create(model=MODEL, messages=said) for said in (two, one))
    assert first.choices[0].message.content == second.choices[0].message.content
    assert first.usage == second.usage


def test_chunks_are_retrieved_for_the_question_where_a_request_says_how_many(client: OpenAI, rag: RagCache) -> None:
    question = "Who leads the project Amber Raven?"
    options = {"retrieve": 3, "texts": True, "recompute": 0.5}
    said = [{"role": "user", "content": question}]
    answer = client.chat.completions.create(model=MODEL, messages=said, extra_body={"ragcache": options})
    own = rag.ask(question, top_k=3, recompute=0.5)
    assert answer.choices[0].message.content == own.text
    about = answer.model_extra["ragcache"]
    assert [one["id"] for one in about["texts"]] == [chunk["id"] for chunk in about["chunks"]]
    assert about["ms"]["retrieve"] > 0
    for one, source in zip(about["texts"], own.sources, strict=True):
        assert "".join(run["text"] for run in one["runs"]).strip() == source.text.strip()
        assert one["score"] == pytest.approx(source.score)
    assert {run["recomputed"] for one in about["texts"] for run in one["runs"]} == {True, False}


def test_texts_are_said_only_where_they_are_asked_for(client: OpenAI, chunks: list[Chunk]) -> None:
    answer = client.chat.completions.create(model=MODEL, messages=ask(chunks[:1]), max_tokens=1)
    assert "texts" not in answer.model_extra["ragcache"]
    assert chunks[0].text not in answer.to_json()


def test_log_probabilities_are_the_model_s_of_each_token_streamed_or_not(
    client: OpenAI, rag: RagCache, chunks: list[Chunk]
) -> None:
    how = {"model": MODEL, "messages": ask(chunks[:3]), "max_tokens": 4, "logprobs": True, "top_logprobs": 3}
    whole = client.chat.completions.create(**how).choices[0]
    own = rag.engine.complete([Message(**one) for one in ask(chunks[:3])], sampling=Sampling(max_new_tokens=4))
    first = own.logits.log_softmax(-1)
    assert whole.logprobs is not None
    content = whole.logprobs.content
    assert content is not None
    assert [one.token for one in content] == [rag.reader.tokenizer.decode([id]) for id in own.answer.token_ids]
    assert content[0].logprob == pytest.approx(float(first.max()), abs=1e-3)
    assert [one.logprob for one in content[0].top_logprobs] == pytest.approx(first.topk(3).values.tolist(), abs=1e-3)
    assert all(one.top_logprobs[0].token == one.token for one in content), "greedily"
    assert bytes(content[0].bytes or []).decode() == content[0].token
    with client.chat.completions.create(**how, stream=True) as stream:
        pieces = [event.choices[0].logprobs for event in stream]
    streamed = [one for piece in pieces if piece for one in piece.content or []]
    assert [(one.token, one.logprob) for one in streamed] == [(one.token, one.logprob) for one in content]
    without = client.chat.completions.create(**{**how, "top_logprobs": None}).choices[0].logprobs
    assert without is not None
    assert without.content is not None
    assert without.content[0].top_logprobs == []
