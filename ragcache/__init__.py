"""ragcache: prefill each RAG chunk once, keep its KV cache beside its embedding, answer several times sooner.

>>> from ragcache import RagCache
>>> rag = RagCache.open("./index", model="Qwen/Qwen2.5-7B-Instruct")  # doctest: +SKIP
>>> rag.ingest(["handbook/", "notes.md"])  # doctest: +SKIP
>>> answer = rag.ask("Who leads the Tide project?")  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragcache.engine.engine import Engine
    from ragcache.engine.parsed_prompt import Message
    from ragcache.errors import RagCacheError
    from ragcache.index.index import Index
    from ragcache.methods import METHODS, Method
    from ragcache.model.decode import Sampling
    from ragcache.model.reader import Reader
    from ragcache.rag import RagCache
    from ragcache.report import Answer, CacheReport, IngestReport

# Loaded on first use, so that `ragcache --help` does not wait for torch.
_HOMES = {
    "METHODS": "methods",
    "Answer": "report",
    "CacheReport": "report",
    "Engine": "engine",
    "Index": "index",
    "IngestReport": "report",
    "Message": "written",
    "Method": "methods",
    "RagCache": "rag",
    "RagCacheError": "errors",
    "Reader": "model.reader",
    "Sampling": "model.decode",
}

__all__ = [
    "METHODS",
    "Answer",
    "CacheReport",
    "Engine",
    "Index",
    "IngestReport",
    "Message",
    "Method",
    "RagCache",
    "RagCacheError",
    "Reader",
    "Sampling",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ragcache' has no attribute {name!r}")
    return getattr(import_module(f"ragcache.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
