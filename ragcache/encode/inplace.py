"""Exact prefix caching: a chunk's KV serves only behind what it was made behind."""

from dataclasses import dataclass
from typing import ClassVar

from ragcache.encode.prefixed import Prefixed


@dataclass(frozen=True)
class InPlace(Prefixed):
    """What vLLM's and SGLang's prefix caches do with chunks: the prefix and the first chunk are exact, the rest fresh.

    It shares its stored KV with `Prefixed`, whose left context is the same; the difference is where it may be used.
    """

    exact_only: ClassVar[bool] = True
