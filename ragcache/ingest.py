"""Ingestion: documents to chunks to KV to vectors, resumable at every step.

Order: catalogue rows, pass-A KV, vectors, then what needs neighbours. A vector is written only for a chunk whose KV is
there, so it never points at nothing; whatever a killed run left undone is found by comparing the three and done again.
"""

import hashlib
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from ragcache.collection import COLLECTION
from ragcache.encode import Encoder, InDocument
from ragcache.errors import InvalidArgument, UnreadableDocument
from ragcache.index import Index
from ragcache.model.cost import Shape
from ragcache.report import IngestPlan, IngestReport
from ragcache.retrieve import (
    EDITION,
    Document,
    Embedder,
    Layout,
    Limit,
    Piece,
    Splitter,
    Vectors,
    find,
    load,
    neighbours,
    skipped,
)

#: Called with a stage's name, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]

_LAYOUTS: Mapping[str, Layout] = {
    **dict.fromkeys(("md", "markdown"), "markdown"),
    **dict.fromkeys(("txt", "rst", "html", "htm", "pdf", "docx", "pptx"), "prose"),
}
_EMBED_BATCH = 64
_PROBE_TOKENS = 128
_EMBEDDED = "embedded_edition"  # setting: of the chunks that the vectors are of


@dataclass
class _Changes:
    """What differs between the folder and the index."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Ingestion:
    """Brings an index and its vectors in line with some files.

    Attributes
    ----------
    index : Index
        Chunks and their KV.
    vectors : Vectors
        Their embeddings.
    embedder : Embedder
        Makes the embeddings.
    chunk_tokens : int
        Most reader tokens of a chunk.
    progress : Progress
        Told what is being done.
    """

    index: Index
    vectors: Vectors
    embedder: Embedder
    chunk_tokens: int
    progress: Progress

    def run(self, paths: Sequence[str | Path], encoders: Sequence[Encoder]) -> IngestReport:
        """Ingest files and folders; what is unchanged is left alone, what is gone is removed.

        Raises
        ------
        NoDocuments, UnsupportedDocument
            If there is nothing to ingest, or a named file is of another type.
        UnreadableDocument
            If not one of the documents could be read.
        """
        began = time.perf_counter()
        changes = self._documents(paths)
        encoded = self.encode(encoders)
        self.embed()
        stats = self.index.catalog.stats()
        return IngestReport(
            changes.added,
            changes.changed,
            changes.removed,
            changes.unchanged,
            stats["chunks"],
            encoded,
            stats["bytes"],
            time.perf_counter() - began,
            tuple(str(path) for path in skipped(paths)),
            tuple(changes.errors),
        )

    def encode(self, encoders: Sequence[Encoder]) -> dict[str, int]:
        """Make what is missing of encodings; how many chunks' of each. Vectors come first where chunks are fused."""
        ordered = _with_bases(encoders)
        encoded = self._encode([encoder for encoder in ordered if encoder.before is None])
        if fused := [encoder for encoder in ordered if encoder.before is not None]:
            self.embed()
            encoded |= self._encode(fused)
        return encoded

    def embed(self, documents: Container[str] | None = None) -> None:
        """Bring the vectors in line with the chunks: of some documents, by id, or of all; none outlives its chunk."""
        with self.index.writing:  # no chunk comes or goes meanwhile
            chunks = self.index.catalog.all_chunks()
            stored = set(self.vectors.ids())
            self.vectors.delete(sorted(stored - {chunk.id for chunk in chunks}))
            wanted = [chunk for chunk in chunks if documents is None or chunk.document in documents]
            missing = [chunk for chunk in wanted if chunk.id not in stored]
            for first in range(0, len(missing), _EMBED_BATCH):
                batch = missing[first : first + _EMBED_BATCH]
                self.vectors.upsert([one.id for one in batch], self.embedder.embed([one.text for one in batch]))
                self.progress("embed", first + len(batch), len(missing))
            self.index.catalog.set_setting(_EMBEDDED, self.index.catalog.edition())

    def follow(self) -> None:
        """Embed what other programs' vector stores have brought since; files wait for their ingestion to be resumed."""
        catalog = self.index.catalog
        if catalog.setting(_EMBEDDED) != catalog.edition():
            self.embed({row.id for row in catalog.documents() if COLLECTION in row.metadata})

    def plan(self, paths: Sequence[str | Path], encoders: Sequence[Encoder], top_k: int) -> IngestPlan:
        """What that would cost, nothing written: chunks, bytes, seconds, and questions until it pays off."""
        splitter, files = self._splitter(), find(paths)
        lengths: list[int] = []
        unread = 0
        for done, path in enumerate(files):
            self.progress("read", done, len(files))
            try:
                pieces = _pieces(load(path), splitter)
            except UnreadableDocument:
                unread += 1  # the ingestion itself will say why
                continue
            lengths += [len(self.index.template.chunk(piece.text, "").token_ids) for piece in pieces]
        self.progress("read", len(files), len(files))
        todo = [(encoder, lengths) for encoder in _with_bases(encoders)]
        return self._priced(len(files) - unread, todo, top_k, tuple(str(path) for path in skipped(paths)))

    def pending(self, encoders: Sequence[Encoder], top_k: int) -> IngestPlan:
        """What is still to be encoded of the documents that the index holds already."""
        missing = [(encoder, self.index.missing(encoder)) for encoder in _with_bases(encoders)]
        todo = [(encoder, [len(row.token_ids) for row in rows]) for encoder, rows in missing]
        return self._priced(len({row.document for _, rows in missing for row in rows}), todo, top_k, ())

    def _priced(
        self, documents: int, todo: Sequence[tuple[Encoder, Sequence[int]]], top_k: int, left_out: tuple[str, ...]
    ) -> IngestPlan:
        """A plan for chunks of some lengths, per encoder; FLOPs counted, FLOP/s measured on one short prefill."""
        reader, shape = self.index.reader, Shape.of(self.index.reader)
        most = max((lengths for _, lengths in todo), key=len, default=[])
        prefix, mean = len(self.index.prefix_segment), sum(most) / max(len(most), 1)
        flops = sum(
            shape.forward(torch.arange(start, start + length), reader.layers, logits=False)
            for encoder, lengths in todo
            for start in [prefix + round(_in_front(encoder, mean, sum(lengths) / max(documents, 1)))]
            for length in lengths
        )
        question = shape.forward(torch.arange(prefix + round(mean * top_k)), reader.layers, logits=True)
        return IngestPlan(
            documents=documents,
            chunks=len(most),
            tokens=sum(most),
            bytes_per_token=reader.bytes_per_token,
            bytes=reader.bytes_per_token * sum(sum(lengths) for _, lengths in todo),
            seconds=flops / self._flops_per_second() if flops else 0.0,
            break_even_questions=flops / question if question else 0.0,
            skipped=left_out,
        )

    def _documents(self, paths: Sequence[str | Path]) -> _Changes:
        changes, splitter, files = _Changes(), self._splitter(), find(paths)
        known = {row.source: row for row in self.index.catalog.documents() if COLLECTION not in row.metadata}
        for done, path in enumerate(files):
            self.progress("documents", done, len(files))
            row = known.get(str(path))
            if row and row.digest == _digest(path) and row.metadata.items() >= self._division.items():
                changes.unchanged += 1
                continue
            try:
                self._put(path, splitter)
            except UnreadableDocument as error:
                changes.errors.append(str(error))
                continue
            changes.changed += row is not None
            changes.added += row is None
        self.progress("documents", len(files), len(files))
        if len(changes.errors) == len(files):
            raise UnreadableDocument(changes.errors[0])
        gone = [source for source in known if _gone(source, paths)]
        for source in gone:
            self._remove(source)
        changes.removed = len(gone)
        return changes

    @property
    def _division(self) -> dict[str, int]:
        """What decides how a document is split; one that was split by anything else is split again."""
        return {"chunk_tokens": self.chunk_tokens, "splitter": EDITION}

    def _put(self, path: Path, splitter: Splitter) -> None:
        document = load(path)
        pieces = _pieces(document, splitter)
        self._drop_vectors(document.source)  # before the chunks: no vector may outlive its own
        self.index.put(
            document.source,
            document.digest,
            [(piece.text, piece.start, piece.end) for piece in pieces],
            {**document.metadata, **self._division},
        )

    def _remove(self, source: str) -> None:
        self._drop_vectors(source)
        self.index.remove(source)

    def _drop_vectors(self, source: str) -> None:
        row = self.index.catalog.document_by_source(source)
        if row is not None:
            self.vectors.delete([chunk.id for chunk in self.index.catalog.chunks_of(row.id)])

    def _encode(self, encoders: Sequence[Encoder]) -> dict[str, int]:
        encoded: dict[str, int] = {}
        for encoder in encoders:
            todo = len(self.index.missing(encoder))
            if not todo:
                continue
            self.progress(f"encode {encoder.recipe}", 0, todo)
            find_neighbours = _Neighbours(self.index, self.vectors)
            for done, _ in enumerate(self.index.encode(encoder, neighbours=find_neighbours)):
                self.progress(f"encode {encoder.recipe}", done + 1, todo)
            encoded[encoder.recipe] = todo
        return encoded

    def _splitter(self) -> Splitter:
        # A chunk's own end takes tokens too.
        end = len(self.index.template.chunk("", "").token_ids)
        if self.chunk_tokens <= end:
            raise InvalidArgument(f"chunk_tokens is {self.chunk_tokens}; a chunk's end alone takes {end}")
        reader = Limit(lambda text: len(self.index.template.plain(text)), self.chunk_tokens - end, "the reader")
        return Splitter([reader, Limit(self.embedder.count, self.embedder.max_tokens, "the embedder")])

    def _flops_per_second(self) -> float:
        """Measured on one short prefill, after a warm-up."""
        reader = self.index.reader
        ids = [5] * _PROBE_TOKENS
        reader.encode(ids)
        began = time.perf_counter()
        reader.encode(ids)
        taken = time.perf_counter() - began
        return Shape.of(reader).forward(torch.arange(_PROBE_TOKENS), reader.layers, logits=False) / taken


