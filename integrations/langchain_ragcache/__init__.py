"""ragcache for LangChain: a vector store that keeps each chunk's KV cache beside it, and models that answer from it.

>>> from langchain_chroma import Chroma
>>> from langchain_ragcache import ChatRagCache, RagCacheVectorStore
>>> from ragcache import RagCache
>>> rag = RagCache.open("./index", model="Qwen/Qwen2.5-7B-Instruct")  # doctest: +SKIP
>>> store = RagCacheVectorStore(Chroma(embedding_function=embeddings), rag)  # doctest: +SKIP
>>> model = ChatRagCache(rag)  # doctest: +SKIP
"""

from ragcache.retrieve.needs import needs

with needs("langchain"):
    from langchain_ragcache.chat_models import ChatRagCache
    from langchain_ragcache.llms import RagCacheLLM
    from langchain_ragcache.retrievers import RagCacheRetriever
    from langchain_ragcache.titles import AddTitles
    from langchain_ragcache.vectorstores import RagCacheVectorStore

__all__ = ["AddTitles", "ChatRagCache", "RagCacheLLM", "RagCacheRetriever", "RagCacheVectorStore"]
