"""A few pages of the demo corpus in chunks, questions about them, and the packaged embedder, for both frameworks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from ragcache import RagCache
from ragcache.bundled import corpus_path, questions
from ragcache.retrieve import Embedder

PAGES = 12
EMBEDDER = Embedder()


@dataclass(frozen=True)
class Piece:
    """A paragraph, as a splitter gives it."""

    text: str
    source: str
    start: int


@cache
def pieces() -> tuple[Piece, ...]:
    """The paragraphs of the pages that the questions are about."""
    found = []
    for source in dict.fromkeys(asked.sources[0] for asked in _one_hop()):
        text = (corpus_path() / source).read_text()
        paragraphs = [paragraph.strip() for paragraph in text.split("\n\n") if paragraph.strip()]
        found += [Piece(paragraph, source, text.index(paragraph)) for paragraph in paragraphs]
    return tuple(found)


def asked() -> list[str]:
    """One question for each page."""
    return [question.question for question in _one_hop()]


def embedded(texts: Sequence[str]) -> list[list[float]]:
    """Their vectors."""
    return [list(map(float, row)) for row in EMBEDDER.embed(list(texts))]


def stored(rag: RagCache) -> set[str]:
    """The texts that an index has; its files are those that its chunks' encodings name, and no others."""
    index = rag.index
    named = {key for (key,) in index.catalog.read("SELECT DISTINCT key FROM encodings")}
    assert set(index.store.list()) - {index.prefix_key} == named
    return {text for _, text in index.catalog.texts()}


@cache
def _one_hop() -> tuple:
    by_page = {one.sources[0]: one for one in questions() if one.kind == "one-hop"}
    return tuple(by_page.values())[:PAGES]
