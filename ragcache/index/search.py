"""Search: the chunks of an index that speak to a question, by meaning, by words, and by a second look."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest

import numpy as np
from numpy.typing import NDArray

from ragcache.errors import InvalidArgument
from ragcache.index.chunks import Chunk
from ragcache.index.copies import mark_copies
from ragcache.index.index import Index
from ragcache.index.settings import unfound
from ragcache.retrieve import Reranker, Retriever, Vectors, fuse_ranks
from ragcache.retrieve.given import AnyEmbedder
from ragcache.retrieve.places import sentences_of

_DEPTH, _LEAST = 4, 20  # so many times the chunks that are wanted are ranked, and at least so many
_POOL, _LEADS = 12, 3  # chunks whose sentences are looked at, and sentences that are searched with


@dataclass
class Search:
    """Finds an index's chunks.

    Attributes
    ----------
    index : Index
        Has them.
    vectors : Vectors
        Their embeddings.
    embedder : AnyEmbedder
        Embeds the question.
    reranker : Reranker or None
        Puts what was found in its final order.
    """

    index: Index
    vectors: Vectors
    embedder: AnyEmbedder
    reranker: Reranker | None = None
    _whole: int | None = field(default=None, init=False)  # the edition of which all chunks had vectors

    def notes(self) -> list[str]:
        """What to say of a search: that not all chunks can be found, if so."""
        catalog = self.index.catalog
        if self._whole == (edition := catalog.edition()):
            return []
        [(chunks,)] = catalog.read("SELECT COUNT(*) FROM chunks")
        said = unfound(self.index.path, chunks - self.vectors.count(), chunks)
        self._whole = None if said else edition
        return said

    def find(
        self, question: str, count: int, retriever: Retriever, sources: Collection[str] | None = None
    ) -> list[Chunk]:
        """The best chunks for a question, best first, each text once, with its cosine similarity where known.

        Where `sources` are given, they are of those documents only.
        """
        search = self._search_again if retriever == "iterative" else self._search
        return mark_copies(self.index, self._rerank(question, search(question, count, retriever, sources))[:count])

    def _search(self, question: str, count: int, retriever: Retriever, sources: Collection[str] | None) -> list[Chunk]:
        """At least `count` chunks, if there are as many.

        Files and vector stores may have brought the same texts, so more are looked for until there are enough.
        """
        [embedding] = self.embedder.embed([question])
        deep = retriever != "dense" or self.reranker is not None
        within = None if sources is None else self.index.catalog.chunk_ids(sources)
        total = self.vectors.count() if within is None else len(within)
        wanted = min(max(_DEPTH * count, _LEAST) if deep else count, max(total, 1))
        while True:
            similar = dict(self._nearest(embedding, wanted, within))
            names = list(similar)
            if retriever != "dense":
                worded = self.index.catalog.search_words(question, wanted, within)
                # What has no vector has no KV yet, or belongs to a program's own store.
                similar |= self.vectors.similarities(embedding, [name for name in worded if name not in similar])
                names = fuse_ranks(names, [name for name in worded if name in similar])
            distinct: dict[str, Chunk] = {}
            for chunk in self.index.chunks(names):
                distinct.setdefault(chunk.text.strip(), replace(chunk, score=similar[chunk.id]))
            if len(distinct) >= count or wanted >= total:
                return list(distinct.values())
            wanted *= 2

    def _nearest(
        self, embedding: NDArray[np.float32], count: int, within: Sequence[str] | None
    ) -> list[tuple[str, float]]:
        """The ids of the most similar chunks, of all or of some, with their similarities, best first."""
        if within is None:
            return self.vectors.query(embedding, count)
        similar = self.vectors.similarities(embedding, within)
        return sorted(similar.items(), key=lambda hit: (-hit[1], hit[0]))[:count]

    def _search_again(
        self, question: str, count: int, retriever: Retriever, sources: Collection[str] | None
    ) -> list[Chunk]:
        """Three quarters of the chunks for the question, the others for it with each of the best sentences found.

        The second fact of a question may share no word with it: who makes a thing is asked in order to ask about the
        maker. Iterative retrieval as in Shao et al., "Enhancing Retrieval-Augmented Large Language Models with
        Iterative Retrieval-Generation Synergy" (2305.15294), with sentences of the chunks in place of an answer. A
        chunk is also ranked by its best sentence, which its vector may tell little of where others stand beside it.
        """
        first = self._search(question, max(count, _POOL), retriever, sources)
        said = [(chunk, one) for chunk in first[:_POOL] for one in sentences_of(chunk.body)]
        if not said:
            return first
        similar = self._compare(question, [text for chunk, one in said for text in (one, _under_title(chunk, one))])
        ranked = _rank_by_sentence(first, said, similar)
        leads = sorted({one: similar[one] for _, one in said}, key=lambda one: -similar[one])[:_LEADS]
        again = [self._search(f"{question} {one}", count, retriever, sources) for one in leads]
        found = {chunk.text.strip(): chunk for chunk in ranked[: max(1, count * 3 // 4)]}
        scores = {chunk.id: chunk.score for chunk in first}  # of the question alone
        for chunk in (*filter(None, chain.from_iterable(zip_longest(*again))), *ranked):
            found.setdefault(chunk.text.strip(), replace(chunk, score=scores.get(chunk.id)))
        return list(found.values())

    def _compare(self, question: str, texts: Sequence[str]) -> dict[str, float]:
        """The cosine similarity of each text to a question."""
        once = list(dict.fromkeys(texts))
        [asked, *meanings] = self.embedder.embed([question, *once])
        return {text: float(asked @ meaning) for text, meaning in zip(once, meanings, strict=True)}

    def _rerank(self, question: str, chunks: Sequence[Chunk]) -> list[Chunk]:
        if self.reranker is None or not chunks:
            return list(chunks)
        scores = self.reranker.score(question, [chunk.text for chunk in chunks])
        if len(scores) != len(chunks):
            raise InvalidArgument(
                f"the reranker {type(self.reranker).__name__} gave {len(scores)} scores for {len(chunks)} chunks; it "
                "must give one for each"
            )
        order = sorted(range(len(chunks)), key=lambda place: -scores[place])
        return [chunks[place] for place in order]


def _rank_by_sentence(
    chunks: Sequence[Chunk], said: Sequence[tuple[Chunk, str]], similar: Mapping[str, float]
) -> list[Chunk]:
    """Chunks as they are ranked and as their best sentences are, the two rankings fused."""
    best: dict[str, float] = {}
    for chunk, one in said:
        best[chunk.id] = max(similar[one], similar[_under_title(chunk, one)], best.get(chunk.id, -1.0))
    known = {chunk.id: chunk for chunk in chunks}
    return [known[name] for name in fuse_ranks(list(known), sorted(best, key=lambda name: -best[name]))]


def _under_title(chunk: Chunk, sentence: str) -> str:
    return chunk.text[: chunk.title] + sentence
