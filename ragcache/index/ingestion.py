"""Ingestion: documents to chunks to KV to vectors, resumable at every step.

Order: catalogue rows, KV and with it the vectors, then the KV of what needs neighbours. A chunk's vector is written
soon after its KV and never before it: within seconds, behind the batch that is encoded then, or when the run is
interrupted. So what was made before can be asked about, and no vector points at nothing; whatever was left undone is
found by comparing the three and done by the next run.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic, perf_counter
from typing import Protocol, Self

from ragcache.checks import check_kind
from ragcache.encode import Encoder
from ragcache.errors import EmptyDocument, UnreadableDocument
from ragcache.index.chunking import Chunking
from ragcache.index.chunks import MARKS
from ragcache.index.documents import Documents
from ragcache.index.index import Index
from ragcache.index.neighbours import SimilarChunks
from ragcache.index.outdated import Outdated, find_outdated
from ragcache.index.pricing import Pricing
from ragcache.index.settings import note_outdated, nothing_in, outdated_counts, outdated_is_known, remember
from ragcache.method import Method
from ragcache.report import IngestPlan, IngestReport, Progress
from ragcache.retrieve import Found, Vectors, find_standing, gone, load
from ragcache.store import COLLECTION, ChunkRow, DocumentRow

_EMBED_BATCH, _EMBED_SECONDS = 64, 2.0  # chunks are embedded so many at once, or what there is after so long
_EMBEDDED = "embedded_edition"  # setting: of the chunks that the vectors are of


@dataclass
class _Changes:
    """What differs between the folder and the index."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    errors: list[str] = field(default_factory=list)
    emptied: list[str] = field(default_factory=list)
    forgotten: Sequence[str] = ()

    @property
    def unread(self) -> bool:
        """Whether there were files, and not one of them could be read."""
        return bool(self.errors) and not self.added + self.changed + self.unchanged


class EncodingPool(Protocol):
    """Makes KV elsewhere than in this process."""

    #: What could not be made, in sentences.
    failures: list[str]

    def takes(self, encoder: Encoder) -> bool:
        """Whether it can make an encoding; what it cannot, this process does."""

    def encode(self, index: Index, encoder: Encoder) -> Iterator[str]:
        """Make what is missing of an encoding, and enter it; the id of each chunk then."""
        ...


