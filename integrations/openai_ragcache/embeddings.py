"""`POST /v1/embeddings`: the vectors that the index's own embedder makes."""

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from numpy.typing import NDArray

from openai_ragcache.answering import results_of
from openai_ragcache.api_errors import not_found
from openai_ragcache.bodies import EmbeddingBody
from openai_ragcache.engine_queue import Job
from openai_ragcache.server import ServerOf, TenantOf
from ragcache.retrieve.given import AnyEmbedder

router = APIRouter()
_BATCH = 64  # texts between two looks at whether anybody waits


@router.post("/v1/embeddings")
async def embed(body: EmbeddingBody, request: Request, server: ServerOf, tenant: TenantOf) -> Response:
    """Embed texts; each has a vector of length 1. Chunks among them are prefilled later, where the server does so."""
    embedder = tenant.rag.embedder
    if body.model != embedder.name:
        raise not_found("embedding model", body.model, param="model", code="model_not_found")
    texts = [body.input] if isinstance(body.input, str) else body.input
    job = server.queue.submit(partial(_vectors, embedder, texts))
    if server.settings.ingest_embedded_bytes:
        server.embedded(tenant).take(texts)
    batches = await results_of(request, job)
    shown: Callable[[Any], Any] = _as_base64 if body.encoding_format == "base64" else lambda vector: vector.tolist()
    vectors = (vector for batch in batches for vector in batch.vectors)
    rows = [{"object": "embedding", "index": i, "embedding": shown(vector)} for i, vector in enumerate(vectors)]
    tokens = sum(batch.tokens for batch in batches)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return JSONResponse({"object": "list", "data": rows, "model": body.model, "usage": usage})


@dataclass(frozen=True, eq=False)
class _Batch:
    """Vectors, and how many tokens they are of."""

    vectors: NDArray[np.float32]
    tokens: int


def _vectors(embedder: AnyEmbedder, texts: Sequence[str], job: Job[_Batch]) -> Iterator[_Batch]:
    for first in range(0, len(texts), _BATCH):
        some = texts[first : first + _BATCH]
        yield _Batch(embedder.embed(some), sum(map(embedder.count, some)))


def _as_base64(vector: Any) -> str:
    """A vector's float32, little-endian, as the official client asks for it."""
    return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
