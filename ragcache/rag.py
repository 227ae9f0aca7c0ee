"""RagCache: engine, index and retriever behind two verbs, `ingest` and `ask`."""

import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from ragcache import methods
from ragcache.encode import Encoder
from ragcache.engine import Engine
from ragcache.errors import EmptyIndex, InvalidArgument
from ragcache.index import Chunk, Index
from ragcache.ingest import Ingestion, Progress
from ragcache.methods import DEFAULT_METHOD, Method
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.report import Answer, IngestPlan, IngestReport
from ragcache.retrieve import DEFAULT_EMBEDDER, Embedder, Vectors
from ragcache.store import Catalog
from ragcache.stream import Stream

BUNDLED = "bundled"
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
        self.engine = Engine(index.reader, index)
        self.method = method
        self.chunk_tokens = chunk_tokens
        self.top_k = top_k
        self.model_note = ""
        self._vectors = vectors
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
        known = _settings(path)
        if not known and not create:
            raise _no_index(path)
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
        progress : callable, optional
            `progress(stage, done, total)`.
        """
        work = self._ingestion(chunk_tokens, progress)
        report = work.run(_listed(paths), self._encoders(methods))
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
        progress: Progress | None = None,
    ) -> IngestPlan:
        """What `ingest` would cost, with nothing written."""
        return self._ingestion(chunk_tokens, progress).plan(_listed(paths), self._encoders(methods), self.top_k)

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
        chunks, taken = self._retrieve(question, top_k, row)
        answer = self.engine.answer(
            question, chunks, method=row, recompute=recompute, sampling=sampling, compare=compare
        )
        _add_retrieval(answer, taken)
        return answer

    def stream(
        self,
        question: str,
        *,
        top_k: int | None = None,
        method: str | Method | None = None,
        recompute: float | None = None,
        sampling: Sampling | None = None,
    ) -> Stream:
        """The same, piece by piece: iterate for the text, then read `.answer`."""
        row = methods.find(method or self.method)
        chunks, taken = self._retrieve(question, top_k, row)
        stream = self.engine.stream(question, chunks, method=row, recompute=recompute, sampling=sampling)
        stream.report.ms.retrieve = taken
        return stream

    def retrieve(self, question: str, *, top_k: int | None = None) -> list[Chunk]:
        """The most similar chunks, most similar first, with their cosine similarity."""
        count = self.top_k if top_k is None else top_k
        if count < 1:
            raise InvalidArgument(f"top_k is {count}; at least one chunk must be retrieved")
        if not question.strip():
            raise InvalidArgument("the question is blank; ask something")
        found = dict(self._vectors.query(self._embedder.embed([question])[0], count))
        return [replace(chunk, score=found[chunk.id]) for chunk in self.index.chunks(list(found))]

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

    def _retrieve(self, question: str, top_k: int | None, row: Method) -> tuple[list[Chunk], float]:
        if self._vectors.count() == 0:
            raise EmptyIndex(f"the index {self.index.path} is empty; run `ragcache ingest PATH…` first")
        self.engine.check_encoding(row)
        began = time.perf_counter()
        return self.retrieve(question, top_k=top_k), (time.perf_counter() - began) * 1e3

    def _encoders(self, names: Sequence[str] | None) -> list[Encoder]:
        rows = [methods.find(name) for name in names or [self.method]]
        return [row.encode for row in rows if row.encode is not None]

    def _ingestion(self, chunk_tokens: int | None, progress: Progress | None) -> Ingestion:
        tokens = self.chunk_tokens if chunk_tokens is None else chunk_tokens
        return Ingestion(self.index, self._vectors, self._embedder, tokens, progress or _silent)

    def _remember(self, **changes: object) -> None:
        self.index.catalog.set_setting("rag", {**self.index.catalog.setting("rag", {}), **changes})


def stats(path: str | Path) -> dict[str, Any]:
    """Documents, chunks, encodings and bytes of an index, its model, and the disk's free bytes; loads no model.

    Raises
    ------
    EmptyIndex
        If there is no index.
    """
    path = Path(path)
    known = _settings(path)
    if not known:
        raise _no_index(path)
    catalog = Catalog(path / "catalog.sqlite")
    try:
        found = catalog.stats()
    finally:
        catalog.close()
    free = shutil.disk_usage(path).free
    return {"path": str(path), "model": known["name"], "method": known["method"], **found, "free_bytes": free}


def _no_index(path: Path) -> EmptyIndex:
    return EmptyIndex(f"there is no index at {path}; run `ragcache ingest PATH… --index {path}` first")


def _settings(path: Path) -> dict[str, Any]:
    """What an existing index remembers, read before its model is loaded."""
    file = path / "catalog.sqlite"
    if not file.exists():
        return {}
    catalog = Catalog(file)
    try:
        return dict(catalog.setting("rag", {}))
    finally:
        catalog.close()


def load_reader(name: str, *, dtype: str = "auto", device: str | None = None) -> Reader:
    """`Reader.load`, where "bundled" names the reader that comes with the package."""
    if name != BUNDLED:
        return Reader.load(name, dtype=dtype, device=device)
    from ragcache import bundled

    reader = Reader.load(str(bundled.reader_path()), dtype=dtype, device=device)
    reader.name = BUNDLED
    return reader


def _listed(paths: str | Path | Sequence[str | Path]) -> list[str | Path]:
    return [paths] if isinstance(paths, str | Path) else list(paths)


def _silent(stage: str, done: int, total: int) -> None:
    """Report nothing."""


def _add_retrieval(answer: Answer, taken: float) -> None:
    answer.report.ms.retrieve = taken
    answer.report.ms.total += taken
