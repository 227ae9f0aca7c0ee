"""A small index, and a server over it: a real one on a loopback port."""

from collections.abc import Iterator

import pytest
from openai_ragcache import Tenants
from serve.served import MODEL, serve

from ragcache import Chunk, RagCache
from ragcache.bundled import corpus_path

PAGES = ("projects/amber-raven.md", "projects/cold-raven.md", "projects/delquil.md")


@pytest.fixture(scope="session")
def rag(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RagCache]:
    """An index of three pages of the demo corpus."""
    with RagCache.open(tmp_path_factory.mktemp("served") / "index", model=MODEL) as rag:
        rag.ingest([corpus_path() / page for page in PAGES])
        yield rag


@pytest.fixture(scope="session")
def chunks(rag: RagCache) -> list[Chunk]:
    """The index's chunks."""
    return rag.retrieve("Who leads the project?", top_k=100)


@pytest.fixture(scope="module")
def url(rag: RagCache) -> Iterator[str]:
    """A server over the index."""
    with serve(Tenants.of_one(rag)) as url:
        yield url