@dataclass(frozen=True)
class Ingestion:
    """Brings an index and its vectors in line with some files.

    Attributes
    ----------
    index : Index
        Chunks and their KV.
    vectors : Vectors
        Their embeddings.
    chunking : Chunking
        How the files are cut into chunks.
    progress : Progress
        Told what is being done.
    method : Method
        What the index is opened with. It becomes the index's own once what it loads was made.
    pool : EncodingPool or None
        What makes KV in the place of this process.
    """

    index: Index
    vectors: Vectors
    chunking: Chunking
    progress: Progress
    method: Method
    pool: EncodingPool | None = None

    def run(
        self,
        paths: Sequence[str | Path] | None,
        encoders: Sequence[Encoder],
        *,
        exclude: Sequence[str] = (),
        ignore_files: bool = True,
        prune: bool = False,
    ) -> IngestReport:
        """Ingest files and folders; what is unchanged is left alone, what is gone is removed.

        Without paths the documents stay as they are, and what is missing of their KV and vectors is made.

        Parameters
        ----------
        paths, exclude, ignore_files
            As in `ragcache.retrieve.find_standing`.
        encoders : sequence of Encoder
            What to make of each chunk.
        prune : bool
            Whether files that are gone are removed wherever they were, not under the paths only.

        Raises
        ------
        EmptyIndex
            If there are neither paths nor documents.
        NoDocuments, UnsupportedDocument
            If there is nothing to ingest, or a named file is of another type.
        UnreadableDocument
            If not one of the documents could be read.
        InvalidArgument
            If a pattern of `exclude` is not one.
        """
        began, damaged, missing = perf_counter(), self._remove_damaged(), self.index.drop_missing()
        known = self._known()
        if paths is None:
            found = Found(files=())
        else:
            found = find_standing(paths, [*known, *map(str, damaged)], exclude=exclude, ignore_files=ignore_files)
        gone_now = gone(known, None if prune else paths or (), found=found.files)
        if paths is None and not damaged:
            changes = self._kept(len(gone_now))
        else:
            changes = self._documents(sorted({*found.files, *damaged}), known)
        changes.forgotten = sorted({*changes.emptied, *gone_now})
        kept = dict[str, int]()
        with _Arrivals(self) as arrivals:
            if changes.added and changes.forgotten:  # before anything goes: a text that was moved keeps its KV
                kept = self._encode([one for one in _with_bases(encoders) if one.base_encoding is None], arrivals)
            self._forget(changes)
            if changes.unread:
                raise UnreadableDocument(changes.errors[0])
            encoded = self.encode(encoders, arrivals)
        self.embed()
        stats = self.index.catalog.stats()
        return IngestReport(
            changes.added,
            changes.changed,
            len(changes.forgotten),
            changes.unchanged,
            stats["chunks"],
            dict(Counter(kept) + Counter(encoded)),
            stats["bytes"],
            perf_counter() - began,
            found.skipped,
            (*found.errors, *changes.errors, *(self.pool.failures if self.pool else ())),
            found.ignored,
            (*self.chunking.notes(), *_damage(damaged, missing), *self._left_out(encoders)),
            tuple(changes.forgotten),
            outdated_counts(self.index.catalog),
        )

    def encode(
        self, encoders: Sequence[Encoder], made: Callable[[Sequence[str]], None] = lambda chunks: None
    ) -> dict[str, int]:
        """Make what is missing of encodings; how many chunks' of each. Vectors come first where chunks are fused.

        Parameters
        ----------
        encoders : sequence of Encoder
            What they build on is made too.
        made : callable
            Told the ids of chunks whose KV is there, soon after it is.
        """
        ordered = _with_bases(encoders)
        encoded = self._encode([encoder for encoder in ordered if encoder.base_encoding is None], made)
        if fused := [encoder for encoder in ordered if encoder.base_encoding is not None]:
            self.embed()
            alike = SimilarChunks(self.index, self.vectors)
            encoded |= self._encode(fused, made, alike)
            self._note_outdated([one for one in fused if one.recipe in encoded or not self._knows_outdated(one)], alike)
        if self.method.encode is not None and self.method.encode.recipe in {one.recipe for one in encoders}:
            remember(self.index.catalog, method=self.method.name)  # another one may lack the KV of what is new
        return encoded

    def refresh(self, encoders: Sequence[Encoder]) -> IngestReport:
        """Make what is missing of encodings, and anew what was fused with others than a chunk's neighbours of today.

        What was made before serves until then, and goes when all of an encoding is made; document after document where
        the index has no room for both.
        """
        began, report = perf_counter(), self.run(None, encoders)
        notes, left_out = report.notes, tuple(self._left_out(encoders))
        encoded, alike = Counter(report.encoded), SimilarChunks(self.index, self.vectors)
        for encoder in [one for one in _with_bases(encoders) if one.base_encoding is not None]:
            found = find_outdated(self.index, encoder, alike)
            encoded[encoder.recipe] += self._make_anew(encoder, found, alike)
            self._note_outdated([encoder], alike)
        if left_out != (now := tuple(self._left_out(encoders))):
            notes = (*(said for said in notes if said not in left_out), *now)
        return replace(
            report, encoded=dict(+encoded), outdated=outdated_counts(self.index.catalog),
            bytes=self.index.catalog.stats()["bytes"], seconds=perf_counter() - began, notes=notes,
        )  # fmt: skip

    def _make_anew(self, encoder: Encoder, found: Outdated, alike: SimilarChunks) -> int:
        """Make what is outdated anew, and let go of what it takes the place of; of how many chunks."""
        made = set[str]()

        def make(documents: Sequence[Sequence[ChunkRow]]) -> None:
            for chunk in self.index.encode_chunks(encoder, documents, neighbours=alike):
                made.add(chunk)
                self.progress(f"encode {encoder.recipe}", len(made), len(found.chunks))

        make(found.documents)
        lacking = {row.id for row in found.chunks} - made
        self.index.forget([key for chunk, keys in found.keys.items() if chunk not in lacking for key in keys])
        for rows in found.documents:
            if todo := [row for row in rows if row.id in lacking]:  # its room is that of what it takes the place of
                self.index.forget([key for row in todo for key in found.keys.get(row.id, ())])
                make([todo])
        return len(made)

    def embed(self, documents: Container[str] | None = None) -> None:
        """Bring the vectors in line with the chunks: of some documents, by id, or of all; none outlives its chunk."""
        catalog = self.index.catalog
        with self.index.writing:  # no chunk comes or goes meanwhile
            edition, chunks = catalog.edition(), catalog.places()
            stored = set(self.vectors.ids())
            self.vectors.delete(sorted(stored - {chunk for chunk, _ in chunks}))
        wanted = [chunk for chunk, document in chunks if documents is None or document in documents]
        missing = [chunk for chunk in wanted if chunk not in stored]
        for first in range(0, len(missing), _EMBED_BATCH):
            self.embed_chunks(missing[first : first + _EMBED_BATCH])
            self.progress("embed", min(first + _EMBED_BATCH, len(missing)), len(missing))
        catalog.set_setting(_EMBEDDED, edition)

    def embed_chunks(self, ids: Sequence[str]) -> None:
        """Embed a few chunks; those that are gone are passed over."""
        with self.index.writing:
            chunks = self.index.catalog.chunks(ids)
            self.vectors.upsert([one.id for one in chunks], self.chunking.embed(chunks))

    def follow(self) -> None:
        """Embed what other programs' vector stores have brought since; files wait for their ingestion to be resumed."""
        catalog = self.index.catalog
        if self.index.writable and catalog.setting(_EMBEDDED) != catalog.edition():
            self.embed({row.id for row in catalog.documents() if COLLECTION in row.metadata})

    def plan(
        self,
        paths: Sequence[str | Path],
        encoders: Sequence[Encoder],
        top_k: int,
        *,
        exclude: Sequence[str] = (),
        ignore_files: bool = True,
        prune: bool = False,
    ) -> IngestPlan:
        """What that would cost, nothing written: chunks, bytes, seconds, and questions until it pays off."""
        began, errors, known, pricing = perf_counter(), list[str](), self._known(), self._pricing()
        found = find_standing(paths, list(known), exclude=exclude, ignore_files=ignore_files)
        files = found.files
        for done, path in enumerate(files):
            self.progress("read", done, len(files))
            row = known.get(str(path))
            if row is not None and self._unchanged(row, path):
                continue
            try:
                pieces = self.chunking.split(load(path))
            except UnreadableDocument as error:
                errors.append(str(error))
                continue
            pricing.add([piece.text for piece in pieces], row)
        self.progress("read", len(files), len(files))
        reading = perf_counter() - began
        plan = pricing.plan(_with_bases(encoders), top_k, self.progress)
        return replace(
            plan,
            seconds=reading + plan.seconds,
            skipped=found.skipped,
            ignored=found.ignored,
            errors=(*found.errors, *errors),
            notes=self.chunking.notes(),
            forgotten=tuple(sorted(gone(known, None if prune else paths, found=files))),
        )

    def pending(self, encoders: Sequence[Encoder], top_k: int, *, prune: bool = False) -> IngestPlan:
        """What is still to be encoded of the documents that the index holds already, and what `prune` would remove."""
        plan = self._pricing().plan(_with_bases(encoders), top_k, self.progress)
        return replace(plan, forgotten=tuple(sorted(gone(self._known())))) if prune else plan

    def _pricing(self) -> Pricing:
        return Pricing(self.index, self.vectors, self.chunking.embedder)

    def _kept(self, leaving: int) -> _Changes:
        """All documents stay, but for so many whose files are gone."""
        documents = len(self.index.catalog.documents())
        if not documents:
            raise nothing_in(self.index.path)
        return _Changes(unchanged=documents - leaving)

    def _documents(self, files: Sequence[Path], known: Mapping[str, DocumentRow]) -> _Changes:
        changes = _Changes()
        for done, path in enumerate(files):
            self.progress("documents", done, len(files))
            row = known.get(str(path))
            if row is not None and self._unchanged(row, path):
                changes.unchanged += 1
                continue
            try:
                self._put(path)
            except UnreadableDocument as error:
                changes.errors.append(str(error))
                if row is not None and isinstance(error, EmptyDocument):
                    changes.emptied.append(row.source)
                continue
            changes.changed += row is not None
            changes.added += row is None
        self.progress("documents", len(files), len(files))
        return changes

    def _forget(self, changes: _Changes) -> None:
        """Remove the documents whose files are gone, and what is left of those that were changed."""
        catalog = self.index.catalog
        documents = Documents(self.index.path, catalog, self.index.forgotten, self.vectors.delete)
        rows = [row for source in changes.forgotten if (row := catalog.document_by_source(source))]
        if rows:
            documents.remove(row.id for row in rows)
        elif changes.changed:
            documents.clean()

    def _known(self) -> dict[str, DocumentRow]:
        """Documents that came from files, by path."""
        return {row.source: row for row in self.index.catalog.documents() if COLLECTION not in row.metadata}

    def _remove_damaged(self) -> list[Path]:
        """Remove documents whose text was changed on the disk; the files of those that can be read anew."""
        with self.index.writing:
            sources = self.index.catalog.remove_damaged()
            self.index.forgotten.delete()
        return [Path(source) for source in sources if Path(source).is_file()]

    def _unchanged(self, row: DocumentRow, path: Path) -> bool:
        return row.digest == _digest(path) and self.chunking.holds(row)

    def _put(self, path: Path) -> None:
        document = load(path)
        pieces = self.chunking.split(document)
        self._drop_vectors(document.source)  # before the chunks: no vector may outlive its own
        self.index.put(
            document.source,
            document.digest,
            [(piece.text, piece.start, piece.end) for piece in pieces],
            {**document.metadata, **self.chunking.settings, MARKS: document.marks},
        )

    def _drop_vectors(self, source: str) -> None:
        row = self.index.catalog.document_by_source(source)
        if row is not None:
            self.vectors.delete([chunk.id for chunk in self.index.catalog.chunks_of(row.id)])

    def _left_out(self, encoders: Sequence[Encoder]) -> Iterator[str]:
        """What the index has no room for."""
        limit = self.index.bound.limit
        lacking = sum(sum(self.index.lacking(encoder).values()) for encoder in _with_bases(encoders)) if limit else 0
        if lacking and limit:
            yield (
                f"{lacking:,} KV do not fit into the {limit / 2**20:,.1f} MiB that the index may take; they are made "
                "when they are asked about, and what saves the least goes then; --max-size allows more"
            )

    def _knows_outdated(self, encoder: Encoder) -> bool:
        return outdated_is_known(self.index.catalog, encoder.recipe)

    def _note_outdated(self, encoders: Sequence[Encoder], alike: SimilarChunks) -> None:
        """Count the chunks whose neighbours are others by now."""
        for encoder in encoders:
            found = find_outdated(self.index, encoder, alike)
            note_outdated(self.index.catalog, encoder.recipe, len(found.chunks))

    def _encode(
        self, encoders: Sequence[Encoder], made: Callable[[Sequence[str]], None], alike: SimilarChunks | None = None
    ) -> dict[str, int]:
        encoded: dict[str, int] = {}
        for encoder in encoders:
            made(self.index.catalog.encoded(encoder.recipe))  # a run that was killed may have said nothing of them
            todo = sum(self.index.lacking(encoder).values())
            if not todo:
                continue
            self.progress(f"encode {encoder.recipe}", 0, todo)
            done = 0
            pool = self.pool if self.pool and self.pool.takes(encoder) else None
            ids = pool.encode(self.index, encoder) if pool else self.index.encode(encoder, neighbours=alike)
            for done, chunk in enumerate(ids, start=1):
                made([chunk])
                self.progress(f"encode {encoder.recipe}", done, todo)
            self.progress(f"encode {encoder.recipe}", todo, todo)  # others may have been made by another process
            encoded[encoder.recipe] = done
        return encoded


