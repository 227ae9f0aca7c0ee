"""Any LlamaIndex vector store, with the KV of its nodes kept beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from llama_index_ragcache.listing import entry_of, ids_in, listed
from ragcache import RagCache
from ragcache.checks import check_kind
from ragcache.errors import InvalidArgument
from ragcache.index.chroma_import import chroma_folder, claim_collection
from ragcache.index.collection import Collection, Entry, Synced, batches, uniform_name, valid_unicode

if TYPE_CHECKING:
    from ragcache import Method
    from ragcache.report import IngestReport

#: Most nodes that are kept because a query came upon them.
FILL = 1000
_NO_DOCUMENT = "None"  # as some stores write down that a node has no document


class RagCacheVectorStore(BasePydanticVectorStore):
    """A vector store whose nodes are prefilled when they are added, and forgotten when they are deleted.

    Searching is the wrapped store's business. Nodes of one `ref_doc_id` are one document, in the order of their
    `start_char_idx`, else as they came. What is prefilled is a node's own text, without its metadata.

    Parameters
    ----------
    store : BasePydanticVectorStore
        The one to wrap, `ChromaVectorStore` for instance. What it holds already is prefilled by `adopt`; or node by
        node, when one that a query found is answered from.
    rag : RagCache
        Whose index keeps the KV.
    collection : str, optional
        A name for this store in the index; Chroma's collection by default.
    methods : sequence of str or Method, optional
        Rows whose encodings are made; the index's own method by default.
    fill : int
        How many nodes are kept at most that were never added here, but found by a query: the oldest go first. At 0
        such a node is computed for each answer anew.

    Raises
    ------
    InvalidArgument
        If the store has no name, and none is given; or it is Chroma's, and the index has another folder's of that name;
        or something else stands in the store's or the index's place.
    """

    stores_text: bool
    _store: BasePydanticVectorStore = PrivateAttr()
    _kv: Collection = PrivateAttr()
    _fill: int = PrivateAttr()
    _unsettled: set[str] = PrivateAttr(default_factory=set)  # ids whose replacement began and did not end

    def __init__(
        self,
        store: BasePydanticVectorStore,
        rag: RagCache,
        *,
        collection: str | None = None,
        methods: Sequence[str | Method] | None = None,
        fill: int = FILL,
    ) -> None:
        kind = BasePydanticVectorStore
        check_kind("store", store, kind, "the vector store to wrap, ChromaVectorStore(...) for instance")
        check_kind("rag", rag, RagCache, "the index that keeps the KV, RagCache.open(...)")
        super().__init__(stores_text=store.stores_text, is_embedding_query=store.is_embedding_query)
        self._store = store
        self._fill = fill
        name = collection or _name(store)
        if folder := chroma_folder(getattr(store.client, "_client", None)):
            claim_collection(rag.index, name, folder)
        self._kv = rag.collection(name, methods=methods)

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
        entries = _entries(nodes)
        changed = self._outdated(entries)
        names = self._store.add(nodes, **kwargs)
        with self._settling(changed):
            if stale := self._stale(changed, entries):
                self._store.delete_nodes(stale)
                self._store.add(_among(nodes, stale), **kwargs)
        self._kv.add(entries)
        return names

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes, and make their KV, in another thread."""
        nodes = list(nodes)
        entries = _entries(nodes)
        changed = await asyncio.to_thread(self._outdated, entries)
        names: list[str] = await self._asked("async_add", "add", nodes, **kwargs)
        with self._settling(changed):
            if stale := await self._stale_later(changed, entries):
                await self._asked("adelete_nodes", "delete_nodes", stale)
                await self._asked("async_add", "add", _among(nodes, stale), **kwargs)
        await asyncio.to_thread(self._kv.add, entries)
        return names

    def _outdated(self, entries: Sequence[Entry]) -> list[str]:
        """Ids that stand for something else so far, or may in the store; their KV is forgotten.

        The store's own entry is left alone until the new one was taken: it may be refused.
        """
        changed = self._kv.changed(entries)
        if changed:
            self._unsettled.update(changed)
            self._kv.discard(changed)
        return [*{*changed, *(self._unsettled & {entry.name for entry in entries})}]

    @contextmanager
    def _settling(self, changed: Sequence[str]) -> Iterator[None]:
        """See to ids whose new text the store has taken; one that cannot delete is left as it is."""
        with suppress(NotImplementedError):
            yield
        self._unsettled.difference_update(changed)

    def _stale(self, changed: list[str], entries: Sequence[Entry]) -> list[str]:
        """Those of some ids that the store kept the old text of: some leave a known id as it is, or keep both."""
        try:
            return _differing([node for batch in batches(changed) for node in self.get_nodes(batch)], entries)
        except (NotImplementedError, ValueError):  # it cannot say
            return changed

    async def _stale_later(self, changed: list[str], entries: Sequence[Entry]) -> list[str]:
        try:
            found = [node for batch in batches(changed) for node in await self.aget_nodes(batch)]
            return _differing(found, entries)
        except (NotImplementedError, ValueError):
            return changed

    # -- what it held before

    def adopt(self, nodes: Iterable[BaseNode] | None = None) -> IngestReport:
        """Make the KV of what the store holds already, and forget what it has lost since.

        Parameters
        ----------
        nodes : iterable of BaseNode, optional
            What it holds, where it cannot list that itself: `index.docstore.docs.values()` of a store that keeps no
            text. Nothing is forgotten then.

        Raises
        ------
        InvalidArgument
            If it cannot list what it holds, and nothing is handed over.
        """
        if nodes is not None:
            return self._kv.adopt(_entries(list(nodes)), whole=False)
        try:
            found, whole = listed(self._store)
        except NotImplementedError as error:
            raise InvalidArgument(
                f"{error}; hand them over with adopt(index.docstore.docs.values()), or let queries bring them in turn"
            ) from error
        return self._kv.adopt(_entries(found), whole=whole)

    def _noted(self, found: VectorStoreQueryResult) -> VectorStoreQueryResult:
        """What a query found; unknown nodes of it are known from now on."""
        if self._fill and found.nodes:
            self._kv.note(_entries(found.nodes), self._fill)
        return found

    # -- what is deleted is forgotten, before the wrapped store forgets it

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete a document's nodes."""
        if ref_doc_id == _NO_DOCUMENT:
            before = self._there()
            self._store.delete(ref_doc_id, **delete_kwargs)
            self._kv.follow(before, self._there())
            return
        self._kv.discard_document(valid_unicode(ref_doc_id))
        self._store.delete(ref_doc_id, **delete_kwargs)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete a document's nodes."""
        if ref_doc_id == _NO_DOCUMENT:
            before = await self._there_later()
            await self._asked("adelete", "delete", ref_doc_id, **delete_kwargs)
            await asyncio.to_thread(self._kv.follow, before, await self._there_later())
            return
        await asyncio.to_thread(self._kv.discard_document, valid_unicode(ref_doc_id))
        await self._asked("adelete", "delete", ref_doc_id, **delete_kwargs)

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete nodes by id, by what their metadata says, or by both."""
        if filters is None:
            if node_ids:
                self._kv.discard(node_ids)
                self._store.delete_nodes(node_ids, **delete_kwargs)
            return
        seen: set[str] = set()
        with suppress(NotImplementedError):  # a store that deletes by filters but cannot say what
            # Found first, so that both delete the same ones; time and again, as many stores name only so many.
            while found := {node.node_id for node in self.get_nodes(node_ids, filters)}:
                if not (chosen := sorted(found - seen)):
                    break  # it names what was deleted, and may have more
                self._kv.discard(chosen)
                self._store.delete_nodes(chosen, **delete_kwargs)
                seen |= found
            else:
                return
        before = self._there()
        self._store.delete_nodes(node_ids, filters, **delete_kwargs)
        self._kv.follow(before, self._there())

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete nodes, as `delete_nodes`."""
        if filters is None:
            if node_ids:
                await asyncio.to_thread(self._kv.discard, node_ids)
                await self._asked("adelete_nodes", "delete_nodes", node_ids, **delete_kwargs)
            return
        seen: set[str] = set()
        with suppress(NotImplementedError):
            while found := {node.node_id for node in await self.aget_nodes(node_ids, filters)}:
                if not (chosen := sorted(found - seen)):
                    break
                await asyncio.to_thread(self._kv.discard, chosen)
                await self._asked("adelete_nodes", "delete_nodes", chosen, **delete_kwargs)
                seen |= found
            else:
                return
        before = await self._there_later()
        await self._asked("adelete_nodes", "delete_nodes", node_ids, filters, **delete_kwargs)
        await asyncio.to_thread(self._kv.follow, before, await self._there_later())

    def clear(self) -> None:
        """Delete all nodes."""
        self._kv.clear()
        self._store.clear()

    async def aclear(self) -> None:
        """Delete all nodes."""
        await asyncio.to_thread(self._kv.clear)
        await self._asked("aclear", "clear")

    def sync(self) -> Synced:
        """Forget what the wrapped store says that it no longer has, whoever deleted it.

        Nothing is forgotten where it cannot say, has none of the ids that are known, or knows them in another form:
        the result's `note` says so.
        """
        return self._kv.sync(self._has)

    async def async_sync(self) -> Synced:
        """The same of a store that is asked asynchronously."""
        names = await asyncio.to_thread(self._kv.names)
        try:
            answered = await self._answered(names)
        except NotImplementedError as error:
            return Synced.unanswered(len(names), error)
        return await asyncio.to_thread(self._kv.reconcile, names, answered)

    def _has(self, names: Sequence[str]) -> Sequence[str]:
        """Which of some names the store says it has."""
        known = ids_in(self._store, names)
        return [node.node_id for node in self._store.get_nodes(list(names))] if known is None else known

    async def _answered(self, names: Sequence[str]) -> list[str]:
        found: list[str] = []
        for batch in batches(names):
            known = ids_in(self._store, batch)
            found += [node.node_id for node in await self.aget_nodes(batch)] if known is None else known
        return found

    def _there(self) -> set[str]:
        """Names that the store says it has; none where it cannot say."""
        with suppress(NotImplementedError):
            return self._kv.present([name for batch in batches(self._kv.names()) for name in self._has(batch)])
        return set()

    async def _there_later(self) -> set[str]:
        with suppress(NotImplementedError):
            answered = await self._answered(await asyncio.to_thread(self._kv.names))
            return await asyncio.to_thread(self._kv.present, answered)
        return set()

    async def _asked(self, name: str, plain: str, *args: Any, **kwargs: Any) -> Any:
        """The wrapped store's own async method; its plain one, in another thread, where it has none that is async."""
        if getattr(type(self._store), name) is getattr(BasePydanticVectorStore, name):
            return await asyncio.to_thread(getattr(self._store, plain), *args, **kwargs)
        return await getattr(self._store, name)(*args, **kwargs)

    # -- the wrapped store's own

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Search the wrapped store; what it finds is known from then on."""
        return self._noted(self._store.query(query, **kwargs))

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Search the wrapped store; what it finds is known from then on."""
        return await asyncio.to_thread(self._noted, await self._asked("aquery", "query", query, **kwargs))

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


def _differing(found: Sequence[BaseNode], entries: Sequence[Entry]) -> list[str]:
    """Ids of nodes that are not what was added under them."""
    added = {entry.name: _content(entry) for entry in entries}
    return [*{entry.name: None for entry in _entries(found) if _content(entry) != added.get(entry.name)}]


def _content(entry: Entry) -> tuple[object, ...]:
    return entry.words, entry.document, entry.access


def _among(nodes: Sequence[BaseNode], names: Sequence[str]) -> list[BaseNode]:
    """Nodes of some names, whichever way they are written."""
    wanted = {uniform_name(name) for name in names}
    return [node for node in nodes if uniform_name(node.node_id) in wanted]


def _entries(nodes: Sequence[BaseNode]) -> list[Entry]:
    return [entry_of(node) for node in nodes]
