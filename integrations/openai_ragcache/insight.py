"""`/v1/ragcache/…`: what only this server has to tell, for its page and for scripts; a tenant's own, and no other's."""

from typing import Any

from fastapi import APIRouter

from openai_ragcache.server import ServerOf, TenantOf

router = APIRouter(prefix="/v1/ragcache")


@router.get("/agreement")
async def tell_agreement(server: ServerOf, tenant: TenantOf) -> dict[str, Any]:
    """How often full prefill confirmed answers, and where it did not."""
    return {"share_verified": server.settings.verify, **server.verifier.agreement(tenant).as_dict()}
