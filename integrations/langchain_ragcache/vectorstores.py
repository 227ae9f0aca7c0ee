"""Any LangChain vector store, with the KV of its chunks kept beside it."""

from __future__ import annotations

import inspect
import uuid
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

from langchain_core.documents import Document
from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import VectorStore

from langchain_ragcache.following import Following
from langchain_ragcache.listing import entry_of, ids_for, listed
from ragcache import RagCache
from ragcache.checks import check_kind
from ragcache.errors import InvalidArgument
from ragcache.index.chroma_import import chroma_folder, claim_collection
from ragcache.index.chunks import is_text_id, text_id
from ragcache.index.collection import Collection, Entry, Synced
from ragcache.retrieve.needs import needs

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from ragcache import Method
    from ragcache.report import IngestReport

#: Most chunks that are kept because a search came upon them.
FILL = 1000
_INDEX = "the index that keeps the KV, rag=RagCache.open(...)"
#: How methods begin that take something away, in the stores of LangChain's partners.
_REMOVERS = ("delete", "drop", "reset", "clear", "remove", "purge")


def _asked_of(name: str) -> Any:
    """A method that is the wrapped store's own."""

    def method(self: RagCacheVectorStore, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.store, name)(*args, **kwargs)

    method.__name__ = name
    return method


def _search_of(name: str) -> Any:
    """A search that is the wrapped store's own; what it finds is known from then on."""

    def now(self: RagCacheVectorStore, *args: Any, **kwargs: Any) -> Any:
        return self._noted(getattr(self.store, name)(*args, **kwargs))

    async def later(self: RagCacheVectorStore, *args: Any, **kwargs: Any) -> Any:
        return await run_in_executor(None, self._noted, await getattr(self.store, name)(*args, **kwargs))

    method: Callable[..., Any] = later if name.startswith("a") else now
    method.__name__ = name
    return method


