"""What the page's views show: documents with their chunks and KV, uploads, and what answers were made from."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from openai_ragcache import Tenants
from openai_ragcache.history import History
from openai_ragcache.tenants import Tenant
from serve.served import MODEL, ask, serve

from ragcache import Chunk, RagCache
from ragcache.report import CacheReport, ChunkReport, Timings, Tokens


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=60) as client:
        yield client


def test_documents_have_chunks_and_every_chunk_says_what_kv_it_has(client: httpx.Client, rag: RagCache) -> None:
    found = client.get("/ragcache/documents", params={"order": "asc"}).json()
    assert [one["source"] for one in found["data"]] == ["amber-raven.md", "cold-raven.md", "delquil.md"]
    stats = rag.index.catalog.stats()
    assert found["totals"] == {name: stats[name] for name in ("documents", "chunks", "bytes")}
    assert sum(one["bytes"] for one in found["data"]) >= stats["bytes"] > 0
    assert found["pending"] == []
    first = client.get(f"/ragcache/documents/{found['data'][0]['id']}").json()
    assert len(first["chunks"]) == found["data"][0]["chunks"]
    own = {chunk.id: chunk for chunk in rag.retrieve("Who leads it?", top_k=100)}
    for chunk in first["chunks"]:
        assert chunk["text"] == own[chunk["id"]].text
        assert chunk["tokens"] == len(own[chunk["id"]].segment)
        assert chunk["heading"] == "Amber Raven"
        assert [kv["encoding"] for kv in chunk["kv"]] == ["in-document(window=2048)"]
        assert all(kv["bytes"] > 0 and kv["made_behind"] for kv in chunk["kv"])
    assert str(rag.index.path) not in str(first)


def test_a_page_of_documents_goes_on_behind_the_last(client: httpx.Client) -> None:
    first = client.get("/ragcache/documents", params={"order": "asc", "limit": 2}).json()
    assert first["has_more"]
    rest = client.get("/ragcache/documents", params={"order": "asc", "after": first["last_id"]}).json()
    assert [one["source"] for one in rest["data"]] == ["delquil.md"]
    assert not rest["has_more"]


def test_a_document_of_nobody_is_a_404(client: httpx.Client) -> None:
    assert client.get("/ragcache/documents/none").json()["error"]["code"] == "document_not_found"


def test_history_counts_tokens_of_chunks_by_what_became_of_them(client: httpx.Client, chunks: list[Chunk]) -> None:
    before = client.get("/ragcache/history").json()["minutes"]
    body = {"model": MODEL, "messages": ask(chunks[:3]), "max_tokens": 1}
    about = client.post("/chat/completions", json=body).json()["ragcache"]
    found = client.get("/ragcache/history").json()
    states = ("hit", "exact", "recomputed", "miss")
    counted = {
        state: sum(one[state] for one in found["minutes"]) - sum(one[state] for one in before) for state in states
    }
    assert sum(counted.values()) == about["tokens"]["context"]
    assert counted["recomputed"] == about["tokens"]["recomputed"]
    assert found["minutes"][-1]["first_token_ms"] > 0
    assert found["memory_bytes"] > 0
    assert found["disk_bytes"] > 0
    assert found["free_bytes"] > 0
    assert found["learnt"] == {"texts": 0, "bytes": 0, "limit": 0}


def test_history_is_of_a_day_at_the_most() -> None:
    clock = iter([0, 30, 60, 24 * 3600 + 59, 24 * 3600 + 60])
    history = History(lambda: next(clock))
    chunks = (ChunkReport("a", "s", 10, "hit", "", recomputed=2), ChunkReport("b", "s", 5, "miss", ""))
    report = CacheReport("auto", 0.1, chunks, Tokens(15, 3, 8, 2, 7), 0.2, 0.4, Timings(first_token=8.0))
    for _ in range(3):
        history.add(report)
    assert history.as_list()[0] == {
        "minute": 0, "answers": 2, "hit": 16, "exact": 0, "recomputed": 4, "miss": 10, "first_token_ms": 8.0,
    }  # fmt: skip
    history.add(report)
    assert [one["minute"] for one in history.as_list()] == [1, 24 * 60]
    history.add(report)
    assert [one["minute"] for one in history.as_list()] == [24 * 60, 24 * 60 + 1]


def test_uploads_say_how_far_they_are_and_documents_that_were_uploaded_can_be_removed(
    rag: RagCache, tmp_path: Path
) -> None:
    with (
        RagCache.open(tmp_path / "own", model=rag.reader) as own,
        serve(tenants := Tenants.of_one(own)) as url,
        httpx.Client(base_url=url, timeout=60) as client,
    ):
        store = client.post("/vector_stores", json={"name": "page"}).json()["id"]
        stages = tenants.all[0].uploads.stages = Written()
        names = {"bad.pdf": b"no pdf", "<b>tide</b>.md": b"The Tide project is led by Mara Voss." * 40}
        for name, data in names.items():
            files = {"file": (name.replace("/", ""), data)}
            id = client.post("/files", files=files, data={"purpose": "assistants"}).json()["id"]
            client.post(f"/vector_stores/{store}/files", json={"file_id": id})
        ends = time.monotonic() + 60
        while True:
            found = client.get("/ragcache/documents").json()
            if not any(one["status"] == "in_progress" for one in found["pending"]):
                break
            assert time.monotonic() < ends
        [failed] = found["pending"]
        assert (failed["source"], failed["status"]) == ("bad.pdf", "failed")
        assert failed["error"]
        [done] = found["data"]
        assert done["source"] == "<b>tide<b>.md"
        assert client.delete(f"/files/{done['file_id']}").json()["deleted"]
        assert client.delete(f"/files/{failed['file_id']}").json()["deleted"]
        found = client.get("/ragcache/documents").json()
        assert (found["data"], found["pending"]) == ([], [])
    assert len({stage for stage, *_ in stages.written}) > 1
    assert not stages, "nothing is on its way any more"


class Written(dict[str, tuple[str, int, int]]):
    """A dictionary that remembers all that was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = list[tuple[str, int, int]]()

    def __setitem__(self, name: str, stage: tuple[str, int, int]) -> None:
        self.written.append(stage)
        super().__setitem__(name, stage)


def test_no_tenant_sees_another_s(rag: RagCache, tmp_path: Path, chunks: list[Chunk]) -> None:
    other = RagCache.open(tmp_path / "other", model=rag.reader)
    with other, serve(Tenants({"a" * 16: Tenant(rag), "b" * 16: Tenant(other)})) as url:
        mine, theirs = ({"Authorization": f"Bearer {key * 16}"} for key in "ab")
        document = httpx.get(f"{url}/ragcache/documents", headers=mine).json()["data"][0]["id"]
        httpx.post(
            f"{url}/chat/completions", headers=mine, json={"model": MODEL, "messages": ask(chunks), "max_tokens": 1}
        )
        found = httpx.get(f"{url}/ragcache/documents/{document}", headers=theirs)
        unknown = httpx.get(f"{url}/ragcache/documents/none", headers=theirs)
        assert found.status_code == unknown.status_code == 404
        assert httpx.get(f"{url}/ragcache/history", headers=theirs).json()["minutes"] == []
        assert httpx.get(f"{url}/ragcache/agreement", headers=theirs).json()["verified"] == 0
        assert httpx.get(f"{url}/ragcache/documents").status_code == 401