class _Neighbours:
    """Most similar other chunks by exact search over the stored embeddings, computed once."""

    def __init__(self, index: Index, vectors: Vectors) -> None:
        self._index = index
        self._vectors = vectors
        self._count = 0
        self._found: dict[str, list[str]] = {}

    def __call__(self, chunk: str, count: int) -> Sequence[str]:
        if self._count != count:
            self._search(count)
        return self._found[chunk]

    def _search(self, count: int) -> None:
        chunks = self._index.catalog.all_chunks()
        names = [chunk.id for chunk in chunks]
        found = neighbours(self._vectors.embeddings(names), names, [chunk.text for chunk in chunks], count)
        self._found = {name: [names[i] for i in row] for name, row in zip(names, found, strict=True)}
        self._count = count


def _pieces(document: Document, splitter: Splitter) -> list[Piece]:
    return splitter.split(document.text, _LAYOUTS.get(document.metadata["format"], "lines"))


def _with_bases(encoders: Sequence[Encoder]) -> list[Encoder]:
    """Each encoding once, behind the one it builds on."""
    ordered = [e for encoder in encoders for e in (encoder.before, encoder) if e is not None]
    return list({encoder.recipe: encoder for encoder in ordered}.values())


def _in_front(encoder: Encoder, chunk: float, document: float) -> float:
    """Tokens of a mean chunk's left context behind the prefix, given the mean tokens of chunks and documents."""
    if isinstance(encoder, InDocument):
        return document / 2 if encoder.window is None else min(encoder.window, document / 2)
    return chunk * float(getattr(encoder, "neighbours", 0))


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _gone(source: str, paths: Sequence[str | Path]) -> bool:
    """Whether a known document lay under one of the paths and is there no more."""
    roots = [Path(path).absolute() for path in paths]
    return not Path(source).exists() and any(Path(source).is_relative_to(root) for root in roots)
