"""Behind which other chunks a chunk is computed: the choices that FusionRAG's ablation compares."""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Literal

import xxhash

from ragcache.bundled import corpus_path
from ragcache.evaluate.tasks import Example
from ragcache.index import Neighbours
from ragcache.retrieve import Embedder, neighbours

Kind = Literal["similar", "random", "document", "itself"]
KINDS: tuple[Kind, ...] = ("similar", "random", "document", "itself")
_Pick = Callable[[str, int], Sequence[str]]


class Pool:
    """Every chunk of a task's questions, by text, and who may keep a chunk company.

    Parameters
    ----------
    documents : sequence of sequence of str
        The chunks of each document in reading order; a text that comes again belongs to the first.
    embedder : Embedder
        For the similar ones.
    """

    def __init__(self, documents: Sequence[Sequence[str]], embedder: Embedder) -> None:
        home: dict[str, int] = {}
        for number, document in enumerate(documents):
            for text in document:
                home.setdefault(text, number)
        self.documents = [[t for t in dict.fromkeys(d) if home[t] == i] for i, d in enumerate(documents)]
        self.texts = [text for document in self.documents for text in document]
        self.digest = xxhash.xxh3_128_hexdigest("\0".join("\1".join(d) for d in self.documents).encode())
        self._home = home
        self._embedder = embedder
        self._similar = cache(self._table)

    def company(self, kind: Kind, ids: Mapping[str, str]) -> Neighbours:
        """Choose as `Index.encode` asks, by the ids of the texts.

        - "similar": the most similar other chunks of the pool, most similar first (the paper's choice)
        - "random": other chunks of the pool, the same ones for the same chunk
        - "document": those in front of it in its own document, in reading order; fewer near its beginning
        - "itself": the chunk, over and over
        """
        texts = {name: text for text, name in ids.items()}
        pick = self._picks()[kind]
        return lambda chunk, count: [ids[text] for text in pick(texts[chunk], count)]

    def _picks(self) -> dict[Kind, _Pick]:
        return {
            "similar": lambda text, count: self._similar(count)[text],
            "random": self._random,
            "document": self._before,
            "itself": lambda text, count: [text] * count,
        }

    def _table(self, count: int) -> dict[str, list[str]]:
        found = neighbours(self._embedder.embed(self.texts), self.texts, self.texts, count)
        return {text: [self.texts[i] for i in near] for text, near in zip(self.texts, found, strict=True)}

    def _random(self, text: str, count: int) -> list[str]:
        others = [other for other in self.texts if other != text]
        return random.Random(text).sample(others, min(count, len(others)))

    def _before(self, text: str, count: int) -> list[str]:
        document = self.documents[self._home[text]]
        place = document.index(text)
        return document[max(0, place - count) : place]


def documents(examples: Sequence[Example]) -> list[list[str]]:
    """The chunks of each document in reading order: a page of the demo corpus, or else one question's chunks."""
    if not all(example.task.startswith("corpus-") for example in examples):
        return [list(example.chunks) for example in examples]
    texts = list(dict.fromkeys(text for example in examples for text in example.chunks))
    pages = [file.read_text(encoding="utf-8") for file in sorted(corpus_path().rglob("*.md"))]
    found = [sorted((t for t in texts if t in page), key=page.index) for page in pages]
    return [page for page in found if page]
