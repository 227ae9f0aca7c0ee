"""KV that an index lacks, made for one question and thrown away with it."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ragcache.encode import Alone, Encoder, Sink
from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.method import Method
from ragcache.store import LocalStore

_PREFIX = ("prefix_ids", "prefix_text")  # settings: the system prefix, as it was when the index was made

#: By recipe: an engine over another index, and the same chunks there.
Lent = Mapping[str, tuple[Engine, Sequence[Chunk]]]


def lendable(row: Method) -> bool:
    """Whether what a row loads can be made of a question's chunks alone."""
    return isinstance(row.encode, Alone | Sink)


@contextmanager
def lend(index: Index, chunks: Sequence[Chunk], encoders: Sequence[Encoder]) -> Iterator[Lent]:
    """Some of an index's chunks in a temporary one, with KV of encodings that need to know no other chunk.

    Parameters
    ----------
    index : Index
        Its reader makes the KV; prompts begin with its system prefix.
    chunks : sequence of Chunk
        In the order of the prompt.
    encoders : sequence of Encoder
        What to make; without any there is nothing to lend.
    """
    if not encoders:
        yield {}
        return
    device = index.reader.device
    with (
        tempfile.TemporaryDirectory(prefix="ragcache-bench-") as folder,
        Index(folder, index.reader, store=LocalStore.near(device, Path(folder) / "kv", durable=False)) as other,
    ):
        for name in _PREFIX:
            other.catalog.set_setting(name, index.catalog.setting(name))
        other.prefix()  # made here, so that a warm-up finds it
        for number, chunk in enumerate(chunks):
            other.put(f"{number:06}", "", [(chunk.text, 0, len(chunk.text))], {})
        for encoder in encoders:
            for _ in other.encode(encoder):
                pass
        same = [chunk for number in range(len(chunks)) for chunk in _chunks_of(other, f"{number:06}")]
        yield {encoder.recipe: (Engine(index.reader, other), same) for encoder in encoders}


def _chunks_of(index: Index, source: str) -> list[Chunk]:
    document = index.catalog.document_by_source(source)
    return index.chunks([row.id for row in index.catalog.chunks_of(document.id)]) if document else []
