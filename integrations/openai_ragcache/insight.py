"""`/v1/ragcache/…`: what only this server has to tell, for its page and for scripts; a tenant's own, and no other's."""

import shutil
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import APIRouter

from openai_ragcache.api_errors import hide_folders, not_found
from openai_ragcache.names import file_name
from openai_ragcache.paging import PageOf
from openai_ragcache.server import ServerOf, TenantOf
from openai_ragcache.tenants import Tenant
from ragcache.index.documents import KnownDocument

router = APIRouter(prefix="/v1/ragcache")


@router.get("/agreement")
async def tell_agreement(server: ServerOf, tenant: TenantOf) -> dict[str, Any]:
    """How often full prefill confirmed answers, and where it did not."""
    return {"share_verified": server.settings.verify, **server.verifier.agreement(tenant).as_dict()}


@router.get("/history")
def tell_history(server: ServerOf, tenant: TenantOf) -> dict[str, Any]:
    """What answers were made from in the last day, and how much memory and disk the KV takes."""
    index = tenant.rag.index
    return {
        "minutes": server.history(tenant).as_list(),
        "memory_bytes": sum(index.held().values()),
        "learnt": {
            "texts": len(index.second_sight.texts()),
            "bytes": index.second_sight.nbytes,
            "limit": index.second_sight.limit,
        },
        "disk_bytes": index.catalog.stats()["bytes"],
        "free_bytes": shutil.disk_usage(index.path).free,
    }


@router.get("/documents")
def list_documents(tenant: TenantOf, page: PageOf) -> dict[str, Any]:
    """The documents of the index, by name, and the uploads that are not among them yet."""
    known = sorted(tenant.rag.documents(), key=lambda one: file_name(one.source))
    uploaded = {str(tenant.uploads.path(file)): file.id for file in tenant.uploads.files()}
    rows = {one.id: one for one in known}
    stats = tenant.rag.index.catalog.stats()
    totals = {"documents": stats["documents"], "chunks": stats["chunks"], "bytes": stats["bytes"]}
    return {
        **page.of(rows, lambda one: _as_document(one, uploaded.get(one.source))),
        "totals": totals,
        "pending": _list_pending(tenant),
    }


@router.get("/documents/{id}")
def show_document(id: str, tenant: TenantOf) -> dict[str, Any]:
    """One of them, with its chunks, and the KV that each has."""
    known = next((one for one in tenant.rag.documents() if one.id == id), None)
    if known is None:
        raise not_found("document", id, code="document_not_found")
    catalog = tenant.rag.index.catalog
    rows = catalog.chunks_of(id)
    recipes = catalog.recipes()
    chunks = tenant.rag.index.chunks([row.id for row in rows])
    shown = [
        {
            "id": chunk.id,
            "text": chunk.text,
            "tokens": len(chunk.segment),
            "page": None,
            "heading": "",
            **chunk.place,
            "kv": [
                {"encoding": kv.recipe, "made_behind": hide_folders(kv.kind), "bytes": kv.nbytes, "created": kv.created}
                for recipe in recipes
                for kv in catalog.encodings(chunk.id, recipe)
            ],
        }
        for chunk in chunks
    ]
    return {**_as_document(known, None), "chunks": shown}


def _as_document(one: KnownDocument, file: str | None) -> dict[str, Any]:
    """A document by its name, without the folders of the server; `file_id` where it was uploaded."""
    name = Path(one.source).name if one.collection else file_name(one.source)
    added = None if one.added is None else one.added.timestamp()
    return {**asdict(one), "source": name, "added": added, "chunks": one.chunks, "file_id": file}


def _list_pending(tenant: Tenant) -> list[dict[str, Any]]:
    """Uploads that are still to be ingested, with how far that is, or that could not be."""
    names = {file.id: file.name for file in tenant.uploads.files()}
    waiting: dict[str, dict[str, Any]] = defaultdict(dict)
    for member in tenant.uploads.members():
        if member.status != "completed" and member.file in names:
            stage, done, total = tenant.uploads.stages.get(member.file, ("", 0, 0))
            waiting[member.file] = {
                "file_id": member.file, "source": names[member.file], "status": member.status, "error": member.error,
                "stage": stage, "done": done, "total": total,
            }  # fmt: skip
    return list(waiting.values())
