"""Frameworks' models, too, say that the built-in test model answers, and refuse what it cannot read."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_ragcache import ChatRagCache
from llama_index_ragcache import RagCacheLLM

from ragcache import RagCache
from ragcache.model import notice

GREEK = "Ποιος διευθύνει το έργο;"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("test-model")
    (folder / "tide.txt").write_text("The Tide project is led by Mara Voss.")
    with RagCache.open(folder / "index") as rag:
        rag.ingest(folder / "tide.txt")
    return folder / "index"


@pytest.fixture
def rag(index: Path) -> Iterator[RagCache]:
    with RagCache.open(index) as rag:
        yield rag


def test_a_langchain_model_that_opens_the_index_warns_once(index: Path, caplog: pytest.LogCaptureFixture) -> None:
    notice.warn_once.cache_clear()
    caplog.set_level(logging.WARNING, logger="ragcache.model.notice")
    model = ChatRagCache(index=str(index))
    answers = [model.invoke("Who leads the Tide project?"), model.invoke("Where is it?")]
    assert [record.getMessage() for record in caplog.records if record.name.startswith("ragcache")] == [
        notice.TEST_MODEL
    ]
    assert all(notice.TEST_MODEL in answer.response_metadata["ragcache"]["notes"] for answer in answers)
    model.rag.close()


def test_langchain_gets_a_sentence_for_what_cannot_be_read(rag: RagCache) -> None:
    model = ChatRagCache(rag)
    assert model.invoke(GREEK).content == notice.UNREADABLE
    assert "".join(str(piece.content) for piece in model.stream(GREEK)) == notice.UNREADABLE


def test_llama_index_gets_a_sentence_for_what_cannot_be_read(rag: RagCache) -> None:
    model = RagCacheLLM(rag)
    assert model.complete(GREEK).text == notice.UNREADABLE
    assert [*model.stream_complete(GREEK)][-1].text == notice.UNREADABLE
