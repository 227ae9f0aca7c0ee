"""Section binding: only a section's first chunk names its subject, so a chunk computed alone cannot know whose it is.

The twin states the same facts in full in the same places: what a method loses on `sections` and not on the twin is what
chunk-to-chunk attention would have given. Every chunk has other sentences before its fact, so that recomputing a
chunk's first tokens mends nothing.
"""

import random
from dataclasses import dataclass

from ragcache_bench.questions.idle import idle_sentence
from ragcache_bench.questions.names import Names
from ragcache_bench.questions.relations import BY_SUBJECT, Relation
from ragcache_bench.tasks.example import Example, Twinned, paged

_KINDS = ("project", "product", "site", "policy", "company")
_WORDS = 26  # more than 30 of the bundled reader's tokens
_UNSEEN = 0.3


@dataclass(frozen=True)
class Sections(Twinned):
    """Sections about subjects of one kind, all with the same attributes, and self-contained chunks in between.

    Attributes
    ----------
    subjects : int
        Sections; guessing among them is right in one of `subjects` cases.
    attributes : int
        Facts per section, one chunk each (products, sites and policies may have fewer).
    between : int
        Self-contained chunks about people, interleaved.
    fill : float
        Share of facts with an idle chunk before them, which widens the gap to the header.
    twin : bool
        State every fact in full.
    header : bool
        Without it the sections' first chunks are on the pages but not in the prompt, as if they had not been retrieved.
        The pages, with it or without, are the sections: a header and all chunks up to the next one.
    misled : bool
        On its page each section stands behind the next section's header, as in a file whose parts were put together in
        another order than they are read. The prompt is as ever: only encoders that look at documents are misled.
    """

    subjects: int = 3
    attributes: int = 2
    between: int = 2
    fill: float = 0.25
    twin: bool = False
    header: bool = True
    misled: bool = False

    @property
    def name(self) -> str:
        """The task's."""
        return "sections" + "-bare" * (not self.header) + "-misled" * self.misled + "-twin" * self.twin

    def examples(self, n: int, seed: int = 0) -> list[Example]:
        """Return `n` examples; number i is the same with and without `twin`, but for the facts' wording."""
        return [self._example(random.Random(f"sections {seed} {i}"), f"{seed}-{i}") for i in range(n)]

    def _example(self, rng: random.Random, number: str) -> Example:
        names, kind = Names(rng, held=True), rng.choice(_KINDS)
        relations = rng.sample(BY_SUBJECT[kind], self.attributes)
        asked, wanted = rng.randrange(self.subjects), rng.choice(relations)
        streams: list[list[str]] = []
        subjects: list[str] = []
        answer, subject, place = "", "", 0
        for i in range(self.subjects):
            name = names.draw(kind)
            subjects.append(name)
            stream = [_padded(rng, [f"This page is about {name}."])]
            for relation in rng.sample(relations, len(relations)):
                value, idle = names.draw(relation.value), rng.random() < self.fill
                if i == asked and relation is wanted:
                    answer, subject, place = value, name, len(stream) + idle
                if idle:
                    stream.append(_padded(rng, [idle_sentence(rng)]))
                stream.append(self._told(rng, relation, name, value))
            streams.append(stream)
        question = rng.choice(wanted.unseen if rng.random() < _UNSEEN else wanted.asks).format(s=subject)
        chunks, where = self._ordered(rng, names, streams)
        gold = (where[asked, place],) if self.twin else (where[asked, 0], where[asked, place])
        gap = None if self.twin else gold[-1] - gold[0]
        starts = [where[i, 0] for i in range(self.subjects)]
        titles = _titles(len(chunks), {where[i, 0]: name for i, name in enumerate(subjects)})
        pages = paged(chunks, starts)
        if self.misled:
            pages = tuple((after[0], *page[1:]) for page, after in zip(pages, (*pages[1:], *pages[:1]), strict=True))
            heads = sorted(starts)  # a title comes from the document, and misleads with it
            after = dict(zip(heads, (*heads[1:], heads[0]), strict=True))
            behind = _titles(len(chunks), {start: titles[after[start]] for start in heads})
            titles = tuple(
                own if at in starts else other for at, (own, other) in enumerate(zip(titles, behind, strict=True))
            )
        if not self.header:
            kept = [at for at in range(len(chunks)) if at not in starts]
            chunks, titles = [chunks[at] for at in kept], tuple(titles[at] for at in kept)
            gold, gap = (gold[-1] - sum(start < gold[-1] for start in starts),), None
        return Example(f"{self.name}-{number}", self.name, tuple(chunks), question, (answer,), gold, gap, pages, titles)

    def _told(self, rng: random.Random, relation: Relation, name: str, value: str) -> str:
        full, short = rng.choice(relation.says), rng.choice(relation.it)
        said = (full if self.twin else short).format(s=name, o=value)
        return _padded(rng, [idle_sentence(rng), idle_sentence(rng), said])

    def _ordered(
        self, rng: random.Random, names: Names, streams: list[list[str]]
    ) -> tuple[list[str], dict[tuple[int, int], int]]:
        """One section after the other in random order, the self-contained chunks anywhere."""
        order = [(i, j) for i in rng.sample(range(len(streams)), len(streams)) for j in range(len(streams[i]))]
        texts = {(i, j): streams[i][j] for i, j in order}
        for extra in range(self.between):
            relation = rng.choice(BY_SUBJECT["person"])
            said = rng.choice(relation.says).format(s=names.draw("person"), o=names.draw(relation.value))
            texts[-1, extra] = _padded(rng, [idle_sentence(rng), said])
            order.insert(rng.randint(0, len(order)), (-1, extra))
        return [texts[key] for key in order], {key: place for place, key in enumerate(order)}


def _titles(count: int, starts: dict[int, str]) -> tuple[str, ...]:
    """A title for each of so many chunks: that of the section they stand in; none before the first."""
    return tuple(
        next((starts[start] for start in sorted(starts, reverse=True) if start <= at), "") for at in range(count)
    )


def _padded(rng: random.Random, sentences: list[str]) -> str:
    # counted without the fact's own words, so that both twins get the same sentences
    sentences += [idle_sentence(rng), idle_sentence(rng)]
    while len(" ".join(sentences).split()) < _WORDS:
        sentences.append("More details will follow.")
    return " ".join(sentences)
