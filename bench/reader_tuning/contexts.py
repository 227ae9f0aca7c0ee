"""Contexts to read: a few passages in a prompt, and questions about them."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ragcache_bench.datasets.item import holds
from ragcache_bench.datasets.overlap import Overlap
from ragcache_bench.questions.families import draw
from ragcache_bench.questions.level import Level

from reader_tuning.passages import Material, Part, Passage

MOST = 6
"""Questions about one context, at most."""
_KINDS = {"xquad": 3.0, "nq-open": 4.0, "wiki": 1.0, "worlds": 2.0}
"""How often each source is drawn from; what is asked of `wiki` was found by rules, `worlds` are invented."""
_COUNTS = (1, 2, 3, 4, 5, 5, 5, 5, 6, 8)  # passages
_WORDS = 750  # of a context, at most
_TITLED = 0.3  # of the contexts
_ALIKE, _NEAREST = 0.5, 12  # share of contexts of passages that share words, and how many of the nearest to draw from
_WORLD = Level(mix=(1, 3), bindings=0.6, relations=(1, 2), forms=9, filler=0.4, alike=0.15, least=20, tokens=600)


@dataclass(frozen=True)
class Context:
    """Passages in the order of the prompt, and questions about them, each with the answers that are accepted."""

    passages: tuple[str, ...]
    asked: tuple[tuple[str, tuple[str, ...]], ...]


class Contexts:
    """Draws contexts to train on.

    Half of those of single passages have passages that share words, as what a retriever finds does: reading has to tell
    them apart.

    Parameters
    ----------
    material : Material
        What they are made of.
    worlds : bool
        Whether invented notes come in between.
    counts : sequence of int
        Numbers of passages to draw from.
    """

    def __init__(self, material: Material, worlds: bool = True, counts: Sequence[int] = _COUNTS) -> None:
        self._counts = counts
        self._articles, self._validation = material.training.articles, material.validation
        self._single = {"nq-open": material.training.single, "wiki": material.wiki}
        self._overlap = {name: Overlap([one.text for one in of]) for name, of in self._single.items()}
        self._kinds = {kind: weight for kind, weight in _KINDS.items() if worlds or kind != "worlds"}

    def draw(self, rng: random.Random) -> Context:
        """Return a context; it may be without questions."""
        kind = rng.choices(list(self._kinds), list(self._kinds.values()))[0]
        if kind == "worlds":
            return _world(rng)
        count, titled = rng.choice(self._counts), rng.random() < _TITLED
        if kind == "xquad":
            article = rng.choice(self._articles)
            chosen = rng.sample(article, min(count, len(article)))
        else:
            chosen = self._passages(rng, kind, count)
        return make_context(rng, chosen, titled=titled)

    def validation(self) -> dict[str, Iterable[Context]]:
        """Contexts that the curve is drawn from, by source."""
        part = self._validation
        parts = {"xquad": Part(articles=part.articles), "nq-open": Part(single=part.single)}
        return {name: validation_contexts(one) for name, one in parts.items()}

    def _passages(self, rng: random.Random, kind: str, count: int) -> list[Passage]:
        shelf = self._single[kind]
        if rng.random() >= _ALIKE:
            return rng.sample(shelf, min(count, len(shelf)))
        near = self._overlap[kind].nearest(rng.choice(shelf).text, _NEAREST)
        return [shelf[place] for place in rng.sample(near, min(count, len(near)))]


def make_context(rng: random.Random, chosen: Sequence[Passage], most: int = MOST, titled: bool = False) -> Context:
    """Passages in this order and questions about any of them, none of which another passage answers too."""
    texts: list[str] = []
    for passage in chosen:
        text = f"{passage.title}\n{passage.text}" if titled else passage.text
        if texts and sum(len(one.split()) for one in (*texts, text)) > _WORDS:
            break
        texts.append(text)
    asked = [
        one
        for number, passage in enumerate(chosen[: len(texts)])
        for one in passage.asked
        if not any(holds(text, one[1]) for other, text in enumerate(texts) if other != number)
    ]
    rng.shuffle(asked)
    return Context(tuple(texts), tuple(asked[:most]))


def shortest(answers: Sequence[str]) -> str:
    """The accepted answer that is to be said."""
    return min(answers, key=len)


def validation_contexts(part: Part, count: int = 5, seed: int = 0) -> Iterator[Context]:
    """Every question of a part once, `count` passages a context: of one article, or of any."""
    rng = random.Random(seed)
    single = rng.sample(part.single, len(part.single))
    groups = [article[i : i + count] for article in part.articles for i in range(0, len(article), count)]
    groups += [single[i : i + count] for i in range(0, len(single), count)]
    return (make_context(rng, group, most=sum(len(one.asked) for one in group)) for group in groups)


def _world(rng: random.Random) -> Context:
    """Invented notes, as the bundled reader is trained on."""
    while True:
        made = draw(rng, _WORLD)
        asked = [(one.text, (one.answer,)) for one in made.questions]
        if asked and sum(len(chunk.split()) for chunk in made.chunks) <= _WORDS:
            return Context(tuple(made.chunks), tuple(asked[:MOST]))
