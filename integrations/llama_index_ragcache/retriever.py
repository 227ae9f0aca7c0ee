"""A LlamaIndex retriever over what `ragcache ingest` made."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

if TYPE_CHECKING:
    from ragcache import RagCache
    from ragcache.index.chunks import Chunk


class RagCacheRetriever(BaseRetriever):
    """The most similar chunks of an index, its files' and those of vector stores alike.

    Parameters
    ----------
    rag : RagCache
        The index.
    similarity_top_k : int, optional
        How many chunks; the index's own number by default.
    **kwargs
        As in LlamaIndex.
    """

    def __init__(self, rag: RagCache, similarity_top_k: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._rag = rag
        self._top_k = similarity_top_k

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        chunks = self._rag.retrieve(query_bundle.query_str, top_k=self._top_k)
        return [NodeWithScore(node=_node(chunk), score=chunk.score) for chunk in chunks]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def _node(chunk: Chunk) -> TextNode:
    metadata = {"source": chunk.source, **chunk.place}
    return TextNode(
        id_=chunk.id,
        text=chunk.text,
        metadata=metadata,
        excluded_llm_metadata_keys=list(metadata),
        excluded_embed_metadata_keys=list(metadata),
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=chunk.source)},
    )
