"""Between an index and its workers: what is missing goes out as jobs, what is stored is entered."""

import time
from collections.abc import Iterator
from importlib.metadata import version

from ragcache.encode import Encoder, PromptEncoder
from ragcache.errors import DISTRIBUTION, InvalidArgument
from ragcache.index.encoding_context import IndexEncodingContext
from ragcache.index.index import Index
from ragcache.index.settings import KV_FORM
from ragcache.store import CODEC, RAW, ChunkRow, EncodingRow, bind_secret, read_attachment
from ray_ragcache.messages import Job, Piece, Status, WorkerSpec
from ray_ragcache.pool import RayPool

_TOGETHER = 32  # chunks of any documents in one job, where none depends on another
_ROWS = 64  # entered in one transaction


class RayEncoding:
    """Makes an index's KV on a pool of workers: a `ragcache.index.ingestion.EncodingPool`.

    Whatever happens to workers, a chunk's KV is entered once, under the key that this process would have given it, and
    what could not be made is named.

    Parameters
    ----------
    pool : RayPool
        The workers.
    """

    def __init__(self, pool: RayPool) -> None:
        self.pool = pool
        self.failures: list[str] = []
        #: KV that workers published, and that they found there.
        self.stored = self.found = 0

    def takes(self, encoder: Encoder) -> bool:
        """Whether workers can make an encoding: all but what needs other documents' chunks, or an answered prompt."""
        return encoder.base_encoding is None and not isinstance(encoder, PromptEncoder)

    def encode(self, index: Index, encoder: Encoder) -> Iterator[str]:
        """Make what is missing of an encoding; the id of each chunk once its KV is entered.

        Raises
        ------
        InvalidArgument
            If the index's KV files have a limit, which machines that write at once cannot keep.
        UnusableIndex, WorkerDied
            As `RayPool.run`.
        """
        if index.bound.limit is not None:
            raise InvalidArgument(
                f"the index {index.path} has a limit for its KV files, which several workers cannot keep; keep its KV "
                "in an object store, by --remote URL, where --max-size is for each machine's copies"
            )
        jobs = list(_jobs(index, encoder))
        if not jobs:
            return
        index.prefix()  # stored by now, so that all workers stand chunks behind the same
        names = {piece.id: job.source for job in jobs for piece in job.pieces}
        waiting, failed = list[EncodingRow](), set[str]()
        try:
            for status in self.pool.run(_spec(index), jobs):
                if status.error:
                    failed.add(status.chunk)
                    self.failures.append(f"a chunk of {names[status.chunk]} ({status.chunk}) has no KV: {status.error}")
                    continue
                self._note(index, status)
                waiting.append(_row(status, encoder))
                if len(waiting) >= _ROWS:
                    yield from _enter(index, waiting)
        finally:  # whatever ends the run, what was made is there
            last = list(_enter(index, waiting))
        yield from last
        lost = [row.id for row in index.catalog.missing(encoder.recipe) if row.id in names and row.id not in failed]
        if lost:
            self.failures.append(f"{len(lost):,} chunks have no KV yet, {lost[0]} first; repeat the command")

    def _note(self, index: Index, status: Status) -> None:
        self.stored += status.stored
        self.found += not status.stored
        if status.form and index.catalog.setting(KV_FORM) is None:
            index.catalog.set_setting(KV_FORM, [list(layer) for layer in status.form])


def _jobs(index: Index, encoder: Encoder) -> Iterator[Job]:
    """What is missing: a document at a time, where its chunks depend on each other; else as it comes."""
    loose = list[tuple[ChunkRow, str]]()
    dependent = _depends(index, encoder)
    for document in index.lacking(encoder):
        row = index.catalog.document(document)
        source = document if row is None else row.source
        todo = index.catalog.missing(encoder.recipe, document)
        if dependent:
            pieces = tuple(_piece(index, encoder, one) for one in index.catalog.chunks_of(document))
            yield Job(document, source, encoder.recipe, pieces, tuple(one.id for one in todo))
        else:
            loose += [(one, source) for one in todo]
    for first in range(0, len(loose), _TOGETHER):
        part = loose[first : first + _TOGETHER]
        source = ", ".join(dict.fromkeys(source for _, source in part))
        pieces = tuple(Piece(one.id, one.text, one.token_ids, one.access) for one, _ in part)
        yield Job("", source, encoder.recipe, pieces, tuple(piece.id for piece in pieces))


def _depends(index: Index, encoder: Encoder) -> bool:
    """Whether a chunk's KV depends on what stands before it, which the index is then to note before there is any."""
    missing = index.lacking(encoder)
    if missing:
        first = index.catalog.missing(encoder.recipe, next(iter(missing)))[0]
        room = index.reader.limit - len(index.prefix_segment)
        context = IndexEncodingContext(
            encoder.recipe, index.catalog, index.prefix, lambda chunk, recipe: None, None, room
        )
        encoder.left(first.id, context)
    return index.follows_document(encoder)


def _piece(index: Index, encoder: Encoder, row: ChunkRow) -> Piece:
    known = index.catalog.encodings(row.id, encoder.recipe)
    return Piece(row.id, row.text, row.token_ids, row.access, known[0].key if known else "")


def _spec(index: Index) -> WorkerSpec:
    known, attached = index.catalog.setting("rag", {}), read_attachment(index.path)
    return WorkerSpec(
        version=version(DISTRIBUTION),
        path=str(index.path.absolute()),
        url=None if attached is None else attached.url,
        secret=bind_secret(index.catalog, index.path),
        fingerprint=index.catalog.setting("fingerprint"),
        codec=index.catalog.setting(CODEC, RAW),
        model=known.get("name", index.reader.name),
        dtype=known.get("dtype", "auto"),
        adapter=known.get("adapter"),
        device=None,
        reader=index.reader.fingerprint,
        prefix_ids=index.prefix_segment.token_ids,
        prefix_key=index.prefix_key,
    )


def _row(status: Status, encoder: Encoder) -> EncodingRow:
    now = time.time()
    return EncodingRow(status.chunk, encoder.recipe, status.key, status.left, status.nbytes, status.kind, now, now)


def _enter(index: Index, rows: list[EncodingRow]) -> Iterator[str]:
    index.enter(rows)
    yield from [row.chunk for row in rows]
    rows.clear()
