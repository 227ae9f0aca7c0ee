"""Files, vector stores and responses: documents come and go by the official client, and each tenant has its own."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, replace
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import openai
import pytest
from fastapi.testclient import TestClient
from openai import OpenAI
from openai.types.responses import ResponseFailedEvent
from openai_ragcache import ServerSettings, Tenants, create_app, responses
from openai_ragcache.api_errors import ApiError
from openai_ragcache.engine_queue import EngineQueue, QueueFull
from openai_ragcache.generation import Generation, Piece
from openai_ragcache.stores import search
from openai_ragcache.tenants import Tenant
from openai_ragcache.uploads import Member, UploadedFile, VectorStore
from serve.served import MODEL, serve

from ragcache import Chunk, RagCache
from ragcache.bundled import corpus_path
from ragcache.report import Progress

KEYS = {name: f"{name}-0123456789abcdef" for name in ("a", "b")}
PAGE = corpus_path() / "projects" / "amber-raven.md"
TIDE = "# Tide\n\nThe Tide project is led by Mara Voss. It is based in Kelmar.\n"
QUESTION = "Who leads the Tide project?"


@pytest.fixture(scope="module")
def tenants(rag: RagCache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    folder = tmp_path_factory.mktemp("tenants")
    opened = {name: Tenant(RagCache.open(folder / name, model=rag.reader)) for name in KEYS}
    tenants = Tenants({KEYS[name]: tenant for name, tenant in opened.items()})
    yield tenants
    tenants.close()


@pytest.fixture(scope="module")
def served(tenants: Tenants) -> Iterator[str]:
    with serve(tenants) as url:
        yield url


@pytest.fixture(scope="module")
def client(served: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=served, api_key=KEYS["a"], max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def other(served: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=served, api_key=KEYS["b"], max_retries=0) as client:
        yield client


def upload(client: OpenAI, store: str, name: str, text: str) -> str:
    file = client.files.create(file=(name, text.encode()), purpose="assistants")
    done = client.vector_stores.files.create_and_poll(file.id, vector_store_id=store, poll_interval_ms=20)
    assert done.status == "completed", done.last_error
    return file.id


@pytest.fixture(scope="module")
def store(client: OpenAI) -> str:
    """A store of two files."""
    store = client.vector_stores.create(name="projects", metadata={"of": "tests"})
    assert (store.status, store.file_counts.total) == ("completed", 0)
    upload(client, store.id, "tide.md", TIDE)
    upload(client, store.id, PAGE.name, PAGE.read_text())
    return store.id


def test_a_store_says_what_is_in_it(client: OpenAI, store: str) -> None:
    found = client.vector_stores.retrieve(store)
    assert (found.name, found.metadata, found.status) == ("projects", {"of": "tests"}, "completed")
    assert (found.file_counts.completed, found.file_counts.total) == (2, 2)
    names = {client.files.retrieve(one.id).filename for one in client.vector_stores.files.list(store)}
    assert names == {"tide.md", PAGE.name}
    assert client.vector_stores.update(store, name="renamed").name == "renamed"
    assert [one.id for one in client.vector_stores.list()] == [store]
    newest, oldest = client.files.list(limit=2).data
    assert [newest.filename, oldest.filename] == [PAGE.name, "tide.md"]
    assert [one.filename for one in client.files.list(limit=1, order="asc")] == ["tide.md", PAGE.name]
    assert client.files.content(oldest.id).content == TIDE.encode()


def test_a_search_finds_the_chunk_and_its_file(client: OpenAI, store: str) -> None:
    found = client.vector_stores.search(store, query=QUESTION, max_num_results=2).data
    assert found[0].filename == "tide.md"
    assert "Mara Voss" in found[0].content[0].text
    assert 0 <= found[1].score <= found[0].score <= 1
    assert len(found) == 2


def test_what_a_response_found_is_read_as_it_stands_in_its_file(
    client: OpenAI, tenants: Tenants, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def last_first(*asked: Any) -> list[Chunk]:
        return sorted(search(*asked), key=lambda chunk: -chunk.ordinal)

    monkeypatch.setattr(responses, "search", last_first)
    tools = [{"type": "file_search", "vector_store_ids": [store], "max_num_results": 3}]
    question = "What is the budget of the project Amber Raven?"
    response = client.responses.create(
        model=MODEL, input=question, tools=tools, include=["file_search_call.results"], max_output_tokens=1
    )
    index = tenants.all[0].rag.index
    read = index.chunks([one["id"] for one in response.model_extra["ragcache"]["chunks"]])
    own = [chunk.ordinal for chunk in read if chunk.source.endswith(PAGE.name)]
    assert own == sorted(own)
    assert len(own) > 1
    results = [one.text for one in response.output[0].results if one.filename == PAGE.name]
    assert len(results) == len(own), "the search call shows what was found"


def test_a_response_is_answered_from_a_store_s_kv_and_cites_its_files(
    client: OpenAI, store: str, tenants: Tenants
) -> None:
    tools = [{"type": "file_search", "vector_store_ids": [store], "max_num_results": 3}]
    response = client.responses.create(
        model=MODEL, input=QUESTION, tools=tools, include=["file_search_call.results"], temperature=0
    )
    call, message = response.output
    assert (call.type, call.status, call.queries) == ("file_search_call", "completed", [QUESTION])
    assert call.results[0].filename == "tide.md"
    own = tenants.all[0].rag.ask(QUESTION, top_k=3)
    assert response.output_text == message.content[0].text == own.text
    cited = [one.filename for one in message.content[0].annotations]
    assert cited[0] == "tide.md"
    assert len(cited) == len(set(cited))
    about = response.model_extra["ragcache"]
    assert (about["hit"] + about["exact"], about["miss"]) == (3, 0)
    assert about["ms"]["retrieve"] > 0
    assert response.usage is not None
    assert response.usage.input_tokens_details.cached_tokens == 0
    hidden = client.responses.create(model=MODEL, input=QUESTION, tools=tools)
    assert hidden.output[0].results is None


def test_a_response_streams_the_same(client: OpenAI, store: str) -> None:
    tools = [{"type": "file_search", "vector_store_ids": [store]}]
    whole = client.responses.create(model=MODEL, input=QUESTION, tools=tools)
    with client.responses.stream(model=MODEL, input=QUESTION, tools=tools) as stream:
        events = list(stream)
        final = stream.get_final_response()
    kinds = [event.type for event in events]
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert kinds.index("response.file_search_call.completed") < kinds.index("response.output_text.delta")
    assert [event.sequence_number for event in events] == sorted({event.sequence_number for event in events})
    assert final.output_text == whole.output_text
    assert final.output[1].content[0].annotations == whole.output[1].content[0].annotations
    assert final.model_extra["ragcache"]["hit"] == whole.model_extra["ragcache"]["hit"] > 0


def test_a_response_without_tools_is_a_conversation(client: OpenAI) -> None:
    said = [
        {"role": "user", "content": [{"type": "input_text", "text": "Where does the ferry go?"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Across the sound."}]},
        {"role": "user", "content": "How often?"},
    ]
    response = client.responses.create(model=MODEL, input=said, instructions="Be brief.", max_output_tokens=4)
    turns = [{"role": "system", "content": "Be brief."}, *said[2:]]
    turns[1:1] = [{"role": one["role"], "content": one["content"][0]["text"]} for one in said[:2]]
    chat = client.chat.completions.create(model=MODEL, messages=turns, max_tokens=4)
    assert response.output_text == chat.choices[0].message.content
    assert len(response.output) == 1
    assert response.status == "incomplete"
    assert response.incomplete_details.reason == "max_output_tokens"


def test_what_was_uploaded_is_hit_in_a_front_end_s_prompt_too(client: OpenAI, store: str) -> None:
    [text] = client.vector_stores.search(store, query=QUESTION, max_num_results=1).data[0].content
    said = [{"role": "user", "content": f'<source id="1">{text.text}</source>\n\n{QUESTION}'}]
    about = client.chat.completions.create(model=MODEL, messages=said).model_extra["ragcache"]
    assert about["hit"] == 1


def test_the_same_text_in_two_stores_is_found_in_either(client: OpenAI, store: str) -> None:
    second = client.vector_stores.create(name="again")
    file = upload(client, second.id, "copy.md", TIDE)
    for id, name in ((store, "tide.md"), (second.id, "copy.md")):
        found = client.vector_stores.search(id, query=QUESTION).data
        assert found[0].filename == name
        assert {one.filename for one in found} <= {"tide.md", PAGE.name} if id == store else {"copy.md"}
    client.vector_stores.delete(second.id)
    client.files.delete(file)


def test_questions_are_answered_while_a_file_is_ingested_and_removals_wait(
    client: OpenAI, tenants: Tenants, monkeypatch: pytest.MonkeyPatch
) -> None:
    rag, begun, answered, order = tenants.all[0].rag, Event(), Event(), list[str]()
    ingest, forget = rag.ingest, rag.forget

    def ingest_slowly(paths: Any, *, progress: Progress, **how: Any) -> Any:
        def note(stage: str, done: int, total: int) -> None:
            while stage.startswith("encode") and not answered.is_set():
                begun.set()
                progress(stage, done, total)
                time.sleep(0.005)
            progress(stage, done, total)

        report = ingest(paths, progress=note, **how)
        order.append("ingested")
        return report

    monkeypatch.setattr(rag, "ingest", ingest_slowly)
    monkeypatch.setattr(rag, "forget", lambda *given: order.append("forgot") or forget(*given))
    store = client.vector_stores.create(name="slow")
    file = client.files.create(file=("otter.md", b"# Otter\n\nThe Otter ferry leaves at nine."), purpose="assistants")
    member = client.vector_stores.files.create(store.id, file_id=file.id)
    assert begun.wait(20)
    asked = client.with_options(timeout=20).chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": QUESTION}], max_tokens=2
    )
    order.append("answered")
    with ThreadPoolExecutor(1) as pool:
        removed = pool.submit(client.files.delete, file.id)
        time.sleep(0.2)
        answered.set()
        assert removed.result(20).deleted
    assert member.status == "in_progress"
    assert asked.choices
    assert order == ["answered", "ingested", "forgot"]
    client.vector_stores.delete(store.id)


def test_what_is_removed_leaves_the_index_with_its_last_store(client: OpenAI, tenants: Tenants) -> None:
    rag = tenants.all[0].rag
    first, second = (client.vector_stores.create(name=name) for name in ("one", "two"))
    file = upload(client, first.id, "mill.txt", "The mill grinds rye on Mondays, and wheat on Fridays.")
    client.vector_stores.files.create_and_poll(file, vector_store_id=second.id, poll_interval_ms=20)

    def known() -> list[str]:
        return [Path(one.source).name for one in rag.documents()]

    assert "mill.txt" in known()
    assert client.vector_stores.files.delete(file, vector_store_id=first.id).deleted
    assert "mill.txt" in known()
    assert client.vector_stores.search(first.id, query="What does the mill grind?").data == []
    assert client.vector_stores.delete(second.id).deleted
    assert "mill.txt" not in known()
    assert client.files.retrieve(file).filename == "mill.txt"
    client.vector_stores.files.create_and_poll(file, vector_store_id=first.id, poll_interval_ms=20)
    assert client.files.delete(file).deleted
    assert "mill.txt" not in known()
    assert not list((rag.index.path / "uploads").rglob("mill.txt"))
    client.vector_stores.delete(first.id)
    for gone in (lambda: client.files.retrieve(file), lambda: client.vector_stores.retrieve(first.id)):
        with pytest.raises(openai.NotFoundError):
            gone()


def test_another_tenant_s_ids_are_as_unknown_as_any(client: OpenAI, other: OpenAI, store: str) -> None:
    file = client.files.list().data[0].id
    tools = [{"type": "file_search", "vector_store_ids": [store]}]
    own = other.vector_stores.create(name="own").id
    probes = [
        lambda id, file: other.files.retrieve(file),
        lambda id, file: other.files.content(file),
        lambda id, file: other.files.delete(file),
        lambda id, file: other.vector_stores.retrieve(id),
        lambda id, file: other.vector_stores.delete(id),
        lambda id, file: other.vector_stores.search(id, query="x"),
        lambda id, file: other.vector_stores.files.list(id),
        lambda id, file: other.vector_stores.files.create(own, file_id=file),
        lambda id, file: other.vector_stores.create(file_ids=[file]),
        lambda id, file: other.responses.create(model=MODEL, input="x", tools=[{**tools[0], "vector_store_ids": [id]}]),
    ]
    for probe in probes:
        told = []
        for id, name in ((store, file), ("vs-nothing", "file-nothing")):
            with pytest.raises(openai.NotFoundError) as caught:
                probe(id, name)
            told.append(caught.value.message.replace(id, "ID").replace(name, "ID"))
        assert told[0] == told[1]
    assert other.files.list().data == []
    assert [one.id for one in other.vector_stores.list()] == [own]
    other.vector_stores.delete(own)


def test_one_tenant_s_chunks_are_no_hits_of_another_s(client: OpenAI, other: OpenAI, store: str) -> None:
    [text] = client.vector_stores.search(store, query=QUESTION, max_num_results=1).data[0].content
    said = [{"role": "user", "content": f"{text.text}\n\n{QUESTION}"}]
    about = [
        one.chat.completions.create(model=MODEL, messages=said, max_tokens=1).model_extra["ragcache"]
        for one in (client, other)
    ]
    assert [one["hit"] for one in about] == [1, 0]
    assert about[1]["chunks"] == []


@pytest.mark.parametrize(
    "name",
    ["../up.md", "/etc/notes.md", "a/b.md", "a\\b.md", "C:x.md", "..", ".hidden.md", "x" * 300 + ".md"],
)
def test_names_that_are_paths_are_refused(client: OpenAI, name: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.files.create(file=(name, b"text"), purpose="assistants")
    assert caught.value.param == "file"


@pytest.mark.parametrize("name", ["cat.png", "archive.zip", "program.exe", "noending"])
def test_kinds_that_nobody_can_read_are_refused_by_name(client: OpenAI, name: str) -> None:
    with pytest.raises(openai.BadRequestError, match="kind") as caught:
        client.files.create(file=(name, b"text"), purpose="assistants")
    assert caught.value.code == "unsupported_file"


def test_a_file_that_turns_out_to_be_unreadable_fails_with_the_reason(client: OpenAI) -> None:
    store = client.vector_stores.create(name="broken")
    file = client.files.create(file=("broken.pdf", b"%PDF-1.4 no more"), purpose="user_data")
    done = client.vector_stores.files.create_and_poll(file.id, vector_store_id=store.id, poll_interval_ms=20)
    assert done.status == "failed"
    assert done.last_error is not None
    assert "broken.pdf" in done.last_error.message
    assert "/" not in done.last_error.message
    assert client.vector_stores.retrieve(store.id).file_counts.failed == 1
    client.vector_stores.delete(store.id)
    client.files.delete(file.id)


def test_other_wrong_uploads_and_searches_are_refused_by_name(client: OpenAI, served: str, store: str) -> None:
    with pytest.raises(openai.BadRequestError, match="purpose"):
        client.files.create(file=("a.md", b"text"), purpose="fine-tune")
    with pytest.raises(openai.BadRequestError, match="empty"):
        client.files.create(file=("a.md", b""), purpose="assistants")
    for change in ({"filters": {"type": "eq", "key": "a", "value": 1}}, {"max_num_results": 0}, {"query": " "}):
        with pytest.raises(openai.BadRequestError):
            client.vector_stores.search(store, **{"query": "x", **change})
    tool = {"type": "file_search", "vector_store_ids": [store]}
    for change in (
        {"tools": [{"type": "web_search"}]},
        {"tools": [tool, tool]},
        {"previous_response_id": "resp_1"},
        {"store": True},
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
        {"input": []},
        {"input": " "},
    ):
        with pytest.raises(openai.BadRequestError):
            client.responses.create(**{"model": MODEL, "input": "x", **change})
    headers = {"Authorization": f"Bearer {KEYS['a']}"}
    assert httpx.post(f"{served}/files", json={"file": "x"}, headers=headers).status_code == 400
    assert httpx.post(f"{served}/files", data={"purpose": "assistants"}, headers=headers).status_code == 400


def test_an_upload_has_a_limit_of_its_own(rag: RagCache) -> None:
    app = create_app(Tenants.of_one(rag), ServerSettings(max_body_bytes=1000, max_upload_bytes=5000))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        for size, status in ((3000, 200), (6000, 413)):
            files = {"file": ("a.md", b"x" * size)}
            answer = client.post("/v1/files", files=files, data={"purpose": "assistants"})
            assert answer.status_code == status, answer.text
        client.delete(f"/v1/files/{client.get('/v1/files').json()['data'][0]['id']}")


def test_a_response_s_output_may_be_handed_back_with_the_next_question(client: OpenAI, store: str) -> None:
    tools = [{"type": "file_search", "vector_store_ids": [store]}]
    first = client.responses.create(model=MODEL, input=QUESTION, tools=tools)
    said = [{"role": "user", "content": QUESTION}, *first.output, {"role": "user", "content": "Where is it based?"}]
    second = client.responses.create(model=MODEL, input=said, tools=tools, max_output_tokens=4)
    assert second.output[-1].type == "message"


def test_what_is_refused_for_want_of_room_has_changed_nothing(
    client: OpenAI, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def submit(*_: object, **__: object) -> None:
        raise QueueFull(32, 1)

    def kept() -> tuple[object, ...]:
        found = client.vector_stores.search(store, query=QUESTION).data
        members = {one.id: list(client.vector_stores.files.list(one.id)) for one in client.vector_stores.list()}
        return list(client.vector_stores.list()), members, [one.file_id for one in found]

    file = client.files.create(file=("late.md", b"The late project is led by Nobody."), purpose="assistants")
    before = kept()
    known = [one.id for one in client.vector_stores.files.list(store)]
    with monkeypatch.context() as patch:
        patch.setattr(EngineQueue, "submit", submit)
        patch.setattr("openai_ragcache.engine_queue._BACKGROUND", 1)
        for change in (
            lambda: client.vector_stores.create(name="late", file_ids=[*known, file.id]),
            lambda: client.vector_stores.files.delete(known[0], vector_store_id=store),
            lambda: client.vector_stores.delete(store),
        ):
            with pytest.raises(openai.RateLimitError):
                change()
        patch.setattr("openai_ragcache.engine_queue._BACKGROUND", 0)
        for id in (file.id, *known):
            with pytest.raises(openai.RateLimitError):
                client.vector_stores.files.create(store, file_id=id, attributes={"late": "yes"})
    assert kept() == before
    client.files.delete(file.id)


def test_a_store_is_created_with_the_files_that_are_named(client: OpenAI) -> None:
    files = [
        client.files.create(file=(f"{name}.md", f"The {name} project is led by {name}.".encode()), purpose="assistants")
        for name in ("dune", "fell")
    ]
    store = client.vector_stores.create(name="named", file_ids=[file.id for file in files])
    assert store.file_counts.total == 2
    ends = time.monotonic() + 20
    while client.vector_stores.retrieve(store.id).status != "completed" and time.monotonic() < ends:
        time.sleep(0.02)
    assert client.vector_stores.retrieve(store.id).file_counts.completed == 2
    client.vector_stores.delete(store.id)
    for file in files:
        client.files.delete(file.id)


def test_a_store_is_kept_with_all_of_its_files_or_not_at_all(rag: RagCache, tmp_path: Path) -> None:
    """A file may be deleted between its lookup and the store's making."""
    with RagCache.open(tmp_path / "index", model=rag.reader) as own:
        uploads = Tenant(own).uploads
        kept, gone = (uploads.add_file(f"{name}.md", b"text", "assistants") for name in ("kept", "gone"))
        uploads.remove_file(gone)
        store = VectorStore.new("half", {})
        with pytest.raises(sqlite3.IntegrityError):
            uploads.add_store(store, [Member.new(store, file) for file in (kept, gone)])
        assert (uploads.stores(), uploads.members()) == ([], [])
        uploads.close()


