"""Prompts that are continued, vectors, and counts."""

from collections.abc import Iterator

import httpx
import numpy as np
import openai
import pytest
from openai import OpenAI
from serve.served import MODEL, ask

from ragcache import Chunk, RagCache, Sampling


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
def prompt(chunks: list[Chunk]) -> str:
    return ask(chunks[2::-1])[0]["content"] + "\nAnswer:"


def test_a_string_is_continued_as_it_is(client: OpenAI, rag: RagCache, prompt: str) -> None:
    answer = client.completions.create(model=MODEL, prompt=prompt, max_tokens=8)
    own = rag.engine.complete(prompt, sampling=Sampling(max_new_tokens=8)).answer
    assert answer.choices[0].text == own.text
    assert answer.choices[0].model_extra["ragcache"]["hit"] == 3
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == own.report.tokens.context + own.report.tokens.question


def test_token_ids_are_read_as_their_text(client: OpenAI, rag: RagCache, prompt: str) -> None:
    tokenizer = rag.reader.tokenizer
    ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    text = client.completions.create(model=MODEL, prompt=prompt, max_tokens=4)
    for given in (ids, [tokenizer.bos_token_id, *ids] if tokenizer.bos_token_id is not None else ids):
        answer = client.completions.create(model=MODEL, prompt=given, max_tokens=4)
        assert answer.choices[0].text == text.choices[0].text
        assert answer.choices[0].model_extra["ragcache"]["hit"] == 3


def test_several_prompts_are_answered_one_by_one(client: OpenAI, prompt: str) -> None:
    whole = client.completions.create(model=MODEL, prompt=[prompt, "Once"], max_tokens=4)
    each = [client.completions.create(model=MODEL, prompt=one, max_tokens=4) for one in (prompt, "Once")]
    assert [one.text for one in whole.choices] == [one.choices[0].text for one in each]
    assert [one.index for one in whole.choices] == [0, 1]
    assert whole.usage is not None
    assert whole.usage.total_tokens == sum(one.usage.total_tokens for one in each if one.usage)


def test_a_stream_of_several_prompts_says_which_is_which(client: OpenAI, prompt: str) -> None:
    whole = client.completions.create(model=MODEL, prompt=[prompt, "Once"], max_tokens=4)
    how = {"stream": True, "stream_options": {"include_usage": True}}
    with client.completions.create(model=MODEL, prompt=[prompt, "Once"], max_tokens=4, **how) as stream:
        events = list(stream)
    said = {0: "", 1: ""}
    for event in events:
        for choice in event.choices:
            said[choice.index] += choice.text
    assert [said[0].strip(), said[1].strip()] == [choice.text for choice in whole.choices]
    assert events[-1].usage == whole.usage


@pytest.mark.parametrize(
    ("change", "param"),
    [
        *[
            ({"echo": True}, "echo"),
            ({"best_of": 2}, "best_of"),
            ({"suffix": "x"}, "suffix"),
            ({"logprobs": 3}, "logprobs"),
        ],
        *[({"prompt": [2**40]}, "prompt"), ({"prompt": [-1]}, "prompt"), ({"prompt": []}, "prompt")],
    ],
)
def test_what_is_not_supported_is_refused_by_name(client: OpenAI, change: dict, param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(**{"model": MODEL, "prompt": "Once", "max_tokens": 2, **change})
    assert caught.value.param is not None
    assert caught.value.param.startswith(param)


def test_a_special_token_is_no_text(client: OpenAI, rag: RagCache) -> None:
    with pytest.raises(openai.BadRequestError, match="chat/completions"):
        client.completions.create(model=MODEL, prompt=[5, rag.reader.tokenizer.eos_token_id], max_tokens=2)


@pytest.mark.parametrize("form", ["float", "base64", None])
def test_vectors_are_the_index_s_own(client: OpenAI, rag: RagCache, form: str | None) -> None:
    texts = ["Where is the ferry?", "A mill."]
    how = {"encoding_format": form} if form else {}
    answer = client.embeddings.create(model=rag.embedder.name, input=texts, **how)
    own = rag.embedder.embed(texts)
    assert np.allclose([_vector(one.embedding) for one in answer.data], own, atol=1e-6)
    assert answer.usage.prompt_tokens == sum(map(rag.embedder.count, texts))
    one = client.embeddings.create(model=rag.embedder.name, input=texts[0])
    assert np.allclose(one.data[0].embedding, own[0], atol=1e-6)


def _vector(sent: object) -> np.ndarray:
    import base64

    return np.frombuffer(base64.b64decode(sent), "<f4") if isinstance(sent, str) else np.asarray(sent)


def test_other_embedders_ids_and_lengths_are_refused(client: OpenAI, rag: RagCache) -> None:
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="text-embedding-3-small", input="x")
    for change in ({"input": [1, 2]}, {"input": []}, {"dimensions": 64}):
        with pytest.raises(openai.BadRequestError) as caught:
            client.embeddings.create(**{"model": rag.embedder.name, "input": "x", **change})
        assert caught.value.param is not None


def test_metrics_count_chunk_tokens_and_requests_but_no_tenant(client: OpenAI, url: str, prompt: str) -> None:
    page = url.removesuffix("/v1") + "/metrics"

    def value(line: str) -> float:
        found = [row for row in httpx.get(page).text.splitlines() if row.startswith(line)]
        return float(found[0].rpartition(" ")[2]) if found else 0.0

    lines = [
        'ragcache_chunks_total{state="hit"}',
        "ragcache_first_token_seconds_count",
        "ragcache_generated_tokens_total",
    ]
    lines.append('ragcache_requests_total{path="/v1/completions",status="200"}')
    before = [value(line) for line in lines]
    answer = client.completions.create(model=MODEL, prompt=prompt, max_tokens=4)
    assert answer.usage is not None
    gained = [value(line) - was for line, was in zip(lines, before, strict=True)]
    assert gained == [3, 1, answer.usage.completion_tokens, 1]
    httpx.get(url + "/nothing/at/all")
    assert "nothing" not in httpx.get(page).text
    assert "tenant" not in httpx.get(page).text