class RagCacheVectorStore(VectorStore):
    """A vector store whose chunks are prefilled when they are added, and forgotten when they are deleted.

    Searching is the wrapped store's business, and so is everything else that is not said here. Chunks of one
    `metadata["source"]` are one document, in the order of `page` and `start_index` where splitters left them, else as
    they came.

    Parameters
    ----------
    store : VectorStore
        The one to wrap, `Chroma` for instance. What it holds already is prefilled by `adopt`; or chunk by chunk, when
        one that a search found is answered from.
    rag : RagCache
        Whose index keeps the KV.
    collection : str, optional
        A name for this store in the index; Chroma's collection by default.
    methods : sequence of str or Method, optional
        Rows whose encodings are made; the index's own method by default.
    fill : int
        How many chunks are kept at most that were never added here, but found by a search: the oldest go first. At 0
        such a chunk is computed for each answer anew.

    Raises
    ------
    InvalidArgument
        If the store has no name, and none is given; or it is Chroma's, and the index has another folder's of that name;
        or something else stands in the store's or the index's place.
    """

    def __init__(
        self,
        store: VectorStore,
        rag: RagCache,
        *,
        collection: str | None = None,
        methods: Sequence[str | Method] | None = None,
        fill: int = FILL,
    ) -> None:
        check_kind("store", store, VectorStore, "the vector store to wrap, Chroma(...) for instance")
        check_kind("rag", rag, RagCache, _INDEX)
        name = collection or getattr(store, "_collection_name", None)
        if not name:
            raise InvalidArgument(
                f"{type(store).__name__} has no name that its chunks could be kept under; give one with collection="
            )
        if folder := chroma_folder(getattr(store, "_client", None)):
            claim_collection(rag.index, name, folder)
        self.store = store
        self.fill = fill
        self.kv: Collection = rag.collection(name, methods=methods)

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        rag: RagCache | None = None,
        store: type[VectorStore] | None = None,
        collection: str | None = None,
        methods: Sequence[str | Method] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Make a store of texts, and their KV.

        Parameters
        ----------
        texts, embedding, metadatas, ids
            As in LangChain.
        rag : RagCache
            Whose index keeps the KV.
        store : type of VectorStore
            What to make; `langchain_chroma.Chroma` by default. It is handed `kwargs`.
        collection, methods
            As in the class.
        """
        check_kind("rag", rag, RagCache, _INDEX)
        names = [name or str(uuid.uuid4()) for name in ids or [""] * len(texts)]
        made = (store or _chroma()).from_texts(texts, embedding, metadatas, ids=names, **kwargs)
        self = cls(made, cast(RagCache, rag), collection=collection, methods=methods)
        self.kv.add(_entries(names, texts, metadatas))
        return self

    # -- what is added is prefilled, behind the wrapped store's own work; what it replaces is forgotten before that

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts, and make their KV."""
        texts, given = list(texts), {} if ids is None else {"ids": ids}
        self._replace(_entries(ids or [], texts, metadatas))
        names = self.store.add_texts(texts, metadatas, **given, **kwargs)
        self.kv.add(_entries(names, texts, metadatas))
        return names

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts, and make their KV, in another thread."""
        texts, given = list(texts), {} if ids is None else {"ids": ids}
        await run_in_executor(None, self._replace, _entries(ids or [], texts, metadatas))
        names = await self.store.aadd_texts(texts, metadatas, **given, **kwargs)
        await run_in_executor(None, self.kv.add, _entries(names, texts, metadatas))
        return names

    def add_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """Add documents, and make their KV."""
        documents = list(documents)
        self._replace(_named(documents, kwargs))
        names = self.store.add_documents(documents, **kwargs)
        self.kv.add(_of(names, documents))
        return names

    async def aadd_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """Add documents, and make their KV, in another thread."""
        documents = list(documents)
        await run_in_executor(None, self._replace, _named(documents, kwargs))
        names = await self.store.aadd_documents(documents, **kwargs)
        await run_in_executor(None, self.kv.add, _of(names, documents))
        return names

    def update_document(self, document_id: str, document: Document) -> None:
        """Replace a document, where the wrapped store can."""
        self.update_documents([document_id], [document])

    def update_documents(self, ids: list[str], documents: list[Document]) -> None:
        """Replace documents, where the wrapped store can."""
        update, entries = self._own("update_documents"), _of(ids, documents)
        self._replace(entries)
        update(ids, documents)
        self.kv.add(entries)

    def _replace(self, entries: Sequence[Entry]) -> None:
        """Forget what these names stand for, where it is something else."""
        self.kv.discard(self.kv.changed(entries))

    @property
    def _following(self) -> Following:
        return Following(self.store, self.kv)

    # -- what it held before

    def adopt(self, documents: Iterable[Document] | None = None) -> IngestReport:
        """Make the KV of what the store holds already, and forget what it has lost since.

        Parameters
        ----------
        documents : iterable of Document, optional
            What it holds, each with its id, where it cannot list that itself; nothing is forgotten then.

        Raises
        ------
        InvalidArgument
            If it cannot list what it holds, and nothing is handed over.
        """
        if documents is not None:
            return self.kv.adopt([entry_of(document) for document in documents], whole=False)
        try:
            return self.kv.adopt(listed(self.store))
        except NotImplementedError as error:
            raise InvalidArgument(
                f"{error}; hand over its documents with adopt(documents), or let searches bring them one by one"
            ) from error

    def _noted(self, found: Any) -> Any:
        """What a search found; unknown chunks of it are known from now on."""
        if self.fill and isinstance(found, list):
            documents = [one[0] if isinstance(one, tuple) else one for one in found]
            self.kv.note([entry_of(one) for one in documents if isinstance(one, Document)], self.fill)
        return found

    # -- what is deleted is forgotten, before the wrapped store forgets it

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete by ids; what the store was told to choose by other means is found out afterwards."""
        self._forget(_listed(ids))
        delete = self.store.delete if ids is not None and not kwargs else self._following.removing(self.store.delete)
        done: bool | None = delete(ids, **kwargs)
        return done

    async def adelete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete by ids, as `delete`."""
        await self._forget_later(_listed(ids))
        delete = self.store.adelete if ids is not None and not kwargs else self._following.removing(self.store.adelete)
        done: bool | None = await delete(ids, **kwargs)
        return done

    def delete_collection(self) -> None:
        """Delete everything, where the wrapped store can."""
        delete = self._own("delete_collection")
        self.kv.clear()
        delete()

    def reset_collection(self) -> None:
        """Delete everything and begin anew, where the wrapped store can."""
        reset = self._own("reset_collection")
        self.kv.clear()
        reset()

    def sync(self) -> Synced:
        """Forget what the wrapped store says that it no longer has, whoever deleted it.

        Nothing is forgotten where it cannot say, has none of the ids that are known, or knows them in another form:
        the result's `note` says so.
        """
        return self._following.sync()

    async def async_sync(self) -> Synced:
        """The same of a store that is asked asynchronously."""
        return await self._following.async_sync()

    def _forget(self, names: list[str]) -> None:
        """Forget entries, those among them that a search found without their ids."""
        if nameless := self._nameless(names):
            try:
                documents = self.store.get_by_ids(nameless)
            except Exception as error:
                documents = self._untold(error)
            names = [*names, *map(_text_name, documents)]
        self.kv.discard(names)

    async def _forget_later(self, names: list[str]) -> None:
        if nameless := await run_in_executor(None, self._nameless, names):
            try:
                documents = await self.store.aget_by_ids(nameless)
            except Exception as error:
                documents = self._untold(error)
            names = [*names, *map(_text_name, documents)]
        await run_in_executor(None, self.kv.discard, names)

    def _nameless(self, names: list[str]) -> list[Any]:
        """Ids, as the store takes them, whose entries a search may have found without them."""
        unknown = self.kv.unknown(names)
        return ids_for(self.store, unknown) if unknown and any(map(is_text_id, self.kv.names())) else []

    def _untold(self, error: Exception) -> list[Document]:
        """No documents, where a store cannot say what its ids stand for: what is deleted from it is deleted."""
        warnings.warn(
            f"the vector store of {self.kv.name!r} cannot say what its ids stand for ({error}), so KV of texts that a "
            "search found without their ids may be left; forget everything with kv.clear()",
            stacklevel=4,
        )
        return []

    # -- the wrapped store's own

    similarity_search = _search_of("similarity_search")
    asimilarity_search = _search_of("asimilarity_search")
    similarity_search_with_score = _search_of("similarity_search_with_score")
    asimilarity_search_with_score = _search_of("asimilarity_search_with_score")
    similarity_search_by_vector = _search_of("similarity_search_by_vector")
    asimilarity_search_by_vector = _search_of("asimilarity_search_by_vector")
    similarity_search_with_relevance_scores = _search_of("similarity_search_with_relevance_scores")
    asimilarity_search_with_relevance_scores = _search_of("asimilarity_search_with_relevance_scores")
    max_marginal_relevance_search = _search_of("max_marginal_relevance_search")
    amax_marginal_relevance_search = _search_of("amax_marginal_relevance_search")
    max_marginal_relevance_search_by_vector = _search_of("max_marginal_relevance_search_by_vector")
    amax_marginal_relevance_search_by_vector = _search_of("amax_marginal_relevance_search_by_vector")
    get_by_ids = _asked_of("get_by_ids")
    aget_by_ids = _asked_of("aget_by_ids")
    _select_relevance_score_fn = _asked_of("_select_relevance_score_fn")

    @property
    def embeddings(self) -> Embeddings | None:
        """What the wrapped store embeds with."""
        return self.store.embeddings

    def __getattr__(self, name: str) -> Any:
        if name == "store":  # not yet there, while an object is copied
            raise AttributeError(name)
        found = getattr(self.store, name)
        if not callable(found):
            return found
        if name.removeprefix("a").startswith(_REMOVERS) or name.startswith(_REMOVERS):
            return self._following.removing(found)
        return self._searching(found) if "search" in name else found

    def _searching(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """A search in a manner of the wrapped store's own."""
        if inspect.iscoroutinefunction(method):

            async def later(*args: Any, **kwargs: Any) -> Any:
                return await run_in_executor(None, self._noted, await method(*args, **kwargs))

            return later
        return lambda *args, **kwargs: self._noted(method(*args, **kwargs))

    def _own(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] | None = getattr(self.store, name, None)
        if method is None:
            raise NotImplementedError(f"{type(self.store).__name__}, which is wrapped here, has no {name}")
        return method


