"""Which models there are, and whether the server is well."""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response

from openai_ragcache.api_errors import not_found
from openai_ragcache.server import Server, ServerOf, TenantOf

router = APIRouter()


@router.get("/health")
async def tell_health() -> dict[str, str]:
    """Say that the process answers."""
    return {"status": "ok"}


@router.get("/ready")
async def tell_readiness(server: ServerOf) -> Response:
    """Say whether requests are taken: 503 while the server stops, or if its engine has died."""
    if server.queue.is_open:
        return JSONResponse({"status": "ready", "waiting": server.queue.waiting})
    return JSONResponse({"status": "stopping"}, 503)


@router.get("/metrics")
async def tell_metrics(server: ServerOf) -> Response:
    """Counts for Prometheus."""
    return Response(server.metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/v1/models")
async def list_models(server: ServerOf, tenant: TenantOf) -> dict[str, Any]:
    """The model, and the index's embedder."""
    return {"object": "list", "data": [_model(server, name) for name in (server.model, tenant.rag.embedder.name)]}


@router.get("/v1/models/{name:path}")
async def show_model(name: str, server: ServerOf, tenant: TenantOf) -> dict[str, Any]:
    """One of them."""
    if name not in (server.model, tenant.rag.embedder.name):
        raise not_found("model", name, param="model", code="model_not_found")
    return _model(server, name)


def _model(server: Server, name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": server.began, "owned_by": "ragcache"}
