"""RagCache: engine, index and retriever behind two verbs, `ingest` and `ask`."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ragcache import methods
from ragcache.encode import Encoder
from ragcache.engine.answer import Answer
from ragcache.engine.chat import Message, check_history
from ragcache.engine.clock import Clock
from ragcache.engine.engine import Engine
from ragcache.engine.request import AnyMethod, Request, RequestOptions
from ragcache.engine.speculate import IncrementalRetriever, check_retriever, read_final, start_early
from ragcache.engine.stream import Stream
from ragcache.index.chroma_import import claim_chroma_entries
from ragcache.index.chunking import Chunking
from ragcache.index.chunks import Chunk, order_by_document
from ragcache.index.collection import Collection
from ragcache.index.documents import Documents, KnownDocument
from ragcache.index.index import Index
from ragcache.index.ingestion import EncodingPool, Ingestion, listed
from ragcache.index.opening import check_retrieval, given_reader, resolve
from ragcache.index.publication import attach, local_copy, publish_owed, publishing
from ragcache.index.search import Search
from ragcache.index.settings import nothing_in, remember, stats
from ragcache.model import notice
from ragcache.model.cost import FlopCounter
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.report import IngestPlan, IngestReport, Progress, ignore_progress
from ragcache.retrieve import DEFAULT_RETRIEVER, TITLES, Reranker, Retriever, Titles, Vectors, check_choice
from ragcache.retrieve.given import AnyEmbedder, AnySplitter, TextEmbedder
from ragcache.store import CODECS

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class RagCache:
    """Questions answered over documents, from chunk KV that was made when they were ingested.

    Use `RagCache.open`; the index remembers its model, dtype, embedder, method, chunk size and top-k.
    """

    def __init__(
        self, index: Index, vectors: Vectors, embedder: AnyEmbedder, *, method: str, chunk_tokens: int, top_k: int,
        titles: Titles = "none", splitter: AnySplitter | None = None, retriever: Retriever = DEFAULT_RETRIEVER,
        reranker: Reranker | None = None,
    ) -> None:  # fmt: skip
        self.index = index
        self.reader = index.reader
        self.engine = Engine(index.reader, index, method)
        self.method = method
        self.chunk_tokens = chunk_tokens
        self.titles = titles
        self.top_k = top_k
        self.model_note, self._places = "", dict[str, str | None]()
        self._vectors = vectors
        self._documents = Documents(index.path, index.catalog, index.forgotten, vectors.delete)
        self.embedder = embedder
        self._splitter = splitter
        self._retriever = retriever
        self._wraps_store = False
        self._search = Search(index, vectors, embedder, reranker)

    @classmethod
    def open(
        cls,
        path: str | Path = "./index",
        *,
        model: "str | Reader | PreTrainedModel | None" = None,
        tokenizer: "PreTrainedTokenizerBase | None" = None,
        adapter: str | Path | None = None,
        method: str | None = None,
        embedder: str | TextEmbedder | None = None,
        dtype: str | None = None,
        device: str | None = None,
        system: str | None = None,
        splitter: AnySplitter | None = None,
        retriever: str | None = None,
        reranker: str | Reranker | None = None,
        second_sight_bytes: int = 0,
        kv: str | None = None,
        remote: str | None = None,
        create: bool = True,
    ) -> Self:
        """Open an index, or create one. What it was made with it remembers; docs/hooks.md shows each of the hooks.

        Parameters
        ----------
        path : str or Path
            The index's folder, or the URL that it is published at, of which this machine's copy is read then.
        model : str, Reader or PreTrainedModel, optional
            Hub id, folder, "smollm2-tuned", "smollm2", "bundled", a loaded reader, or a loaded Hugging Face model with
            its `tokenizer`; the index's own by default, else what the environment variable RAGCACHE_MODEL names, else
            "smollm2-tuned" if what brings it is installed, else "bundled".
        tokenizer : PreTrainedTokenizerBase, optional
            Of a loaded model.
        adapter : str or Path, optional
            Folder of a LoRA adapter as PEFT writes it, merged into a model that is given by name; the index's own by
            default, where the model is the index's own too.
        method : str, optional
            Default row of the method table as long as this is open; of a new index, and of one that something is
            ingested into for it, from now on.
        embedder : str or TextEmbedder, optional
            A sentence-transformers model, or an object with `name`, `max_tokens` and `embed(texts)`.
        dtype, device : str, optional
            As in `Reader.load`.
        system : str, optional
            The instruction in front of the chunks.
        splitter : TextSplitter or callable, optional
            An object with `split_text(text)`, or a function of a text; what is over a limit is split further.
        retriever : {"dense", "hybrid", "iterative"}, optional
            How chunks are found, as long as this is open: by their vectors; by those and by their words (BM25), the two
            rankings fused, which is the default; or so and by their sentences, and again with the best of those, for
            questions that take two facts.
        reranker : str or Reranker, optional
            A cross-encoder of sentence-transformers, or an object with `score(question, texts)`, that puts what was
            found in its final order, as long as this is open.
        second_sight_bytes : int
            Most bytes of KV of texts that are no document's, kept in memory from their second prompt on as long as this
            is open; none by default, so that each is prefilled in every prompt.
        kv : {"raw", "bf16", "int8", "k8v4"}, optional
            How a new index's KV is written down; raw, bit for bit, by default. The others take fewer bytes.
        remote : str, optional
            URL of an object store to keep the KV in, and publish the index at, from now on (extra `remote`).
        create : bool
            Whether a missing index is made.

        Raises
        ------
        EmptyIndex
            If there is no index and `create` is False.
        IndexFormat
            If the path is no folder, or holds something else.
        IndexMismatch
            If the index was made by another model, adapter, tokenizer, dtype, system prompt, splitter or `kv`.
        InvalidArgument
            If the model, dtype, device, method, embedder, splitter, retriever, reranker or `kv` is not one, or the
            index has another embedder.
        MissingExtra
            If a package is not installed that the model or the embedder needs.
        UnsupportedModel
            If the model's KV cannot be moved.
        UnusableAdapter, UntunedReader
            If the adapter is damaged, no plain LoRA, or of another model, or tuned otherwise than the method takes it.
        """
        path = local_copy(path)
        how = resolve(
            path, model=given_reader(model, tokenizer), adapter=adapter, method=method, embedder=embedder,
            dtype=dtype, device=device, system=system, splitter=splitter, retriever=retriever, reranker=reranker,
            kv=kv, create=create,
        )  # fmt: skip
        how.check_tuning(how.method)
        if remote is not None:
            attach(how.path, remote)
        reader = how.load_reader()
        how.method.check_reader(reader)
        index = Index(how.path, reader, codec=CODECS[how.kv], system=system, second_sight_bytes=second_sight_bytes)
        settings = how.settings(reader)
        if settings != how.known and index.writable:
            index.catalog.set_setting("rag", settings)
        rag = cls(
            index, Vectors(how.path / "vectors", "chunks"), how.load_embedder(), method=how.method.name,
            chunk_tokens=settings["chunk_tokens"], top_k=settings["top_k"], titles=settings["titles"],
            splitter=how.splitter, retriever=how.retriever, reranker=how.reranker,
        )  # fmt: skip
        rag._places = how.places(reader)
        rag.model_note = notice.describe_model(reader, new=not how.known, by_default=model is None)
        if notice.is_test_model(reader) and (model is None or isinstance(model, str)):
            notice.warn_once()  # whoever has loaded it knows
        return rag

    def ingest(
        self,
        paths: str | Path | Sequence[str | Path] | None = None,
        *,
        methods: Sequence[str] | None = None,
        chunk_tokens: int | None = None,
        titles: str | None = None,
        exclude: Sequence[str] = (),
        ignore_files: bool = True,
        prune: bool = False,
        progress: Progress | None = None,
        pool: EncodingPool | None = None,
    ) -> IngestReport:
        """Ingest files and folders, and prefill every chunk once for each encoding that the methods load.

        Parameters
        ----------
        paths : path or sequence of paths, optional
            Unchanged documents are left alone, changed ones replaced, removed ones go. Without paths the index keeps
            its documents, and makes what the methods load of them.
        methods : sequence of str, optional
            Rows of the method table; the index's own by default.
        chunk_tokens : int, optional
            Most reader tokens of a chunk; the index remembers it.
        titles : str, optional
            Where a line with the document's title and the headings above a chunk stands: in the "text" that the model
            reads, in what is embedded ("embedding"), in "both", as in a new index, or nowhere ("none"); the index
            remembers it.
        exclude, ignore_files
            Patterns to leave out, and whether ignore files are obeyed, as in `ragcache.retrieve.find`.
        prune : bool
            Whether every document goes whose file is gone, under whatever path it was.
        progress : callable, optional
            `progress(stage, done, total)`.
        pool : EncodingPool, optional
            What makes KV in the place of this process, such as `ray_ragcache.RayEncoding`.
        """
        work = replace(self._ingestion(progress, chunk_tokens, titles), pool=pool)
        files, encoders = None if paths is None else listed(paths), self._encoders(methods)
        with publishing(self.index.path, self.index.catalog):
            report = work.run(files, encoders, exclude=exclude, ignore_files=ignore_files, prune=prune)
            self._remember(work.chunking)
        return report

    def refresh(self, *, methods: Sequence[AnyMethod] | None = None, progress: Progress | None = None) -> IngestReport:
        """Make KV anew that was fused with other chunks than it would be today, other programs' chunks included.

        Parameters
        ----------
        methods : sequence of str or Method, optional
            Rows of the method table; all whose fused KV the index holds by default.
        progress : callable, optional
            As in `ingest`.

        Raises
        ------
        EmptyIndex
            If nothing was ingested.
        """
        with publishing(self.index.path, self.index.catalog):
            return self._ingestion(progress).refresh(self._fused(methods))

    def plan(
        self,
        paths: str | Path | Sequence[str | Path],
        *,
        methods: Sequence[str] | None = None,
        chunk_tokens: int | None = None,
        titles: str | None = None,
        exclude: Sequence[str] = (),
        ignore_files: bool = True,
        prune: bool = False,
        progress: Progress | None = None,
    ) -> IngestPlan:
        """What `ingest` would cost, and what would go, with nothing written."""
        work, encoders = self._ingestion(progress, chunk_tokens, titles), self._encoders(methods)
        return work.plan(listed(paths), encoders, self.top_k, exclude=exclude, ignore_files=ignore_files, prune=prune)

    def pending(self, *, methods: Sequence[str] | None = None, prune: bool = False) -> IngestPlan:
        """What is still to be encoded of the documents that the index holds already, and what `prune` would remove."""
        return self._ingestion().pending(self._encoders(methods), self.top_k, prune=prune)

    def ask(
        self,
        question: str,
        *,
        top_k: int | None = None,
        method: AnyMethod | None = None,
        recompute: float | None = None,
        compare: bool = False,
        sampling: Sampling | None = None,
        history: Sequence[Message] = (),
        retriever: IncrementalRetriever | None = None,
    ) -> Answer:
        """Answer a question from the most similar chunks.

        Parameters
        ----------
        question : str
            The user's words.
        top_k : int, optional
            Chunks to retrieve; the index remembers its own.
        method : str or Method, optional
            A row of the method table; the index's own by default.
        recompute : float, optional
            Share of the reused tokens to recompute.
        compare : bool
            Measure a stock full prefill of the same ids too.
        sampling : Sampling, optional
            Greedy by default.
        history : sequence of Message
            Earlier turns of the conversation. The user's last one helps to find chunks for a question that follows it.
        retriever : IncrementalRetriever, optional
            Finds the chunks in the place of the index's own search. Its provisional lists are prefilled while it goes
            on; `report.speculation` says what of that was thrown away.

        Raises
        ------
        EmptyIndex
            If nothing was ingested.
        MissingEncoding
            If the method's KV was never made.
        InvalidArgument
            If the question is blank, or a value is out of range.
        """
        if retriever is not None and not compare:
            return self._start_early(question, top_k, method, recompute, sampling, history, retriever).answer
        request = self._request(question, top_k, method, recompute, sampling, history, retriever)
        return self.engine.compare(request) if compare else self.engine.start(request).answer

    def stream(
        self,
        question: str,
        *,
        top_k: int | None = None,
        method: AnyMethod | None = None,
        recompute: float | None = None,
        sampling: Sampling | None = None,
        history: Sequence[Message] = (),
        retriever: IncrementalRetriever | None = None,
    ) -> Stream:
        """The same, piece by piece: iterate for the text, then read `.answer`."""
        if retriever is not None:
            return self._start_early(question, top_k, method, recompute, sampling, history, retriever)
        return self.engine.start(self._request(question, top_k, method, recompute, sampling, history, None))

    def retrieve(self, question: str, *, top_k: int | None = None, sources: Sequence[str] | None = None) -> list[Chunk]:
        """The best chunks, of some documents only if their sources are given, best first, each with its similarity.

        Raises
        ------
        EmptyIndex
            If nothing was ingested.
        InvalidArgument
            If the question is blank, or `top_k` below 1.
        """
        count = self.top_k if top_k is None else top_k
        check_retrieval(question, count)
        self._ingestion().follow()
        if self._vectors.count() == 0:
            raise nothing_in(self.index.path, self.index.catalog)
        return self._search.find(question, count, self._retriever, None if sources is None else frozenset(sources))

    def adopt(
        self,
        path: str | Path,
        collection: str | None = None,
        *,
        methods: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> IngestReport:
        """Make the KV of the chunks that a Chroma folder of another program holds; what it lost since is forgotten.

        Nothing is added to the folder or removed from it. A store that wraps the same collection goes on from there.

        Parameters
        ----------
        path : str or Path
            Chroma's folder.
        collection : str, optional
            Its collection; the only one by default.
        methods, progress
            As in `ingest`.

        Raises
        ------
        NoDocuments
            If there is no Chroma folder.
        InvalidArgument
            If there is no such collection, or another folder's of that name is in the index.
        """
        began = time.perf_counter()
        name, entries = claim_chroma_entries(self.index, Path(path), collection)
        done = self.collection(name, methods=methods, progress=progress).adopt(entries)
        self._ingestion(progress).follow()
        return replace(done, seconds=time.perf_counter() - began)

    def collection(
        self, name: str, *, methods: Sequence[AnyMethod] | None = None, progress: Progress | None = None
    ) -> Collection:
        """The chunks of another program's vector store; their KV follows what is added to it and removed.

        Parameters
        ----------
        name : str
            The store's name, under which its chunks are kept apart from other stores'.
        methods : sequence of str or Method, optional
            Rows whose encodings are made when chunks are added; the index's own method by default.
        progress : callable, optional
            As in `ingest`.
        """
        encoders = self._encoders(methods)
        work, self._wraps_store = self._ingestion(progress), True
        return Collection(self.index, name, lambda: work.encode(encoders), self._vectors.delete)

    def documents(self) -> list[KnownDocument]:
        """What documents the index knows, by source."""
        return self._documents.known()

    def forget(self, *paths: str | Path) -> list[KnownDocument]:
        """Remove files, folders, or what matches a pattern, with all that was made of them; `Documents.find` says how.

        Raises
        ------
        NoDocuments
            If one of them means no document of the index; nothing is removed then.
        """
        with publishing(self.index.path, self.index.catalog):
            found = self._documents.find(*paths)
            self._documents.remove(one.id for one in found)
        return found

    def stats(self) -> dict[str, Any]:
        """What `stats` says of this index."""
        return stats(self.index.path)

    def close(self) -> None:
        """Close catalogue and vectors; what was added to vector stores is published first."""
        try:
            if self._wraps_store:
                publish_owed(self.index.path, self.index.catalog)
        finally:
            self._wraps_store = False  # closed again, it has nothing to publish
            self.index.close()
            self._vectors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __deepcopy__(self, memo: object) -> Self:
        """Itself: frameworks copy what holds it, and there is one model."""
        return self

    def _start_early(
        self, question: str, top_k: int | None, method: AnyMethod | None, recompute: float | None,
        sampling: Sampling | None, history: Sequence[Message], retriever: IncrementalRetriever,
    ) -> Stream:  # fmt: skip
        """Prefill a question over the chunks that a retriever has so far, until it has its final ones."""
        check_retriever(retriever)
        self.engine.check_encoding(method or self.method)
        options = RequestOptions(method, recompute, sampling, check=False)

        def build(chunks: Sequence[Chunk | str], clock: Clock, counter: FlopCounter) -> Request:
            own = replace(options, clock=clock, flop_counter=counter)
            return self.engine.requests.from_question(question, chunks, own, history)

        search = partial(retriever.retrieve, *self._query(question, top_k, history))
        return start_early(self.engine, search, build, Clock(self.reader.device))

    def _request(
        self, question: str, top_k: int | None, method: AnyMethod | None, recompute: float | None,
        sampling: Sampling | None, history: Sequence[Message], retriever: IncrementalRetriever | None,
    ) -> Request:  # fmt: skip
        """A question over the chunks most similar to it, on a clock that has retrieval in it."""
        self.engine.check_encoding(method or self.method)
        check_retriever(retriever)
        clock, chunks = Clock(self.reader.device), list[Chunk | str]()
        with clock.stage("retrieve", waits=False):
            query, k = self._query(question, top_k, history)
            chunks += self.retrieve(query, top_k=k) if retriever is None else read_final(retriever.retrieve(query, k))
        options = RequestOptions(method, recompute, sampling, clock=clock, check=False)
        request = self.engine.requests.from_question(question, order_by_document(chunks), options, history)
        said = self._search.notes() if retriever is None else ()
        return replace(request, notes=(*request.notes, *said))

    def _query(self, question: str, top_k: int | None, history: Sequence[Message]) -> tuple[str, int]:
        """What to search for, and how many chunks."""
        check_history(history)
        said = [message.text for message in history if message.role == "user"]
        count = self.top_k if top_k is None else top_k
        check_retrieval(question, count)
        return "\n".join([*said[-1:], question]), count

    def _encoders(self, names: Sequence[AnyMethod] | None) -> list[Encoder]:
        rows = [
            methods.find_method(name) for name in ([names] if isinstance(names, AnyMethod) else names or [self.method])
        ]
        for row in rows:
            row.check_reader(self.reader)
        return [row.encode for row in rows if row.encode is not None]

    def _fused(self, names: Sequence[AnyMethod] | None) -> list[Encoder]:
        """Encoders of these rows, or of the index's own and all whose KV it holds, that fuse a chunk with others."""
        own = self._encoders(names)
        every = own if names else [*own, *(row.encode for row in methods.list_methods().values() if row.encode)]
        made = {*self.index.catalog.recipes(), *(one.recipe for one in own)}
        return [one for one in every if one.base_encoding is not None and one.recipe in made]

    def _ingestion(
        self, progress: Progress | None = None, chunk_tokens: int | None = None, titles: str | None = None
    ) -> Ingestion:
        tokens = self.chunk_tokens if chunk_tokens is None else chunk_tokens
        where = self.titles if titles is None else check_choice("titles", titles, TITLES)
        chunking = Chunking(self.index, self.embedder, tokens, where, self._splitter)
        return Ingestion(self.index, self._vectors, chunking, progress or ignore_progress, self.engine.method)

    def _remember(self, chunking: Chunking) -> None:
        self.chunk_tokens, self.titles = chunking.tokens, chunking.titles
        remember(self.index.catalog, **self._places, chunk_tokens=chunking.tokens, titles=chunking.titles)
