"""An OpenAI-compatible server over an index: chunks that stand in a prompt come from the cache, in any order.

>>> from openai_ragcache import ServerSettings, Tenants, create_app
>>> from ragcache import RagCache
>>> rag = RagCache.open("./index", model="Qwen/Qwen2.5-7B-Instruct")  # doctest: +SKIP
>>> app = create_app(Tenants.of_one(rag), ServerSettings())  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ragcache.retrieve.needs import needs

with needs("serve"):
    import fastapi  # noqa: F401
    import prometheus_client  # noqa: F401
    import python_multipart  # noqa: F401
    import uvicorn  # noqa: F401

if TYPE_CHECKING:
    from openai_ragcache.app import create_app
    from openai_ragcache.running import run
    from openai_ragcache.settings import ServerSettings
    from openai_ragcache.tenants import Tenants

# Loaded on first use, so that what is wrong with an option is said before torch is there.
_HOMES = {"ServerSettings": "settings", "Tenants": "tenants", "create_app": "app", "run": "running"}

__all__ = ["ServerSettings", "Tenants", "create_app", "run"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'openai_ragcache' has no attribute {name!r}")
    return getattr(import_module(f"openai_ragcache.{_HOMES[name]}"), name)