class _Arrivals:
    """Embeds chunks soon after their KV is there: many at once, the first at once, and all at an interrupt."""

    def __init__(self, work: Ingestion) -> None:
        self._work = work
        self._known = set(work.vectors.ids())
        self._waiting: list[str] = []
        self._embedded = -math.inf  # when

    def __call__(self, chunks: Sequence[str]) -> None:
        new = [chunk for chunk in chunks if chunk not in self._known]
        self._known.update(new)
        self._waiting += new
        while len(self._waiting) >= _EMBED_BATCH or (self._waiting and self._overdue()):
            self._embed_batch()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        while self._waiting and kind is KeyboardInterrupt:
            self._embed_batch()

    def _embed_batch(self) -> None:
        batch, self._waiting = self._waiting[:_EMBED_BATCH], self._waiting[_EMBED_BATCH:]
        self._work.embed_chunks(batch)
        self._embedded = monotonic()

    def _overdue(self) -> bool:
        return monotonic() - self._embedded >= _EMBED_SECONDS


def listed(paths: str | Path | Sequence[str | Path]) -> list[str | Path]:
    """One path or several, as a list."""
    if isinstance(paths, str | Path):
        return [paths]
    check_kind("paths", paths, Iterable, "a path, or a list of them")
    return list(paths)


def _with_bases(encoders: Sequence[Encoder]) -> list[Encoder]:
    """Each encoding once, behind the one it builds on."""
    ordered = [e for encoder in encoders for e in (encoder.base_encoding, encoder) if e is not None]
    return list({encoder.recipe: encoder for encoder in ordered}.values())


def _damage(files: Sequence[Path], missing: int) -> Iterator[str]:
    """What the disk has lost."""
    if files:
        yield f"read anew, since what the index had of it was changed on the disk: {', '.join(map(str, files))}"
    if missing:
        yield f"{missing:,} KV files were gone, and are made anew for the methods that are asked for"


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
