"""ragcache: prefill each RAG chunk once, keep its KV cache beside its embedding, answer several times sooner.

>>> from ragcache import RagCache
>>> rag = RagCache.open("./index", model="Qwen/Qwen2.5-7B-Instruct")  # doctest: +SKIP
>>> rag.ingest(["handbook/", "notes.md"])  # doctest: +SKIP
>>> answer = rag.ask("Who leads the Tide project?")  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragcache.engine.answer import Answer
    from ragcache.engine.chat import Message
    from ragcache.engine.engine import Engine
    from ragcache.engine.stream import Stream
    from ragcache.errors import RagCacheError
    from ragcache.index.chunks import Chunk
    from ragcache.index.index import Index
    from ragcache.method import Method
    from ragcache.methods import METHODS
    from ragcache.model.decode import Sampling
    from ragcache.model.reader import Reader
    from ragcache.rag import RagCache
    from ragcache.report import CacheReport, IngestReport

# Loaded on first use, so that `ragcache --help` does not wait for torch.
_HOMES = {
    "METHODS": "methods",
    "Answer": "engine.answer",
    "CacheReport": "report",
    "Chunk": "index.chunks",
    "Engine": "engine.engine",
    "Index": "index.index",
    "IngestReport": "report",
    "Message": "engine.chat",
    "Method": "method",
    "RagCache": "rag",
    "RagCacheError": "errors",
    "Reader": "model.reader",
    "Sampling": "model.decode",
    "Stream": "engine.stream",
}

__all__ = [
    "METHODS",
    "Answer",
    "CacheReport",
    "Chunk",
    "Engine",
    "Index",
    "IngestReport",
    "Message",
    "Method",
    "RagCache",
    "RagCacheError",
    "Reader",
    "Sampling",
    "Stream",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ragcache' has no attribute {name!r}")
    return getattr(import_module(f"ragcache.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
