"""Four short documents in an index, encoded as asked: the stage of most engine tests."""

from pathlib import Path

from ragcache.encode import PromptEncoder
from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.methods import METHODS
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader

TEXTS = (
    "The bridge over the river was built in 1931 by two brothers who never agreed on its colour.",
    "It is painted green.",
    "Every spring the harbour master counts the boats twice, once for himself and once for the record.",
    "Nobody remembers why.",
)
QUESTION = "What colour is the bridge?"


def make(tmp_path: Path, reader: Reader, *recipes: str) -> tuple[Engine, list[Chunk]]:
    """An engine over the texts, each a document of one chunk, encoded for some methods.

    What is harvested comes from a prompt of all four in order.
    """
    index = Index(tmp_path / "index", reader)
    for n, text in enumerate(TEXTS):
        index.put(f"doc{n}", text, [(text, 0, len(text))], {})
    names = [row.id for row in index.catalog.all_chunks()]

    def others(chunk: str, count: int) -> list[str]:
        return [name for name in names if name != chunk][:count]

    for name in recipes:
        encoder = METHODS[name].encode
        assert encoder is not None
        list(index.encode(encoder, neighbours=others))
    engine, chunks = Engine(reader, index), sorted(index.chunks(names), key=lambda chunk: chunk.source)
    for name in recipes:
        if isinstance(METHODS[name].encode, PromptEncoder):
            engine.answer(QUESTION, chunks, method=name, sampling=Sampling(max_new_tokens=1))
    return engine, chunks