def test_a_store_of_many_files_is_deleted_in_time_proportional_to_them(rag: RagCache, tmp_path: Path) -> None:
    with RagCache.open(tmp_path / "index", model=rag.reader) as own:
        tenant = Tenant(own)
        files = [UploadedFile(f"file-{number}", f"{number}.md", 4, "assistants", 1) for number in range(1500)]
        sql = "INSERT INTO files VALUES (?, ?, ?, ?, ?)"
        tenant.uploads._write_all([(sql, astuple(file)) for file in files])  # what is sent is synced, file by file
        stores = [VectorStore.new(name, {}) for name in ("one", "other")]
        for store in stores:
            tenant.uploads.add_store(store)
            tenant.uploads.add_members([replace(Member.new(store, file), status="completed") for file in files])
        with TestClient(create_app(Tenants({}, tenant)), base_url="http://127.0.0.1") as client:
            began = time.monotonic()
            assert client.delete(f"/v1/vector_stores/{stores[0].id}").json()["deleted"]
            assert time.monotonic() - began < 5
            assert client.get(f"/v1/vector_stores/{stores[1].id}").json()["file_counts"]["completed"] == len(files)


def refuse(*_: object) -> None:
    raise ApiError("the prompt is too long", code="context_length_exceeded")


def break_off(*_: object) -> Iterator[Piece]:
    yield Piece("The Tide")
    raise RuntimeError("a bug, whose own words nobody is told")


