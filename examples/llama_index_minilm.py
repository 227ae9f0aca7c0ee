"""The packaged sentence embedder as LlamaIndex's `BaseEmbedding`: nothing is downloaded."""

import asyncio

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from ragcache.retrieve import Embedder


class MiniLM(BaseEmbedding):
    """all-MiniLM-L6-v2, from the package of `ragcache[offline]`."""

    _embedder: Embedder = PrivateAttr(default_factory=Embedder)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [[float(value) for value in row] for row in self._embedder.embed(texts)]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, query)


def main(text: str = "Who founded Grefi Partners?") -> list[float]:
    """Embed one text."""
    return MiniLM().get_query_embedding(text)


if __name__ == "__main__":
    print(len(main()), "numbers")
