"""What a front end embeds is prefilled too, each chunk behind what stands before it in its document."""

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from openai import OpenAI
from openai_ragcache import Tenants
from openai_ragcache.embedded import NAME, overlap
from openai_ragcache.tenants import Tenant
from serve.served import MODEL, serve

from ragcache import RagCache
from ragcache.bundled import corpus_path

pytestmark = pytest.mark.slow

PAGES = [path.read_text().strip() for path in sorted((corpus_path() / "projects").glob("*.md"))[:3]]
ROOM = 64 << 20


def split(page: str, size: int = 320, common: int = 60) -> list[str]:
    """Chunks as splitters make them: neighbours have some words in common."""
    return [page[max(0, start - common) : start + size].strip() for start in range(0, len(page) - size // 2, size)]


CHUNKS = [split(page) for page in PAGES]


@pytest.fixture
def empty(rag: RagCache, tmp_path: Path) -> Iterator[RagCache]:
    with RagCache.open(tmp_path / "own", model=rag.reader) as own:
        yield own


class FrontEnd:
    """A front end that embeds chunks and asks over them, each when the server is idle again."""

    def __init__(self, client: OpenAI, rag: RagCache, metrics: str) -> None:
        self._client, self._embedder, self._metrics = client, rag.embedder.name, metrics

    def embed(self, texts: str | Sequence[str]) -> None:
        self._client.embeddings.create(model=self._embedder, input=texts)
        self.wait()

    def wait(self) -> None:
        headers = {"Authorization": f"Bearer {self._client.api_key}"}
        while "\nragcache_idle_work 0.0" not in httpx.get(self._metrics, headers=headers).text:
            time.sleep(0.02)

    def ask(self, texts: Sequence[str]) -> dict:
        chunks = [{"role": "user", "content": "Notes:\n\n" + "\n\n".join(texts) + "\n\nWho leads it?"}]
        answer = self._client.chat.completions.create(model=MODEL, messages=chunks, max_tokens=1)
        return answer.model_extra["ragcache"]


@contextmanager
def front_end(rag: RagCache, nbytes: int = ROOM) -> Iterator[FrontEnd]:
    with (
        serve(Tenants.of_one(rag), ingest_embedded_bytes=nbytes) as url,
        OpenAI(base_url=url, api_key="none", max_retries=0) as client,
    ):
        yield FrontEnd(client, rag, url.removesuffix("/v1") + "/metrics")


def documents(rag: RagCache) -> list[list[str]]:
    """The texts of each document, in its order."""
    known = [one for one in rag.documents() if one.collection == NAME]
    return sorted([row.text for row in rag.index.catalog.chunks_of(one.id)] for one in known)


@pytest.mark.parametrize("alone", [False, True])
def test_embedded_chunks_hit_at_once_in_any_order_and_stand_in_their_documents(empty: RagCache, alone: bool) -> None:
    texts = [chunk for chunks in CHUNKS for chunk in chunks]
    with front_end(empty) as client:
        for batch in texts if alone else [texts]:
            client.embed(batch)
        about = client.ask(random.Random(0).sample(texts, 6))
    assert documents(empty) == sorted(CHUNKS)
    assert (about["hit"] + about["exact"], about["miss"]) == (6, 0)
    catalog = empty.index.catalog
    [recipe] = catalog.recipes()
    for known in empty.documents():
        rows = catalog.chunks_of(known.id)
        before = [len(kv.left) for row in rows for kv in catalog.encodings(row.id, recipe)]
        assert before == list(range(1, len(rows) + 1)), "behind the system prefix and all chunks before it"


def test_chunks_without_common_words_stand_alone(empty: RagCache) -> None:
    texts = [chunk for page in PAGES for chunk in split(page, common=0)]
    with front_end(empty) as client:
        client.embed(texts)
        client.embed(texts)
        about = client.ask(texts[2:5])
    assert documents(empty) == sorted([text] for text in texts)
    assert about["hit"] + about["exact"] == 3


def test_questions_are_not_prefilled_and_neither_is_anything_unless_the_server_is_told_to(empty: RagCache) -> None:
    with front_end(empty) as client:
        for question in ("Who leads the Amber Raven project?", f"query: {CHUNKS[0][0]}", ["Who?", "Where?"]):
            client.embed(question)
    with front_end(empty, nbytes=0) as client:
        client.embed(CHUNKS[0])
    assert empty.documents() == []


def test_what_embedding_models_want_in_front_of_a_text_is_not_in_its_kv(empty: RagCache) -> None:
    with front_end(empty) as client:
        client.embed([f"search_document: {text}" for text in CHUNKS[0]])
        assert client.ask(CHUNKS[0])["miss"] == 0
    assert documents(empty) == [CHUNKS[0]]


def test_a_text_that_the_index_has_is_not_taken_in_again(rag: RagCache, empty: RagCache) -> None:
    empty.ingest(corpus_path() / "projects" / "amber-raven.md")
    known = [chunk.text for chunk in empty.retrieve("Raven", top_k=100) if len(chunk.text) >= 200]
    assert known
    with front_end(empty) as client:
        client.embed(known)
    assert documents(empty) == []


def test_the_documents_that_were_added_first_make_room(empty: RagCache) -> None:
    with front_end(empty) as client:
        client.embed(CHUNKS[0])
        [first] = empty.documents()
    with front_end(empty, nbytes=first.bytes + 1) as client:
        client.embed(CHUNKS[1])
        assert documents(empty) in ([CHUNKS[1]], [])
        client.embed(CHUNKS[2][:1])
        assert documents(empty)[-1] == CHUNKS[2][:1]
        assert sum(one.bytes for one in empty.documents()) <= first.bytes + 1
        client.embed(CHUNKS[0][:1])
        assert CHUNKS[0][:1] in documents(empty), "what had to go can come back"


def test_what_a_tenant_embeds_is_its_own(rag: RagCache, tmp_path: Path) -> None:
    one, two = (RagCache.open(tmp_path / name, model=rag.reader) for name in ("one", "two"))
    keys = {"a" * 16: Tenant(one), "b" * 16: Tenant(two)}
    with serve(Tenants(keys), ingest_embedded_bytes=ROOM) as url:
        mine, theirs = (OpenAI(base_url=url, api_key=key, max_retries=0) for key in keys)
        with mine, theirs:
            metrics = url.removesuffix("/v1") + "/metrics"
            FrontEnd(mine, one, metrics).embed(CHUNKS[0])
            assert FrontEnd(theirs, two, metrics).ask(CHUNKS[0])["chunks"] == []
            assert FrontEnd(mine, one, metrics).ask(CHUNKS[0])["miss"] == 0
    one.close()
    two.close()


def test_whoever_asks_does_not_wait_for_what_was_embedded(empty: RagCache) -> None:
    texts = [chunk for chunks in CHUNKS for chunk in chunks]
    with front_end(empty) as client:
        client._client.embeddings.create(model=empty.embedder.name, input=texts)
        for _ in range(3):
            assert client.ask(["Something else."])["chunks"] == []
        client.wait()
        assert client.ask(texts[:3])["miss"] == 0
    assert documents(empty) == sorted(CHUNKS)


def test_words_in_common_are_counted_where_they_are_enough() -> None:
    before = "The mill stands at the river. The mill stands at the lake."
    assert overlap(before, "The mill stands at the lake. It is old.") == len("The mill stands at the lake.")
    assert overlap(before, before + " And so on.") == len(before)
    assert overlap(before, "at the lake. It is old, and nobody knows how old.") == 0, "too few"
    assert overlap(before, "The mill stands at the road.") == 0
    assert overlap("", before) == overlap(before, "") == 0
