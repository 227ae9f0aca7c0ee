"""Lists of files and stores, as the official client asks for them; uploads that break off; what a file was given."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from openai import OpenAI
from openai_ragcache import Tenants
from openai_ragcache.tenants import Tenant
from openai_ragcache.uploads import Member, UploadedFile, VectorStore
from serve.served import MODEL, serve

from ragcache import RagCache

TIDE = b"# Tide\n\nThe Tide project is led by Mara Voss. It is based in Kelmar.\n"


@pytest.fixture(scope="module")
def tenant(rag: RagCache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenant]:
    with RagCache.open(tmp_path_factory.mktemp("lists") / "index", model=rag.reader) as own:
        yield Tenant(own)


@pytest.fixture(scope="module")
def client(tenant: Tenant) -> Iterator[OpenAI]:
    with serve(Tenants.of_one(tenant.rag)) as url, OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def files(client: OpenAI) -> list[str]:
    """Five files, oldest first."""
    return [client.files.create(file=(f"{i}.md", TIDE + b"." * i), purpose="assistants").id for i in range(5)]


@pytest.fixture(scope="module")
def store(client: OpenAI, files: list[str]) -> str:
    """A store of one that was read, with attributes, and one that could not be."""
    store = client.vector_stores.create(name="some")
    attributes = {"team": "tide", "year": 2024, "share": 0.5, "open": True}
    client.vector_stores.files.create_and_poll(files[0], vector_store_id=store.id, attributes=attributes)
    broken = client.files.create(file=("broken.pdf", b"no PDF"), purpose="user_data")
    client.vector_stores.files.create_and_poll(broken.id, vector_store_id=store.id)
    return store.id


def test_a_list_is_cut_behind_an_id_or_in_front_of_one(client: OpenAI, files: list[str]) -> None:
    def page(**wanted: Any) -> tuple[list[str], bool]:
        found = client.get("/files", cast_to=httpx.Response, options={"params": {"order": "asc", **wanted}}).json()
        return [files.index(one["id"]) for one in found["data"]], found["has_more"]

    assert page(limit=2) == ([0, 1], True)
    assert page(limit=2, after=files[1]) == ([2, 3], True)
    assert page(limit=2, after=files[3]) == ([4], False)
    assert page(limit=2, before=files[3]) == ([1, 2], True), "the page that ends there"
    assert page(limit=4, before=files[3]) == ([0, 1, 2], False)
    assert page(after=files[0], before=files[3]) == ([1, 2], False)
    assert [one.id for one in client.files.list(limit=2)] == files[::-1]


@pytest.mark.parametrize("path", ["/files", "/vector_stores", "/vector_stores/{store}/files"])
@pytest.mark.parametrize("named", ["after", "before", "colour"])
def test_an_id_that_is_not_in_a_list_and_a_name_that_means_nothing_are_refused(
    client: OpenAI, store: str, path: str, named: str
) -> None:
    with pytest.raises(openai.BadRequestError, match="file-gone" if named != "colour" else "colour") as caught:
        client.get(path.format(store=store), cast_to=httpx.Response, options={"params": {named: "file-gone"}})
    assert caught.value.param == named


def test_what_an_upload_says_in_vain_is_refused(client: OpenAI) -> None:
    expires = {"anchor": "created_at", "seconds": 3600}
    with pytest.raises(openai.BadRequestError, match="expires_after"):
        client.files.create(file=("a.md", b"text"), purpose="assistants", expires_after=expires)
    assert all(one.filename != "a.md" for one in client.files.list())


def test_files_are_listed_by_how_far_they_are(client: OpenAI, files: list[str], store: str) -> None:
    def some(state: Any) -> list[str]:
        return [one.status for one in client.vector_stores.files.list(store, filter=state)]

    assert [some(state) for state in ("completed", "failed", "in_progress", "cancelled")] == [
        *(["completed"], ["failed"], [], [])
    ]
    with pytest.raises(openai.BadRequestError, match="filter"):
        some("done")
    assert len(list(client.files.list(purpose="assistants"))) == len(files)
    found = client.vector_stores.retrieve(store)
    assert (found.file_counts.completed, found.file_counts.failed, found.file_counts.total) == (1, 1, 2)
    assert found.usage_bytes == len(TIDE) + len(b"no PDF")
    assert [one.id for one in client.vector_stores.list()] == [store]


def test_what_is_found_has_the_attributes_of_its_file(client: OpenAI, store: str) -> None:
    attributes = {"team": "tide", "year": 2024, "share": 0.5, "open": True}
    (found,) = client.vector_stores.search(store, query="Who leads the Tide project?").data
    assert found.attributes == {"heading": "Tide", **attributes}
    sent = client.vector_stores.with_raw_response.search(store, query="Who leads it?").http_response.json()
    assert '"year": 2024,' in json.dumps(sent), "a whole number stays one, which the client's types do not tell"
    tools: Any = [{"type": "file_search", "vector_store_ids": [store]}]
    include: Any = ["file_search_call.results"]
    response = client.responses.create(model=MODEL, input="Who leads it?", tools=tools, include=include).model_dump()
    assert response["output"][0]["results"][0]["attributes"] == found.attributes


def test_an_upload_that_breaks_off_leaves_nothing(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    known, folders = tenant.uploads.files(), sorted(tenant.rag.index.path.rglob("*"))
    no_bytes: Any = "text, which a binary file takes none of"
    with pytest.raises(TypeError):
        tenant.uploads.add_file("half.md", no_bytes, "assistants")
    monkeypatch.setattr(tenant.uploads, "_write", _fail)
    with pytest.raises(OSError, match="disk"):
        tenant.uploads.add_file("whole.md", b"text", "assistants")
    assert tenant.uploads.files() == known
    assert sorted(tenant.rag.index.path.rglob("*")) == folders


def _fail(*_: object) -> None:
    raise OSError("the disk is full")


def test_a_list_of_stores_asks_as_often_for_many_as_for_few(
    rag: RagCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spy(sql: str, *values: object) -> list[tuple[Any, ...]]:
        asked.append(sql)
        return read(sql, *values)

    asked: list[str] = []
    with RagCache.open(tmp_path / "index", model=rag.reader) as own:
        tenant = Tenant(own)
        stores = [VectorStore.new(f"{number}", {}) for number in range(30)]
        rows = [UploadedFile(f"file-{number}", f"{number}.md", 4, "assistants", 1) for number in range(30)]
        for row in rows:
            tenant.uploads._write("INSERT INTO files VALUES (?, ?, ?, ?, ?)", *vars(row).values())
        for store, row in zip(stores, rows, strict=True):
            tenant.uploads.add_store(store, [Member.new(store, row)])
            tenant.uploads.note(Member.new(store, row))
        read = tenant.uploads._rows
        monkeypatch.setattr(tenant.uploads, "_rows", spy)
        with serve(Tenants({}, tenant)) as url:
            asked.clear()
            found = httpx.get(f"{url}/vector_stores", params={"limit": 20}).json()
        assert len(asked) == 2
        counts = [store["file_counts"] for store in found["data"]]
        assert len(counts) == 20
        assert all(key == counts[0] for key in itertools.islice(counts, 1, None))
        assert counts[0]["completed"] == 1
