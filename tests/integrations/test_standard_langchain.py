"""LangChain's own conformance suites.

Skipped are the tests of what the model does not do: tools and structured output (the bundled reader answers questions
from notes, and nothing constrains its decoding), images, sound and PDF, another vendor's message format, and recorded
HTTP traffic, of which there is none.
"""

import atexit
import importlib
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_tests")
from integrations.notes import stored
from langchain_chroma import Chroma
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_ragcache import ChatRagCache, RagCacheVectorStore
from langchain_tests.integration_tests import ChatModelIntegrationTests, VectorStoreIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from ragcache import RagCache


@pytest.fixture(scope="module")
def rag(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RagCache]:
    with RagCache.open(tmp_path_factory.mktemp("conformance") / "index") as rag:
        yield rag


class _Emptied(VectorStoreIntegrationTests):
    """Every path of a store leaves KV for exactly what the store holds."""

    def _checked(self, store: RagCacheVectorStore, rag: RagCache) -> Iterator[VectorStore]:
        yield store
        names = store.kv.names()
        assert not names or {document.id for document in store.get_by_ids(names)} == set(names)
        assert len(stored(rag)) <= len(names)
        store.kv.clear()
        assert stored(rag) == set()


class TestChroma(_Emptied):
    @pytest.fixture
    def vectorstore(self, rag: RagCache) -> Iterator[VectorStore]:
        store = RagCacheVectorStore(Chroma("standard", embedding_function=self.get_embeddings()), rag)
        yield from self._checked(store, rag)
        store.delete_collection()


class TestInMemory(_Emptied):
    @pytest.fixture
    def vectorstore(self, rag: RagCache) -> Iterator[VectorStore]:
        memory = InMemoryVectorStore(self.get_embeddings())
        yield from self._checked(RagCacheVectorStore(memory, rag, collection="memory"), rag)


class TestChatUnit(ChatModelUnitTests):
    @pytest.fixture(autouse=True)
    def _loadable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """LangChain's loader knows a list of partners by heart; to others' classes its caller has to say yes."""
        loader = importlib.import_module("langchain_core.load.load")
        path = ("langchain_ragcache", "chat_models", "ChatRagCache")
        monkeypatch.setitem(loader.ALL_SERIALIZABLE_MAPPINGS, path, path)
        monkeypatch.setattr(loader, "_default_class_paths_cache", {})

    @property
    def chat_model_class(self) -> type[ChatRagCache]:
        return ChatRagCache

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"index": "./index"}

    @property
    def has_tool_calling(self) -> bool:  # its bind_tools is there to say so
        return False


@cache
def _empty_index() -> str:
    place = Path(tempfile.mkdtemp(prefix="ragcache-conformance-"))
    atexit.register(shutil.rmtree, place)
    RagCache.open(place / "index").close()
    return str(place / "index")


class TestChatIntegration(ChatModelIntegrationTests):
    @property
    def chat_model_class(self) -> type[ChatRagCache]:
        return ChatRagCache

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"index": _empty_index(), "max_tokens": 16}

    @property
    def has_tool_calling(self) -> bool:
        return False
