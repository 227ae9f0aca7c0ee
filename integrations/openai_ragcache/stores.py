"""`/v1/vector_stores`: sets of files, to be searched."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Query, Request, Response

from openai_ragcache.answering import results_of
from openai_ragcache.api_errors import not_found
from openai_ragcache.bodies import MemberBody, SearchBody, StoreBody, StoreChange
from openai_ragcache.engine_queue import Job
from openai_ragcache.files import find_file
from openai_ragcache.ingesting import forget_unused, ingest_later
from openai_ragcache.paging import Page, PageOf
from openai_ragcache.server import ServerOf, TenantOf
from openai_ragcache.tenants import Tenant
from openai_ragcache.uploads import Member, Status, UploadedFile, VectorStore
from ragcache import Chunk

router = APIRouter(prefix="/v1/vector_stores")
_POLL_MS = "200"  # what the official client waits before it asks again


class MembersPage(Page):
    """Which files of a store are wanted."""

    filter: Literal["in_progress", "completed", "failed", "cancelled"] | None = None


@router.post("")
async def create_store(body: StoreBody, server: ServerOf, tenant: TenantOf) -> dict[str, Any]:
    """Make a store, with files in it or without."""
    files = [find_file(tenant, id, param="file_ids") for id in body.file_ids]
    store = VectorStore.new(body.name, body.metadata or {})
    members = [Member.new(store, file) for file in files]
    ingest_later(server.queue, tenant, members, partial(tenant.uploads.add_store, store, members))
    return _describe(tenant, store)


@router.get("")
def list_stores(tenant: TenantOf, page: PageOf) -> dict[str, Any]:
    """All stores of the tenant."""
    counts = tenant.uploads.count_members()
    stores = {store.id: store for store in tenant.uploads.stores()}
    return page.of(stores, lambda store: _as_store(store, counts.get(store.id, {})))


@router.get("/{id}")
async def show_store(id: str, tenant: TenantOf) -> dict[str, Any]:
    """One of them."""
    return _describe(tenant, find_store(tenant, id))


@router.post("/{id}")
async def change_store(id: str, body: StoreChange, tenant: TenantOf) -> dict[str, Any]:
    """Give it another name, or say other things of it."""
    store = find_store(tenant, id)
    name = store.name if body.name is None else body.name
    tenant.uploads.change_store(store, name, store.metadata if body.metadata is None else body.metadata)
    return _describe(tenant, find_store(tenant, id))


@router.delete("/{id}")
async def delete_store(id: str, server: ServerOf, tenant: TenantOf) -> dict[str, Any]:
    """Forget a store; its files stay, but what is in no other store leaves the index."""
    store = find_store(tenant, id)
    files = [find_file(tenant, member.file) for member in tenant.uploads.members(store)]
    await forget_unused(server.queue, tenant, files, partial(tenant.uploads.remove_store, store))
    return {"id": store.id, "object": "vector_store.deleted", "deleted": True}


@router.post("/{id}/search")
async def search_store(
    id: str, body: SearchBody, request: Request, server: ServerOf, tenant: TenantOf
) -> dict[str, Any]:
    """The chunks of a store that speak to a question, best first."""
    store = find_store(tenant, id)
    query = body.query if isinstance(body.query, str) else "\n".join(body.query)
    job: Job[Chunk] = server.queue.submit(lambda job: iter(search(tenant, [store], query, body.max_num_results)))
    files = tenant.uploads.sources(store)
    chunks = await results_of(request, job)
    found = [as_result(chunk, *files[chunk.source]) for chunk in chunks if chunk.source in files]
    queries = [body.query] if isinstance(body.query, str) else body.query
    return {
        "object": "vector_store.search_results.page",
        "search_query": queries,
        "data": [{**one, "content": [{"type": "text", "text": one.pop("text")}]} for one in found],
        "has_more": False,
        "next_page": None,
    }


@router.post("/{id}/files")
async def add_file(id: str, body: MemberBody, server: ServerOf, tenant: TenantOf) -> dict[str, Any]:
    """Put a file into a store; ask again for when it is there."""
    store, file = find_store(tenant, id), find_file(tenant, body.file_id, param="file_id")
    member = Member.new(store, file, body.attributes or {})
    ingest_later(server.queue, tenant, [member], partial(tenant.uploads.add_members, [member]))
    return _as_member(member, file)


@router.get("/{id}/files")
def list_store_files(id: str, tenant: TenantOf, page: Annotated[MembersPage, Query()]) -> dict[str, Any]:
    """The files of a store, or those that are so far."""
    members = tenant.uploads.members(find_store(tenant, id))
    wanted = {member.file: member for member in members if page.filter in (None, member.status)}
    return page.of(wanted, lambda member: _as_member(member, find_file(tenant, member.file)))


@router.get("/{id}/files/{file_id}")
async def show_store_file(id: str, file_id: str, tenant: TenantOf, response: Response) -> dict[str, Any]:
    """One of them: whether its chunks are there yet, and when to ask again."""
    response.headers["openai-poll-after-ms"] = _POLL_MS
    return _as_member(_find_member(tenant, id, file_id), find_file(tenant, file_id))


@router.delete("/{id}/files/{file_id}")
async def remove_store_file(id: str, file_id: str, server: ServerOf, tenant: TenantOf) -> dict[str, Any]:
    """Take a file out of a store; the file itself stays."""
    remove = partial(tenant.uploads.remove_member, _find_member(tenant, id, file_id))
    await forget_unused(server.queue, tenant, [find_file(tenant, file_id)], remove)
    return {"id": file_id, "object": "vector_store.file.deleted", "deleted": True}


def find_store(tenant: Tenant, id: str, *, param: str | None = None) -> VectorStore:
    """A store of the tenant's.

    Raises
    ------
    ApiError
        404, if it has none of that id.
    """
    if (store := tenant.uploads.store(id)) is None:
        raise not_found("vector store", id, param=param, code="vector_store_not_found")
    return store


def search(tenant: Tenant, stores: list[VectorStore], query: str, count: int) -> list[Chunk]:
    """The best chunks of some stores' files; none where no file is ready."""
    sources = [source for store in stores for source in tenant.uploads.sources(store)]
    return tenant.rag.retrieve(query, top_k=count, sources=sources) if sources else []


