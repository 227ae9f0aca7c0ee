"""Prompts that are continued, vectors, and counts."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import ClassVar

import httpx
import numpy as np
import openai
import pytest
import torch
from fastapi.testclient import TestClient
from openai import OpenAI
from openai_ragcache import ServerSettings, Tenants, create_app
from openai_ragcache.logprobs import Logprobs
from openai_ragcache.text_form import ContinuedText
from serve.served import MODEL, ask
from tokenizers import Tokenizer, decoders, models, normalizers
from transformers import PreTrainedTokenizerFast

from ragcache import Chunk, RagCache, Sampling
from ragcache.model.decode import pieces


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
    assert answer.choices[0].text == rag.reader.tokenizer.decode(own.token_ids)
    assert answer.choices[0].model_extra["ragcache"]["hit"] == 3
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == own.report.tokens.context + own.report.tokens.question


@pytest.mark.parametrize("asked", ["Once", "  \n Once", "Once upon ", "Once\n\n"])
def test_white_space_of_a_prompt_and_of_its_continuation_is_kept(client: OpenAI, rag: RagCache, asked: str) -> None:
    """As transformers has it: what is behind the prompt in the text of all tokens."""
    tokenizer, model = rag.reader.tokenizer, rag.reader.model
    given = tokenizer(asked, return_tensors="pt")["input_ids"]
    tokens = model.generate(input_ids=given, max_new_tokens=10, do_sample=False)[0]
    own = tokenizer.decode(tokens, skip_special_tokens=True).removeprefix(asked)
    how = {"model": MODEL, "prompt": asked, "max_tokens": 10}
    whole = client.completions.create(**how)
    assert whole.choices[0].text == own
    assert whole.usage is not None
    assert whole.usage.prompt_tokens == given.shape[1]
    with client.completions.create(**how, stream=True) as stream:
        assert "".join(choice.text for event in stream for choice in event.choices) == own


def test_some_continuation_begins_and_another_ends_with_white_space(client: OpenAI) -> None:
    how = {"model": MODEL, "prompt": "Once"}
    said = client.completions.create(**how, max_tokens=10).choices[0].text
    assert said.startswith(" t")
    assert said.endswith("\n")


@pytest.mark.parametrize(
    ("prompt", "said"),
    [("Paris is", " big now"), ("Paris is ", "big"), ("Paris is", "big"), ("Paris", "  is\n"), ("é", " é"), ("é", "")],
)
def test_a_blank_that_sentencepiece_drops_in_front_is_kept(prompt: str, said: str) -> None:
    tokenizer = blank_dropping_tokenizer()
    ids = _pieced(tokenizer, said)
    form = ContinuedText(Written(tokenizer, _pieced(tokenizer, prompt), ids), tokenizer)
    found = list(form)
    assert form.join(found) == said
    assert "" not in found
    assert form.shift == len(said) - len(tokenizer.decode(ids))


class Written:
    """An answer of known tokens."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, before: list[int], ids: list[int]) -> None:
        self.prompt = SimpleNamespace(text_ids=before)
        self._ids: list[int] = []
        self._pieces = pieces(iter(ids), tokenizer, (), self._ids)

    def __iter__(self) -> Iterator[str]:
        return self._pieces

    @property
    def token_ids(self) -> tuple[int, ...]:
        return tuple(self._ids)