@pytest.mark.parametrize("searches", [True, False])
@pytest.mark.parametrize(
    ("step", "fail", "code", "said"),
    [
        ("_fit", refuse, "context_length_exceeded", "the prompt is too long"),
        ("_pieces", break_off, "server_error", "the server failed; its log says why"),
    ],
)
def test_a_response_that_is_refused_late_or_breaks_off_fails_by_a_typed_event(
    client: OpenAI,
    store: str,
    monkeypatch: pytest.MonkeyPatch,
    searches: bool,
    step: str,
    fail: Callable[..., object],
    code: str,
    said: str,
) -> None:
    monkeypatch.setattr(Generation, step, fail)
    tools = [{"type": "file_search", "vector_store_ids": [store]}] if searches else []
    with client.responses.create(model=MODEL, input=QUESTION, tools=tools, stream=True) as stream:
        events = list(stream)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    last = events[-1]
    assert isinstance(last, ResponseFailedEvent)
    assert last.type == "response.failed"
    assert (last.response.status, last.response.id) == ("failed", events[0].response.id)
    assert last.response.error is not None
    assert (last.response.error.code, last.response.error.message) == (code, said)


def test_a_conversation_s_stream_that_breaks_off_ends_with_an_error(
    client: OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Generation, "_pieces", break_off)
    said = [{"role": "user", "content": QUESTION}]
    with (
        client.chat.completions.create(model=MODEL, messages=said, stream=True) as stream,
        pytest.raises(openai.APIError, match="its log says why"),
    ):
        list(stream)


