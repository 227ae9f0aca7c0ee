"""ragcache for LlamaIndex: a vector store that keeps each node's KV cache beside it, and a model that answers from it.

>>> from llama_index.vector_stores.chroma import ChromaVectorStore
>>> from llama_index_ragcache import RagCacheLLM, RagCacheSynthesizer, RagCacheVectorStore
>>> from ragcache import RagCache
>>> rag = RagCache.open("./index", model="Qwen/Qwen2.5-7B-Instruct")  # doctest: +SKIP
>>> store = RagCacheVectorStore(ChromaVectorStore(collection), rag)  # doctest: +SKIP
>>> llm = RagCacheLLM(rag)  # doctest: +SKIP
"""

from ragcache.retrieve.needs import needs

with needs("llama-index"):
    from llama_index_ragcache.llm import RagCacheLLM
    from llama_index_ragcache.retriever import RagCacheRetriever
    from llama_index_ragcache.synthesizer import RagCacheSynthesizer
    from llama_index_ragcache.titles import AddTitles
    from llama_index_ragcache.vector_store import RagCacheVectorStore

__all__ = ["AddTitles", "RagCacheLLM", "RagCacheRetriever", "RagCacheSynthesizer", "RagCacheVectorStore"]
