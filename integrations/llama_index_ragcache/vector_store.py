"""Any LlamaIndex vector store, with the KV of its nodes kept beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode, MetadataMode, TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from ragcache.chunks import loose_id
from ragcache.collection import Collection, Entry
from ragcache.errors import InvalidArgument

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
        A name for this store in the index; Chroma's collection by default.
    methods : sequence of str or Method, optional
        Rows whose encodings are made; the index's own method by default.

    Raises
    ------
    InvalidArgument
        If the store has no name, and none is given.
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
        nodes = list(nodes)
        self._replace(nodes)
        names = self._store.add(nodes, **kwargs)
        self._kv.add(_entries(nodes))
        return names

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes, and make their KV, in another thread."""
        nodes = list(nodes)
        await asyncio.to_thread(self._replace, nodes)
        names: list[str] = await self._asked("async_add", "add", nodes, **kwargs)
        await asyncio.to_thread(self._kv.add, _entries(nodes))
        return names

    def _replace(self, nodes: Sequence[BaseNode]) -> None:
        """Delete what these ids stand for, where it is something else: some stores leave a known id as it is."""
        if changed := self._kv.changed(_entries(nodes)):
            self._kv.discard(changed)
            with suppress(NotImplementedError):
                self._store.delete_nodes(changed)

    # -- what is deleted is forgotten, before the wrapped store forgets it

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete a document's nodes."""
        self._forget(ref_doc_id)
        self._store.delete(ref_doc_id, **delete_kwargs)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete a document's nodes."""
        await asyncio.to_thread(self._forget, ref_doc_id)
        await self._asked("adelete", "delete", ref_doc_id, **delete_kwargs)

    def _forget(self, ref_doc_id: str) -> None:
        if ref_doc_id == "None":  # as some stores write down that a node has no document
            self._kv.clear()
        self._kv.discard_document(ref_doc_id)

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete nodes by id, by what their metadata says, or by both."""
        try:  # found first, so that both delete the same ones
            chosen = node_ids if filters is None else [one.node_id for one in self.get_nodes(node_ids, filters)]
        except NotImplementedError:  # a store that deletes by filters but cannot say what
            self._kv.clear()
            self._store.delete_nodes(node_ids, filters, **delete_kwargs)
            return
        if chosen:
            self._kv.discard(chosen)
            self._store.delete_nodes(chosen, **delete_kwargs)

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete nodes, as `delete_nodes`."""
        try:
            chosen = node_ids if filters is None else [one.node_id for one in await self.aget_nodes(node_ids, filters)]
        except NotImplementedError:
            await asyncio.to_thread(self._kv.clear)
            await self._asked("adelete_nodes", "delete_nodes", node_ids, filters, **delete_kwargs)
            return
        if chosen:
            await asyncio.to_thread(self._kv.discard, chosen)
            await self._asked("adelete_nodes", "delete_nodes", chosen, **delete_kwargs)

    def clear(self) -> None:
        """Delete all nodes."""
        self._kv.clear()
        self._store.clear()

    async def aclear(self) -> None:
        """Delete all nodes."""
        await asyncio.to_thread(self._kv.clear)
        await self._asked("aclear", "clear")

    def sync(self) -> None:
        """Forget what the wrapped store no longer has, whoever deleted it; everything where it cannot say."""
        self._kv.sync(lambda names: [node.node_id for node in self._store.get_nodes(names)])

    async def _asked(self, name: str, plain: str, *args: Any, **kwargs: Any) -> Any:
        """The wrapped store's own async method; its plain one, in another thread, where it has none that is async."""
        if getattr(type(self._store), name) is getattr(BasePydanticVectorStore, name):
            return await asyncio.to_thread(getattr(self._store, plain), *args, **kwargs)
        return await getattr(self._store, name)(*args, **kwargs)

    # -- the wrapped store's own

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Search the wrapped store."""
        return self._store.query(query, **kwargs)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Search the wrapped store."""
        found: VectorStoreQueryResult = await self._asked("aquery", "query", query, **kwargs)
        return found

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """Nodes of the wrapped store."""
        return self._store.get_nodes(node_ids, filters)

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Nodes of the wrapped store."""
        nodes: list[BaseNode] = await self._asked("aget_nodes", "get_nodes", node_ids, filters)
        return nodes

    def persist(self, persist_path: str, fs: Any = None) -> None:
        """Let the wrapped store write itself down; KV is on disk at once."""
        self._store.persist(persist_path, fs)


def _name(store: BasePydanticVectorStore) -> str:
    """What a store calls its collection: a field of its own, or its client's name."""
    named = getattr(store, "collection_name", None) or getattr(getattr(store, "_collection", None), "name", None)
    if not named:
        raise InvalidArgument(
            f"{type(store).__name__} has no name that its nodes could be kept under; give one with collection="
        )
    return str(named)


def _entries(nodes: Sequence[BaseNode]) -> list[Entry]:
    return [_entry(node) for node in nodes]


def _entry(node: BaseNode) -> Entry:
    start = node.start_char_idx if isinstance(node, TextNode) else None
    entry = Entry.of(node.node_id, node.get_content(MetadataMode.NONE), {**node.metadata, "start_char_idx": start})
    # `delete` goes by `ref_doc_id`, whatever the metadata says.
    return replace(entry, document=node.ref_doc_id or loose_id(entry.words))
