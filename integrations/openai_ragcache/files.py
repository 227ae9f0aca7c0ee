"""`/v1/files`: documents that a tenant sends, to be put into vector stores."""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request, UploadFile
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from openai_ragcache.api_errors import ApiError, not_found, unknown_parameter
from openai_ragcache.ingesting import forget_unused
from openai_ragcache.names import check_file_name
from openai_ragcache.paging import Page
from openai_ragcache.server import ServerOf, TenantOf
from openai_ragcache.tenants import Tenant
from openai_ragcache.uploads import UploadedFile

router = APIRouter()
_PURPOSES = ("assistants", "user_data")
_UPLOADED = ("file", "purpose")


class FilesPage(Page):
    """Which files are wanted."""

    purpose: str | None = None


@router.post("/v1/files")
async def upload_file(
    request: Request, file: UploadFile, purpose: Annotated[str, Form()], tenant: TenantOf
) -> dict[str, Any]:
    """Keep a file."""
    for name in await request.form():
        if name not in _UPLOADED:
            raise unknown_parameter(name)
    if purpose not in _PURPOSES:
        raise ApiError(f"the purpose {purpose[:40]!a} is not one of {', '.join(_PURPOSES)}", param="purpose")
    name = check_file_name(file.filename or "")
    data = await file.read()
    if not data:
        raise ApiError(f"{name!a} is empty", param="file", code="empty_file")
    return as_file(await run_in_threadpool(tenant.uploads.add_file, name, data, purpose))


@router.get("/v1/files")
def list_files(tenant: TenantOf, page: Annotated[FilesPage, Query()]) -> dict[str, Any]:
    """All files of the tenant, or those of a purpose."""
    files = tenant.uploads.files()
    return page.of({one.id: one for one in files if page.purpose in (None, one.purpose)}, as_file)


@router.get("/v1/files/{id}")
async def show_file(id: str, tenant: TenantOf) -> dict[str, Any]:
    """One of them."""
    return as_file(find_file(tenant, id))


@router.get("/v1/files/{id}/content")
async def send_file(id: str, tenant: TenantOf) -> Response:
    """A file as it was sent; a browser is to show nothing of it."""
    data = await run_in_threadpool(tenant.uploads.path(find_file(tenant, id)).read_bytes)
    headers = {"Content-Disposition": "attachment", "X-Content-Type-Options": "nosniff"}
    return Response(data, media_type="application/octet-stream", headers=headers)


@router.delete("/v1/files/{id}")
async def delete_file(id: str, server: ServerOf, tenant: TenantOf) -> dict[str, Any]:
    """Forget a file, in every store, with all that was made of it."""
    file = find_file(tenant, id)
    await forget_unused(server.queue, tenant, [file], delete=True)
    return {"id": file.id, "object": "file", "deleted": True}


def find_file(tenant: Tenant, id: str, *, param: str | None = None) -> UploadedFile:
    """A file of the tenant's.

    Raises
    ------
    ApiError
        404, if it has none of that id.
    """
    if (file := tenant.uploads.file(id)) is None:
        raise not_found("file", id, param=param, code="file_not_found")
    return file


def as_file(file: UploadedFile) -> dict[str, Any]:
    """A file as OpenAI describes one."""
    return {
        "id": file.id,
        "object": "file",
        "bytes": file.bytes,
        "created_at": file.created,
        "filename": file.name,
        "purpose": file.purpose,
        "status": "processed",
    }