def _pieced(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    """A text's tokens where it is no beginning: a blank is part of the word behind it."""
    return [] if not text else tokenizer.encode(f"x{text}")[1:]


def blank_dropping_tokenizer() -> PreTrainedTokenizerFast:
    """As Llama 2's: blanks are written as U+2581, and the first one of a text is dropped when it is decoded."""
    letters = ["<unk>", "x", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", *"Parisbgnow", "\u2581b"]
    vocabulary = {token: i for i, token in enumerate(dict.fromkeys(letters))}
    backend = Tokenizer(models.BPE(vocabulary, [("\u2581", "b")], unk_token="<unk>", byte_fallback=True))
    backend.normalizer = normalizers.Replace(" ", "\u2581")
    backend.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")


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
    assert [said[0], said[1]] == [choice.text for choice in whole.choices]
    assert events[-1].usage == whole.usage


def test_log_probabilities_have_the_older_shape_streamed_or_not(
    client: OpenAI, rag: RagCache, chunks: list[Chunk]
) -> None:
    prompt = "\n\n".join([*(chunk.text for chunk in chunks[2::-1]), "The project is led by"])
    how = {"model": MODEL, "prompt": [prompt, "Once"], "max_tokens": 6, "logprobs": 3}
    whole = client.completions.create(**how).choices
    own = rag.engine.complete(prompt, sampling=Sampling(max_new_tokens=6))
    first = own.logits.log_softmax(-1)
    found = whole[0].logprobs
    assert found is not None
    assert found.tokens == [rag.reader.tokenizer.decode([id]) for id in own.answer.token_ids]
    assert found.token_logprobs[0] == pytest.approx(float(first.max()), abs=1e-3)
    assert list(found.top_logprobs[0].values()) == pytest.approx(first.topk(3).values.tolist(), abs=1e-3)
    for token, offset in zip(found.tokens, found.text_offset, strict=True):
        assert whole[0].text[offset:].startswith(token)
    streamed: list[list[tuple]] = [[], []]
    with client.completions.create(**how, stream=True) as stream:
        for choice in (choice for event in stream for choice in event.choices):
            if choice.logprobs is not None:
                streamed[choice.index] += _rows(choice.logprobs)
    assert streamed == [_rows(choice.logprobs) for choice in whole]


def _rows(found: object) -> list[tuple]:
    return list(zip(found.tokens, found.token_logprobs, found.top_logprobs, found.text_offset, strict=True))


def test_no_log_probabilities_of_other_tokens_is_the_chosen_ones_alone(client: OpenAI) -> None:
    how = {"model": MODEL, "prompt": "Once", "max_tokens": 3}
    found = client.completions.create(**how, logprobs=0).choices[0].logprobs
    assert found is not None
    assert [list(one) for one in found.top_logprobs] == [[token] for token in found.tokens]
    for nothing in (None, False):
        assert client.completions.create(**how, logprobs=nothing).choices[0].logprobs is None


@pytest.mark.parametrize(("shift", "starts"), [(-1, [0, 0, 0, 1]), (0, [0, 1, 1, 2]), (1, [0, 2, 2, 3])])
def test_a_token_begins_where_its_character_does(shift: int, starts: list[int]) -> None:
    class Letters:
        """Token 0 is white space; 1 and 2 are the halves of a character."""

        texts: ClassVar = {(): "", (0,): " ", (0, 1): " \ufffd", (0, 1, 2): " é", (0, 1, 2, 3): " éa"}

        def decode(self, ids: list[int], **_: object) -> str:
            return self.texts.get(tuple(ids), "?")

    logprobs = Logprobs(Letters(), 0)
    for _ in range(4):
        logprobs.watch(torch.zeros(5))
    assert [one.start for one in logprobs.take([0, 1, 2, 3], shift)] == starts


@pytest.mark.parametrize(
    ("change", "param"),
    [
        *[
            ({"echo": True}, "echo"),
            ({"best_of": 2}, "best_of"),
            ({"suffix": "x"}, "suffix"),
            ({"logprobs": 21}, "logprobs"),
            ({"logprobs": True}, "logprobs"),
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


def test_what_goes_wrong_in_the_server_is_counted(rag: RagCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("openai_ragcache.uploads.Uploads.files", fail)
    app = create_app(Tenants.of_one(rag), ServerSettings())
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        assert client.get("/v1/files").status_code == 500
        assert 'ragcache_requests_total{path="/v1/files",status="500"} 1.0' in client.get("/metrics").text
