"""Search: the chunks of an index that speak to a question, by meaning, by words, and by a second look."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragcache.errors import InvalidArgument
from ragcache.index.chunks import Chunk
from ragcache.index.copies import mark_copies
from ragcache.index.index import Index
from ragcache.retrieve import Reranker, Retriever, Vectors, fuse_ranks
from ragcache.retrieve.given import AnyEmbedder

_DEPTH, _LEAST = 4, 20  # so many times the chunks that are wanted are ranked, and at least so many


@dataclass(frozen=True)
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

    def find(self, question: str, count: int, retriever: Retriever) -> list[Chunk]:
        """The best chunks for a question, best first, each text once, with their cosine similarity where it is known.

        Files and vector stores may have brought the same texts, so more are looked for until there are enough.
        """
        [embedding] = self.embedder.embed([question])
        deep = retriever == "hybrid" or self.reranker is not None
        wanted, total = max(_DEPTH * count, _LEAST) if deep else count, self.vectors.count()
        while True:
            similar = dict(self.vectors.query(embedding, wanted))
            names = list(similar)
            if retriever == "hybrid":
                names = fuse_ranks(names, self.index.catalog.search_words(question, wanted))
            distinct: dict[str, Chunk] = {}
            for chunk in self.index.chunks(names):
                distinct.setdefault(chunk.text.strip(), replace(chunk, score=similar.get(chunk.id)))
            if len(distinct) >= count or wanted >= total:
                return mark_copies(self.index, self._rerank(question, list(distinct.values()))[:count])
            wanted *= 2

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
