"""A LangChain retriever over what `ragcache ingest` made."""

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from ragcache.model.options import check_options


class RagCacheRetriever(BaseRetriever):
    """The most similar chunks of an index, its files' and those of vector stores alike.

    A document's `id` is the chunk's, so `documents=` finds its KV at once. Its metadata has `source` and `score`, and
    `page` (from 1) and `heading` where the file has them.
    """

    rag: Any
    """The `RagCache` to ask."""
    k: int | None = None
    """How many chunks; the index's own number by default."""

    def __init__(self, **fields: Any) -> None:
        check_options(type(self).__name__, fields, type(self).model_fields)
        super().__init__(**fields)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [
            Document(chunk.text, id=chunk.id, metadata={"source": chunk.source, "score": chunk.score, **chunk.place})
            for chunk in self.rag.retrieve(query, top_k=self.k)
        ]
