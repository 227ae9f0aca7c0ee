"""Any LlamaIndex vector store, with the KV of its nodes kept beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode, MetadataMode, TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from ragcache.collection import Collection, Entry

if TYPE_CHECKING:
    from ragcache import Method, RagCache


class RagCacheVectorStore(BasePydanticVectorStore):
    """A vector store whose nodes are prefilled when they are added, and forgotten when they are deleted.

    Searching is the wrapped store's business. Nodes of one `ref_doc_id` are one document, in the order of their
    `start_char_idx`, else as they came. What is prefilled is a node's own text, without its metadata.

    Parameters
    ----------
    store : BasePydanticVectorStore
        The one to wrap, `ChromaVectorStore` for instance. What it holds already is known after `ragcache adopt`, or is
        prefilled when it is asked about.
    rag : RagCache
        Whose index keeps the KV.
    collection : str, optional
        A name for this store in the index; Chroma's collection by default, else the store's class.
    methods : sequence of str or Method, optional
        Rows whose encodings are made; the index's own method by default.
    """

    stores_text: bool
    _store: BasePydanticVectorStore = PrivateAttr()
    _kv: Collection = PrivateAttr()

    def __init__(
        self,
        store: BasePydanticVectorStore,
        rag: RagCache,
        *,
        collection: str | None = None,
        methods: Sequence[str | Method] | None = None,
    ) -> None:
        super().__init__(stores_text=store.stores_text, is_embedding_query=store.is_embedding_query)
        self._store = store
        self._kv = rag.collection(collection or _name(store), methods=methods)

    @classmethod
    def class_name(cls) -> str:
        """Name in serialised form."""
        return "RagCacheVectorStore"

    @property
    def client(self) -> Any:
        """The wrapped store's client."""
        return self._store.client

    @property
    def store(self) -> BasePydanticVectorStore:
        """The wrapped store."""
        return self._store

    @property
    def kv(self) -> Collection:
        """The wrapped store's chunks in the index."""
        return self._kv

    # -- what is added is prefilled, behind the wrapped store's own work

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes, and make their KV."""
        names = self._store.add(list(nodes), **kwargs)
        self._kv.add(_entries(nodes))
        return names

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes, and make their KV, in another thread."""
        names = await self._store.async_add(list(nodes), **kwargs)
        await asyncio.to_thread(self._kv.add, _entries(nodes))
        return names

    # -- what is deleted is forgotten, before the wrapped store forgets it

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete a document's nodes."""
        self._kv.discard_document(ref_doc_id)
        self._store.delete(ref_doc_id, **delete_kwargs)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete a document's nodes."""
        await asyncio.to_thread(self._kv.discard_document, ref_doc_id)
        await self._store.adelete(ref_doc_id, **delete_kwargs)

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete nodes by id, by what their metadata says, or by both."""
        if filters is not None:  # found first, so that both delete the same ones
            node_ids = [node.node_id for node in self._store.get_nodes(node_ids, filters)]
        if node_ids:
            self._kv.discard(node_ids)
            self._store.delete_nodes(node_ids, **delete_kwargs)

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete nodes, as `delete_nodes`."""
        if filters is not None:
            node_ids = [node.node_id for node in await self._store.aget_nodes(node_ids, filters)]
        if node_ids:
            await asyncio.to_thread(self._kv.discard, node_ids)
            await self._store.adelete_nodes(node_ids, **delete_kwargs)

    def clear(self) -> None:
        """Delete all nodes."""
        self._kv.clear()
        self._store.clear()

    async def aclear(self) -> None:
        """Delete all nodes."""
        await asyncio.to_thread(self._kv.clear)
        await self._store.aclear()

    # -- the wrapped store's own

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Search the wrapped store."""
        return self._store.query(query, **kwargs)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Search the wrapped store."""
        return await self._store.aquery(query, **kwargs)

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """Nodes of the wrapped store."""
        return self._store.get_nodes(node_ids, filters)

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Nodes of the wrapped store."""
        return await self._store.aget_nodes(node_ids, filters)

    def persist(self, persist_path: str, fs: Any = None) -> None:
        """Let the wrapped store write itself down; KV is on disk at once."""
        self._store.persist(persist_path, fs)


def _name(store: BasePydanticVectorStore) -> str:
    """What a store calls its collection: a field of its own, or its client's name."""
    named = getattr(store, "collection_name", None) or getattr(getattr(store, "_collection", None), "name", None)
    return str(named or type(store).__name__)


def _entries(nodes: Sequence[BaseNode]) -> list[Entry]:
    return [_entry(node) for node in nodes]


def _entry(node: BaseNode) -> Entry:
    start = node.start_char_idx if isinstance(node, TextNode) else None
    about = {**node.metadata, "ref_doc_id": node.ref_doc_id, "start_char_idx": start}
    return Entry.of(node.node_id, node.get_content(MetadataMode.NONE), about)