def test_more_files_than_may_wait_do_not_keep_a_server_from_starting(
    rag: RagCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openai_ragcache.engine_queue._BACKGROUND", 1)
    with RagCache.open(tmp_path / "index", model=rag.reader) as own:
        tenant = Tenant(own)
        store = VectorStore.new("left", {})
        tenant.uploads.add_store(store)
        for number in range(3):
            file = tenant.uploads.add_file(f"{number}.md", f"Page {number} says nothing.".encode(), "assistants")
            tenant.uploads.add_members([Member.new(store, file)])
        with TestClient(create_app(Tenants({}, tenant)), base_url="http://127.0.0.1") as client:
            where, ends = f"/v1/vector_stores/{store.id}", time.monotonic() + 20
            while client.get(where).json()["file_counts"]["completed"] < 3 and time.monotonic() < ends:
                time.sleep(0.02)
            assert client.get(where).json()["file_counts"]["completed"] == 3


def test_an_index_behind_a_link_finds_what_is_uploaded(rag: RagCache, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with (
        RagCache.open(tmp_path / "link" / "index", model=rag.reader) as own,
        serve(Tenants({}, Tenant(own))) as url,
        OpenAI(base_url=url, api_key="none", max_retries=0) as client,
    ):
        store = client.vector_stores.create(name="linked")
        upload(client, store.id, "tide.md", TIDE)
        found = client.vector_stores.search(store.id, query=QUESTION).data
        assert [one.filename for one in found] == ["tide.md"]


def test_what_a_stopped_server_did_not_get_to_is_ingested_by_the_next(rag: RagCache, tmp_path: Path) -> None:
    with RagCache.open(tmp_path / "index", model=rag.reader) as own:
        tenant = Tenant(own)
        file = tenant.uploads.add_file("tide.md", TIDE.encode(), "assistants")
        store = VectorStore.new("left", {})
        tenant.uploads.add_store(store, [Member.new(store, file)])
        tenant.uploads.close()
        with TestClient(create_app(Tenants({}, Tenant(own))), base_url="http://127.0.0.1") as client:
            where, ends = f"/v1/vector_stores/{store.id}", time.monotonic() + 20
            while client.get(where).json()["status"] != "completed" and time.monotonic() < ends:
                time.sleep(0.02)
            found = client.post(f"{where}/search", json={"query": QUESTION}).json()["data"]
        assert [one["filename"] for one in found] == ["tide.md"]
        assert (tmp_path / "index" / "uploads").stat().st_mode & 0o077 == 0
        assert tenant.uploads.path(file).stat().st_mode & 0o077 == 0
