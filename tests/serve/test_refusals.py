"""Whatever is wrong with a request is a 4xx in OpenAI's shape that names it."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import openai
import pytest
from fastapi.testclient import TestClient
from openai import OpenAI
from openai_ragcache import ServerSettings, Tenants, create_app
from openai_ragcache.api_errors import hide_folders
from openai_ragcache.tenants import read_keys
from serve.served import MODEL, serve

from ragcache import RagCache
from ragcache.errors import (
    CorruptBlob,
    EmptyIndex,
    IndexFormat,
    InvalidArgument,
    OutOfMemory,
    RagCacheError,
    StorageFull,
    UnreachableStore,
    UnsupportedModel,
    UnusableIndex,
)

ASKED = {"model": MODEL, "messages": [{"role": "user", "content": "Who leads it?"}], "max_tokens": 2}
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def client(rag: RagCache) -> Iterator[TestClient]:
    settings = ServerSettings(max_prompt_tokens=400, max_body_bytes=100_000)
    app = create_app(Tenants.of_one(rag), settings)
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


def error(client: TestClient, body: object, status: int = 400) -> dict:
    data = body if isinstance(body, str | bytes) else json.dumps(body)  # ASCII, so that half a character can be sent
    answer = client.post(CHAT, content=data, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error"}
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    return answer.json()["error"]


def test_what_it_is_asked_well_is_answered(client: TestClient) -> None:
    assert client.post(CHAT, json=ASKED).status_code == 200


@pytest.mark.parametrize(
    ("change", "param", "code"),
    [
        ({"n": 2}, "n", "unsupported_parameter"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools", "unsupported_parameter"),
        ({"tool_choice": "required"}, "tool_choice", "unsupported_parameter"),
        ({"response_format": {"type": "json_object"}}, "response_format", "unsupported_parameter"),
        ({"top_logprobs": 3}, "top_logprobs", "unsupported_parameter"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "invalid_value"),
        ({"logit_bias": {"1": 2}}, "logit_bias", "unsupported_parameter"),
        ({"frequency_penalty": 0.5}, "frequency_penalty", "unsupported_parameter"),
        ({"audio": {"voice": "alloy"}}, "audio", "unsupported_parameter"),
        ({"temprature": 1}, "temprature", "unknown_parameter"),
        ({"temperature": 3}, "temperature", "invalid_value"),
        ({"temperature": float("nan")}, "temperature", "invalid_value"),
        ({"top_p": 0}, "top_p", "invalid_value"),
        ({"max_tokens": 0}, "max_tokens", "invalid_value"),
        ({"seed": 10**30}, "seed", "invalid_value"),
        ({"stop": ["a"] * 17}, "stop", "invalid_value"),
        ({"messages": []}, "messages", "invalid_value"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages", "unsupported_content"),
        ({"messages": [{"role": "user", "content": [IMAGE]}]}, "messages", "unsupported_content"),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, "messages.0.content", "invalid_value"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages", "unsupported_content"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content", "invalid_value"),
    ],
)
def test_a_parameter_is_refused_by_its_name(client: TestClient, change: dict, param: str, code: str) -> None:
    found = error(client, {**ASKED, **change})
    assert found["code"] == code
    assert found["param"] is not None
    assert found["param"].startswith(param)
    assert found["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        *((True, "true"), (False, "false"), ("4", '"4"'), (4.0, "4.0"), (0, "0"), (51, "51")),
        *(([4], "a list"), ({}, "an object"), ("4" * 99, '"' + "4" * 39)),
    ],
)
def test_a_number_of_chunks_is_a_whole_number_and_nothing_else(client: TestClient, value: object, shown: str) -> None:
    found = error(client, {**ASKED, "ragcache": {"retrieve": value}})
    assert (found["param"], found["code"]) == ("ragcache.retrieve", "invalid_value")
    assert found["message"] == f"'ragcache.retrieve': it is {shown}; give a whole number from 1 to 50"
    tool = {"type": "file_search", "vector_store_ids": ["vs-1"], "max_num_results": value}
    for path, body in (
        ("/v1/vector_stores/vs-1/search", {"query": "Who leads it?", "max_num_results": value}),
        ("/v1/responses", {"model": MODEL, "input": "Who leads it?", "tools": [tool]}),
    ):
        answer = client.post(path, json=body)
        assert answer.status_code == 400
        assert answer.json()["error"]["param"].endswith("max_num_results")
        assert f"it is {shown}; give a whole number" in answer.json()["error"]["message"]


def test_a_number_of_chunks_may_be_left_open(client: TestClient) -> None:
    assert client.post(CHAT, json={**ASKED, "ragcache": {"retrieve": None}}).status_code == 200
    few = client.post(CHAT, json={**ASKED, "ragcache": {"retrieve": 2}, "max_tokens": 1})
    assert len(few.json()["ragcache"]["chunks"]) == 2


@pytest.mark.parametrize(
    "change",
    [
        *({"n": 1}, {"tools": []}, {"frequency_penalty": 0.0}, {"response_format": {"type": "text"}}, {"user": "u"}),
        *({"logprobs": False}, {"stop": None}, {"parallel_tool_calls": True}, {"tool_choice": None}),
        *({"stream": None}, {"documents": None}, {"ragcache": None}, {"stream_options": {"include_usage": None}}),
    ],
)
def test_what_asks_for_nothing_is_taken(client: TestClient, change: dict) -> None:
    assert client.post(CHAT, json={**ASKED, **change}).status_code == 200


@pytest.mark.parametrize(
    "body", ["{", "", b"\xff\xfe", "[]", '"text"', "[" * 100_000, '{"model": 1' + "0" * 5000 + "}"]
)
def test_malformed_json_is_a_400(client: TestClient, body: str | bytes) -> None:
    error(client, body)


def test_an_unknown_model_is_a_404_that_names_the_one_there_is(client: TestClient) -> None:
    found = error(client, {**ASKED, "model": "gpt-4o\ud800"[:6]}, 404)
    assert (found["code"], found["param"]) == ("model_not_found", "model")
    assert MODEL in found["message"]


def test_a_prompt_beyond_a_limit_names_both_lengths(client: TestClient) -> None:
    long = {**ASKED, "messages": [{"role": "user", "content": "word " * 500}]}
    found = error(client, long)
    assert found["code"] == "context_length_exceeded"
    assert "takes 400" in found["message"]


def test_a_prompt_beyond_the_model_is_refused(rag: RagCache) -> None:
    with TestClient(create_app(Tenants.of_one(rag)), base_url="http://127.0.0.1") as client:
        long = {**ASKED, "messages": [{"role": "user", "content": "word " * 9000}]}
        assert error(client, long)["code"] == "context_length_exceeded"


def test_a_body_beyond_the_limit_is_a_413_even_if_it_does_not_say_how_large_it_is(client: TestClient) -> None:
    assert error(client, b"x" * 100_001, 413)["code"] == "body_too_large"
    answer = client.post(CHAT, content=(b"x" * 1000 for _ in range(200)))
    assert answer.status_code == 413


def test_unknown_paths_and_methods_have_the_same_shape(client: TestClient) -> None:
    assert client.get("/v1/nothing").json()["error"]["code"] == "unknown_url"
    assert client.get(CHAT).status_code == 405
    assert "error" in client.get(CHAT).json()


def test_a_web_page_elsewhere_cannot_ask_a_server_without_keys(client: TestClient) -> None:
    for headers in ({"Origin": "https://example.org"}, {"Origin": "null"}, {"Host": "example.org"}, {"Host": "[::"}):
        assert client.get("/v1/models", headers=headers).status_code == 403
    for headers in ({"Origin": "http://127.0.0.1"}, {"Host": "localhost:8000"}, {"Host": "[::1]:8000"}):
        assert client.get("/v1/models", headers=headers).status_code == 200


def test_a_bug_is_a_500_that_tells_nothing(client: TestClient, rag: RagCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(rag.engine, "start", broken)
    found = error(client, ASKED, 500)
    assert "secret" not in found["message"]
    assert found["type"] == "server_error"
    monkeypatch.undo()
    assert client.post(CHAT, json=ASKED).status_code == 200


@pytest.mark.parametrize(
    ("raised", "status"),
    [
        (OutOfMemory("it needs 9 GiB, and 1 is free"), 503),
        (UnreachableStore("the bucket does not answer"), 503),
        (UnusableIndex("others keep the index locked; repeat the command"), 503),
        (StorageFull("the disk is full"), 500),
        (IndexFormat("the index is damaged"), 500),
        (CorruptBlob("0123456789abcdef", "it is cut off"), 500),
        (EmptyIndex("nothing was ingested"), 400),
        (UnsupportedModel("the model has no layer of that kind"), 400),
    ],
)
def test_what_the_host_has_to_mend_is_no_fault_of_the_client_s(
    client: TestClient,
    rag: RagCache,
    raised: RagCacheError,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(*_: object) -> None:
        raise raised

    monkeypatch.setattr(rag.engine, "start", broken)
    found = error(client, ASKED, status)
    assert found["message"] == str(raised)
    assert found["type"] == ("invalid_request_error" if status == 400 else "server_error")
    assert (str(raised) in caplog.text) == (status >= 500)


def test_a_key_is_asked_for_before_a_body_is_read(rag: RagCache) -> None:
    key = "k" * 20
    app = create_app(Tenants.of_one(rag, key), ServerSettings(host="0.0.0.0"))
    with TestClient(app, base_url="http://example.org") as client:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {key}"}):
            answer = client.post(CHAT, content="{", headers=headers)
            assert answer.status_code == 401
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            assert client.get("/metrics", headers=headers).status_code == 401
        assert client.post(CHAT, json=ASKED, headers={"Authorization": f"Bearer {key}"}).status_code == 200
        assert client.get("/health").status_code == client.get("/ready").status_code == 200


def test_nobody_listens_openly_without_a_key(rag: RagCache) -> None:
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org"):
        with pytest.raises(InvalidArgument, match="RAGCACHE_API_KEY"):
            create_app(Tenants.of_one(rag), ServerSettings(host=host))
    for host in ("127.0.0.1", "127.8.0.1", "::1", "localhost"):
        assert ServerSettings(host=host).is_loopback


def test_keys_are_read_from_a_file_with_an_index_each(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# two tenants\n0123456789abcdef /data/a\n\nfedcba9876543210  /data/b c # the second\n")
    assert read_keys(file) == {"0123456789abcdef": Path("/data/a"), "fedcba9876543210": Path("/data/b c")}
    file.write_text("0123456789abcdef /data/a#b\n")
    assert read_keys(file) == {"0123456789abcdef": Path("/data/a#b")}, "not the folder /data/a, which may be another's"
    for text, wrong in (("", "no key"), ("key", "line 1"), ("k a\nk b", "line 2"), (None, "cannot be read")):
        file.unlink()
        if text is not None:
            file.write_text(text)
        with pytest.raises(InvalidArgument, match=wrong):
            read_keys(file)
        file.touch()


def test_short_keys_are_refused(rag: RagCache) -> None:
    with pytest.raises(InvalidArgument, match="16"):
        Tenants.of_one(rag, "short")


def test_messages_name_no_folders() -> None:
    said = hide_folders("no document of /home/a/b c.md or '/x/y/z.pdf'; run `ragcache ingest --index /data/index`")
    assert said == "no document of b c.md or 'z.pdf'; run `ragcache ingest --index index`"
    assert hide_folders("and/or, 1/2, a/b.md, ~/x") == "and/or, 1/2, a/b.md, ~/x"


@pytest.mark.parametrize("name", ["BadRequestError", "NotFoundError"])
def test_the_client_raises_its_own_errors(url: str, name: str) -> None:
    change = {"BadRequestError": {"n": 2}, "NotFoundError": {"model": "gpt-4o"}}[name]
    with OpenAI(base_url=url, api_key="none", max_retries=0) as client, pytest.raises(getattr(openai, name)) as caught:
        client.chat.completions.create(**{**ASKED, **change})
    assert caught.value.code in ("unsupported_parameter", "model_not_found")


def test_a_wrong_key_and_100_mb_are_refused_by_a_real_server_that_lives_on(rag: RagCache) -> None:
    key = "k" * 20
    with serve(Tenants.of_one(rag, key)) as url:
        with OpenAI(base_url=url, api_key="wrong", max_retries=0) as client, pytest.raises(openai.AuthenticationError):
            client.models.list()
        with OpenAI(base_url=url, api_key=key, max_retries=0) as client:
            body, headers = (b"x" * 100_000 for _ in range(1000)), {"Authorization": f"Bearer {key}"}
            headers |= {"Content-Length": str(10**8)}
            assert httpx.post(f"{url}/chat/completions", content=body, headers=headers, timeout=60).status_code == 413
            with pytest.raises(openai.APIStatusError, match="413"):
                client.chat.completions.create(**{**ASKED, "user": "x" * 5_000_000})
            assert client.chat.completions.create(**ASKED).choices


def test_a_flood_of_headers_is_cut_off(url: str) -> None:
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port), timeout=10) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        answer = b""
        try:
            for number in range(40):
                connection.sendall(b"".join(b"X-%d-%d: %s\r\n" % (number, i, b"y" * 100) for i in range(100)))
            answer = connection.recv(1000)
        except OSError:
            pass  # cut off while it sends
    assert not answer or b"400" in answer.splitlines()[0]


def trickle(connection: socket.socket, data: bytes) -> None:
    for letter in data:
        connection.sendall(bytes([letter]))
        time.sleep(0.03)


@pytest.mark.parametrize("earlier", [0, 1])
def test_headers_that_come_too_slowly_are_cut_off(rag: RagCache, earlier: int) -> None:
    with serve(Tenants.of_one(rag), headers_seconds=0.4) as url:
        where = urlsplit(url)
        with socket.create_connection((where.hostname, where.port), timeout=10) as connection:
            for _ in range(earlier):  # a connection that is used again
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                assert b"200" in connection.recv(4000).splitlines()[0]
            began = time.monotonic()
            with pytest.raises(ConnectionError):
                trickle(connection, b"GET /health HTTP/1.1\r\nX: " + b"y" * 200)
            assert 0.3 < time.monotonic() - began < 5


def test_an_answer_may_take_longer_than_headers(rag: RagCache) -> None:
    with serve(Tenants.of_one(rag), headers_seconds=0.05) as url, httpx.Client(timeout=60) as client:
        for _ in range(2):
            began = time.monotonic()
            body = {**ASKED, "max_tokens": 100, "temperature": 2, "seed": 1}
            assert client.post(f"{url}/chat/completions", json=body).status_code == 200
            assert time.monotonic() - began > 0.05


def test_a_body_that_does_not_come_is_given_up(rag: RagCache) -> None:
    with serve(Tenants.of_one(rag), body_seconds=0.2) as url:
        where = urlsplit(url)
        with socket.create_connection((where.hostname, where.port), timeout=10) as connection:
            head = f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 99"
            connection.sendall(head.encode() + b"\r\n\r\n{")
            began = time.monotonic()
            assert b"408" in connection.recv(4000).splitlines()[0]
            assert time.monotonic() - began < 5


def test_a_slow_reader_holds_nobody_up_and_is_told_everything(url: str) -> None:
    long = {"stream": True, "temperature": 2, "seed": 1, "max_tokens": 200, "logprobs": True, "top_logprobs": 20}
    body = json.dumps({**ASKED, **long, "messages": [{"role": "user", "content": "Go on and on."}]})
    head = f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    where = urlsplit(url)
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        slow.connect((where.hostname, where.port))
        slow.sendall(f"{head}\r\nConnection: close\r\n\r\n{body}".encode())
        told = slow.recv(100)
        assert httpx.post(f"{url}/chat/completions", json=ASKED, timeout=60).status_code == 200
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        told += b"".join(iter(lambda: slow.recv(1 << 16), b""))
    assert len(told) > 200_000
    assert b"data: [DONE]" in told[-30:]
