"""Behind which other chunks a chunk is computed: the choices that FusionRAG's ablation compares (2601.12904)."""

import random
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ragcache.bundled import corpus_path
from ragcache.index.index import Neighbours
from ragcache.index.neighbours import find_neighbours
from ragcache.retrieve import Embedder
from ragcache_bench.tasks import Example

Kind = Literal["similar", "random", "document", "itself"]
KINDS: tuple[Kind, ...] = ("similar", "random", "document", "itself")


def choose_neighbours(
    kind: Kind, ids: Mapping[str, str], documents: Sequence[Sequence[str]], embedder: Embedder
) -> Neighbours:
    """Behind which chunks a chunk is computed, as `Index.encode` asks; done when it first does.

    Parameters
    ----------
    kind : {"similar", "random", "document", "itself"}
        The most similar other chunks, most similar first (the paper's choice); other chunks, the same ones for the same
        chunk; those in front of it in its own document, in reading order, fewer near its beginning; the chunk itself,
        over and over.
    ids : mapping of str to str
        Ids by text of the chunks that may stand in front of each other; any other chunk has none.
    documents : sequence of sequence of str
        The chunks of each document in reading order; a text that comes again belongs to the first.
    embedder : Embedder
        For the similar ones.
    """
    texts, keys = list(ids), list(ids.values())

    @cache
    def vectors() -> NDArray[np.float32]:
        return embedder.embed(texts)

    @cache
    def table(count: int) -> dict[str, list[str]]:
        found = find_neighbours(vectors(), keys, texts, count)
        return {key: [keys[i] for i in near] for key, near in zip(keys, found, strict=True)}

    def drawn(chunk: str, count: int) -> list[str]:
        others = [key for key in keys if key != chunk]
        return random.Random(texts[keys.index(chunk)]).sample(others, min(count, len(others)))

    @cache
    def before() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for document in documents:
            own = [ids[text] for text in dict.fromkeys(document) if ids[text] not in found]
            found |= {chunk: own[:place] for place, chunk in enumerate(own)}
        return found

    known = set(keys)
    choices: dict[Kind, Neighbours] = {
        "similar": lambda chunk, count: table(count)[chunk],
        "random": drawn,
        "document": lambda chunk, count: before()[chunk][-count:],
        "itself": lambda chunk, count: [chunk] * count,
    }
    chosen = choices[kind]
    return lambda chunk, count: chosen(chunk, count) if chunk in known else ()


def documents(examples: Sequence[Example]) -> list[list[str]]:
    """The chunks of each document in reading order: a page of the demo corpus, or else one question's chunks."""
    if not all(example.task.startswith("corpus-") for example in examples):
        return [list(example.chunks) for example in examples]
    texts = list(dict.fromkeys(text for example in examples for text in example.chunks))
    pages = [file.read_text(encoding="utf-8") for file in sorted(corpus_path().rglob("*.md"))]
    found = [sorted((t for t in texts if t in page), key=page.index) for page in pages]
    return [page for page in found if page]