def _entries(names: Sequence[str], texts: Sequence[str], metadatas: Sequence[dict[str, Any]] | None) -> list[Entry]:
    about = [*(metadatas or ()), *[{}] * len(texts)]
    return [Entry.of(str(name), text, metadata) for name, text, metadata in zip(names, texts, about, strict=False)]


def _of(names: Sequence[str], documents: Sequence[Document]) -> list[Entry]:
    pairs = zip(names, documents, strict=True)
    return [Entry.of(str(name), document.page_content, document.metadata) for name, document in pairs]


def _named(documents: Sequence[Document], kwargs: dict[str, Any]) -> list[Entry]:
    """Documents whose names are known before they are added."""
    names = kwargs.get("ids") or [document.id for document in documents]
    pairs = [(name, document) for name, document in zip(names, documents, strict=False) if name]
    return _of([name for name, _ in pairs], [document for _, document in pairs])


def _text_name(document: Document) -> str:
    """What a document is called that a search found without its id; asked for by id, a store may well give it."""
    return text_id(document.page_content.strip())


def _listed(ids: list[str] | str | None) -> list[str]:
    return [ids] if isinstance(ids, str) else [str(one) for one in ids or ()]


def _chroma() -> type[VectorStore]:
    with needs("langchain"):
        from langchain_chroma import Chroma
    return Chroma