def as_result(chunk: Chunk, file: UploadedFile, member: Member) -> dict[str, Any]:
    """A chunk that was found, in its file: where it stands there, beside the attributes that the file was given."""
    score = max(0.0, chunk.score or 0.0)
    attributes = {**chunk.place, **member.attributes}
    return {"file_id": file.id, "filename": file.name, "score": score, "attributes": attributes, "text": chunk.text}


def _find_member(tenant: Tenant, store: str, file: str) -> Member:
    if (member := tenant.uploads.member(find_store(tenant, store), file)) is None:
        raise not_found("file in this vector store", file, code="file_not_found")
    return member


def _describe(tenant: Tenant, store: VectorStore) -> dict[str, Any]:
    return _as_store(store, tenant.uploads.count_members(store).get(store.id, {}))


def _as_store(store: VectorStore, counts: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    """A store, of whose files there are so many, of so many bytes, by how far they are."""
    number = {state: counts.get(state, (0, 0))[0] for state in get_args(Status)}
    return {
        "id": store.id,
        "object": "vector_store",
        "created_at": store.created,
        "name": store.name,
        "metadata": store.metadata,
        "status": "in_progress" if number["in_progress"] else "completed",
        "usage_bytes": sum(size for _, size in counts.values()),
        "file_counts": {**number, "cancelled": 0, "total": sum(number.values())},
        "expires_after": None,
        "expires_at": None,
        "last_active_at": store.created,
    }


def _as_member(member: Member, file: UploadedFile) -> dict[str, Any]:
    return {
        "id": member.file,
        "object": "vector_store.file",
        "created_at": member.created,
        "vector_store_id": member.store,
        "status": member.status,
        "usage_bytes": file.bytes,
        "last_error": {"code": "invalid_file", "message": member.error} if member.error else None,
        "attributes": member.attributes,
        "chunking_strategy": {"type": "other"},
    }
