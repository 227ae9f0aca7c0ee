"""RagCache: engine, index and retriever behind two verbs, `ingest` and `ask`."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ragcache import methods
from ragcache.chunks import Chunk
from ragcache.collection import Collection, Entry
from ragcache.documents import Documents, KnownDocument
from ragcache.encode import Encoder
from ragcache.engine import Engine
from ragcache.errors import EmptyIndex, InvalidArgument
from ragcache.index import Index
from ragcache.ingest import Ingestion, Progress, listed, silent
from ragcache.methods import DEFAULT_METHOD, Method
from ragcache.model.decode import Sampling
from ragcache.model.loading import BUNDLED, load_reader
from ragcache.model.reader import Reader
from ragcache.remembered import no_index, settings_of, stats
from ragcache.report import Answer, IngestPlan, IngestReport
from ragcache.retrieve import DEFAULT_EMBEDDER, Embedder, Vectors, foreign
from ragcache.stream import Stream
from ragcache.written import Message

_ADOPTED = "adopted_folders"  # setting: by collection
CHUNK_TOKENS, TOP_K = 256, 5
BUNDLED_CHUNK_TOKENS, BUNDLED_TOP_K = 72, 8  # what the bundled reader was trained on


class RagCache:
    """Questions answered over documents, from chunk KV that was made when they were ingested.

    Use `RagCache.open`; the index remembers its model, dtype, embedder, method, chunk size and top-k.
    """

    def __init__(
        self, index: Index, vectors: Vectors, embedder: Embedder, *, method: str, chunk_tokens: int, top_k: int
    ) -> None:
        self.index = index
        self.reader = index.reader
        self.engine = Engine(index.reader, index, method)
        self.method = method
        self.chunk_tokens = chunk_tokens
        self.top_k = top_k
        self.model_note = ""
        self._vectors = vectors
        self._documents = Documents(index.path, index.catalog, index.forgotten, vectors.delete)
        self._embedder = embedder

    @classmethod
    def open(
        cls,
        path: str | Path = "./index",
        *,
        model: str | Reader | None = None,
        method: str | None = None,
        embedder: str | None = None,
        dtype: str | None = None,
        device: str | None = None,
        create: bool = True,
    ) -> Self:
        """Open an index, or create one.

        Parameters
        ----------
        path : str or Path
            The index's folder.
        model : str or Reader, optional
            Hub id, folder, "bundled", or a loaded reader; the index's own by default, else the bundled one.
        method : str, optional
            Default row of the method table for this index.
        embedder : str, optional
            A sentence-transformers model.
        dtype, device : str, optional
            As in `Reader.load`.
        create : bool
            Whether a missing index is made.

        Raises
        ------
        EmptyIndex
            If there is no index and `create` is False.
        IndexMismatch
            If the index was made by another model, tokenizer or dtype.
        InvalidArgument
            If the model, method or embedder is not one.
        """
        path = Path(path)
        known = settings_of(path)
        if not known and not create:
            raise no_index(path)
        chosen = methods.find(method or known.get("method") or DEFAULT_METHOD).name
        name = model or known.get("name") or BUNDLED
        dtype = dtype or known.get("dtype") or "auto"
        reader = name if isinstance(name, Reader) else load_reader(name, dtype=dtype, device=device)
        own = known.get("embedder") or DEFAULT_EMBEDDER
        if embedder and known and embedder != own:
            raise InvalidArgument(
                f"the index {path} was embedded by {own}, not {embedder}; ingest into another --index to change it"
            )
        small = reader.name == BUNDLED
        index = Index(path, reader)
        settings: dict[str, Any] = {
            "name": reader.name,
            "dtype": dtype,
            "embedder": embedder or own,
            "method": chosen,
            "chunk_tokens": known.get("chunk_tokens") or (BUNDLED_CHUNK_TOKENS if small else CHUNK_TOKENS),
            "top_k": known.get("top_k") or (BUNDLED_TOP_K if small else TOP_K),
        }
        if settings != known:
            index.catalog.set_setting("rag", settings)
        rag = cls(
            index,
            Vectors(path / "vectors", "chunks"),
            Embedder(settings["embedder"]),
            method=chosen,
            chunk_tokens=settings["chunk_tokens"],
            top_k=settings["top_k"],
        )
        if small and model is None and not known:
            rag.model_note = (
                "no model was named, so the small bundled reader answers; name a real one with "
                "--model, for example --model Qwen/Qwen2.5-7B-Instruct"
            )
        return rag

    def ingest(
        self,
        paths: str | Path | Sequence[str | Path],
        *,
        methods: Sequence[str] | None = None,
        chunk_tokens: int | None = None,
        exclude: Sequence[str] = (),
        ignore_files: bool = True,
        prune: bool = False,
        progress: Progress | None = None,
    ) -> IngestReport:
        """Ingest files and folders, and prefill every chunk once for each encoding that the methods load.

        Parameters
        ----------
        paths : path or sequence of paths
            Unchanged documents are left alone, changed ones replaced, removed ones go.
        methods : sequence of str, optional
            Rows of the method table; the index's own by default.
        chunk_tokens : int, optional
            Most reader tokens of a chunk; the index remembers it.
        exclude, ignore_files
            Patterns to leave out, and whether ignore files are obeyed, as in `ragcache.retrieve.find`.
        prune : bool
            Whether documents outside of the paths go, too, if their files are gone.
        progress : callable, optional
            `progress(stage, done, total)`.
        """
        work = self._ingestion(chunk_tokens, progress)
        encoders = self._encoders(methods)
        report = work.run(listed(paths), encoders, exclude=exclude, ignore_files=ignore_files, prune=prune)
        if work.chunk_tokens != self.chunk_tokens:
            self.chunk_tokens = work.chunk_tokens
            self._remember(chunk_tokens=work.chunk_tokens)
        return report

    def plan(
        self,
        paths: str | Path | Sequence[str | Path],
        *,
        methods: Sequence[str] | None = None,
        chunk_tokens: int | None = None,
        exclude: Sequence[str] = (),
        ignore_files: bool = True,
        progress: Progress | None = None,
    ) -> IngestPlan:
        """What `ingest` would cost, with nothing written."""
        work, encoders = self._ingestion(chunk_tokens, progress), self._encoders(methods)
        return work.plan(listed(paths), encoders, self.top_k, exclude=exclude, ignore_files=ignore_files)

    def pending(self, *, methods: Sequence[str] | None = None) -> IngestPlan:
        """What is still to be encoded of the documents that are in the index already."""
        return self._ingestion(None, None).pending(self._encoders(methods), self.top_k)

    def ask(
        self,
        question: str,
        *,
        top_k: int | None = None,
        method: str | Method | None = None,
        recompute: float | None = None,
        compare: bool = False,
        sampling: Sampling | None = None,
        history: Sequence[Message] = (),
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

        Raises
        ------
        EmptyIndex
            If nothing was ingested.
        MissingEncoding
            If the method's KV was never made.
        InvalidArgument
            If the question is blank, or a value is out of range.
        """
        row = methods.find(method or self.method)
        chunks, taken = self._retrieve(question, top_k, row, history)
        answer = self.engine.answer(
            question, chunks, method=method, recompute=recompute, sampling=sampling, history=history, compare=compare
        )
        answer.report.ms.retrieve = taken
        answer.report.ms.total += taken
        return answer

    def stream(
        self,
        question: str,
        *,
        top_k: int | None = None,
        method: str | Method | None = None,
        recompute: float | None = None,
        sampling: Sampling | None = None,
        history: Sequence[Message] = (),
    ) -> Stream:
        """The same, piece by piece: iterate for the text, then read `.answer`."""
        row = methods.find(method or self.method)
        chunks, taken = self._retrieve(question, top_k, row, history)
        stream = self.engine.stream(
            question, chunks, method=method, recompute=recompute, sampling=sampling, history=history
        )
        stream.report.ms.retrieve = taken
        return stream

    def retrieve(self, question: str, *, top_k: int | None = None) -> list[Chunk]:
        """The most similar chunks, most similar first, with their cosine similarity.

        Raises
        ------
        EmptyIndex
            If nothing was ingested.
        InvalidArgument
            If the question is blank, or `top_k` below 1.
        """
        count = self.top_k if top_k is None else top_k
        if count < 1:
            raise InvalidArgument(f"top_k is {count}; at least one chunk must be retrieved")
        if not question.strip():
            raise InvalidArgument("the question is blank; ask something")
        self._ingestion(None, None).follow()
        if self._vectors.count() == 0:
            raise EmptyIndex(f"the index {self.index.path} is empty; run `ragcache ingest PATH…` first")
        return self._similar(self._embedder.embed([question])[0], count)

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
            If there is no such collection, or another folder's of that name was adopted.
        """
        began = time.perf_counter()
        name, found = foreign(Path(path), collection)
        folders = self.index.catalog.setting(_ADOPTED, {})
        if (place := str(Path(path).resolve())) != folders.setdefault(name, place):
            raise InvalidArgument(
                f"the index {self.index.path} has adopted the collection {name!r} of {folders[name]}, not of {place}; "
                "adopt this one into another --index"
            )
        self.index.catalog.set_setting(_ADOPTED, folders)
        encoded: dict[str, int] = {}
        encoders, work = self._encoders(methods), self._ingestion(None, progress)
        held = Collection(self.index, name, lambda: encoded.update(work.encode(encoders)), self._vectors.delete)
        entries = [Entry.of(*entry) for entry in found]
        before, now, changed = set(held.names()), {entry.name for entry in entries}, held.changed(entries)
        held.discard(sorted(before - now))
        held.add(entries)
        work.follow()
        stats = self.index.catalog.stats()
        return IngestReport(
            added=len(now - before), changed=len(changed), removed=len(before - now),
            unchanged=len(now & before) - len(changed), chunks=stats["chunks"], encoded=encoded, bytes=stats["bytes"],
            seconds=time.perf_counter() - began,
        )  # fmt: skip

    def collection(self, name: str, *, methods: Sequence[str | Method] | None = None) -> Collection:
        """The chunks of another program's vector store; their KV follows what is added to it and removed.

        Parameters
        ----------
        name : str
            The store's name, under which its chunks are kept apart from other stores'.
        methods : sequence of str or Method, optional
            Rows whose encodings are made when chunks are added; the index's own method by default.
        """
        encoders = self._encoders(methods)
        work = self._ingestion(None, None)
        return Collection(self.index, name, lambda: work.encode(encoders), self._vectors.delete)

    def _similar(self, embedding: NDArray[np.float32], count: int) -> list[Chunk]:
        """The most similar chunks, each text once: files and vector stores may have brought the same ones."""
        wanted, total = count, self._vectors.count()
        while True:
            found = dict(self._vectors.query(embedding, wanted))
            distinct: dict[str, Chunk] = {}
            for chunk in self.index.chunks(list(found)):
                distinct.setdefault(chunk.text.strip(), replace(chunk, score=found[chunk.id]))
            if len(distinct) >= count or wanted >= total:
                return list(distinct.values())[:count]
            wanted *= 2

    def documents(self) -> list[KnownDocument]:
        """What documents the index knows, by source."""
        return self._documents.known()

    def forget(self, *paths: str | Path) -> list[KnownDocument]:
        """Remove files, folders or what fits a pattern, as `Documents.find` says, with all that was made of them."""
        found = self._documents.find(*paths)
        self._documents.remove(one.id for one in found)
        return found

    def stats(self) -> dict[str, Any]:
        """What `stats` says of this index."""
        return stats(self.index.path)

    def close(self) -> None:
        """Close catalogue and vectors."""
        self.index.close()
        self._vectors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __deepcopy__(self, memo: object) -> Self:
        """Itself: frameworks copy what holds it, and there is one model."""
        return self

    def _retrieve(
        self, question: str, top_k: int | None, row: Method, history: Sequence[Message]
    ) -> tuple[list[Chunk], float]:
        self.engine.check_encoding(row)
        began = time.perf_counter()
        said = [message.text for message in history if message.role == "user"]
        chunks = self.retrieve("\n".join([*said[-1:], question]), top_k=top_k)
        return chunks, (time.perf_counter() - began) * 1e3

    def _encoders(self, names: Sequence[str | Method] | None) -> list[Encoder]:
        rows = [methods.find(name) for name in names or [self.method]]
        return [row.encode for row in rows if row.encode is not None]

    def _ingestion(self, chunk_tokens: int | None, progress: Progress | None) -> Ingestion:
        tokens = self.chunk_tokens if chunk_tokens is None else chunk_tokens
        return Ingestion(self.index, self._vectors, self._embedder, tokens, progress or silent)

    def _remember(self, **changes: object) -> None:
        self.index.catalog.set_setting("rag", {**self.index.catalog.setting("rag", {}), **changes})
