"""The packaged sentence embedder as LangChain's `Embeddings`: nothing is downloaded."""

from langchain_core.embeddings import Embeddings

from ragcache.retrieve import Embedder


class MiniLM(Embeddings):
    """all-MiniLM-L6-v2, from the package of `ragcache[offline]`."""

    def __init__(self) -> None:
        self._embedder = Embedder()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts that are searched."""
        return [[float(value) for value in row] for row in self._embedder.embed(texts)]

    def embed_query(self, text: str) -> list[float]:
        """Embed a text that they are searched for."""
        return self.embed_documents([text])[0]


def main(text: str = "Who founded Grefi Partners?") -> list[float]:
    """Embed one text."""
    return MiniLM().embed_query(text)


if __name__ == "__main__":
    print(len(main()), "numbers")
