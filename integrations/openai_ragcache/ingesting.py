"""Files of vector stores are ingested between questions, one at a time, and leave the index with their last store."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from openai_ragcache.api_errors import hide_folders
from openai_ragcache.engine_queue import EngineQueue, Job, NobodyWaits, QueueFull
from openai_ragcache.tenants import Tenant
from openai_ragcache.uploads import Member, UploadedFile
from ragcache.errors import NoDocuments, RagCacheError

_RETRY_SECONDS = 1.0
_log = logging.getLogger(__name__)


def ingest_later(
    queue: EngineQueue, tenant: Tenant, members: Sequence[Member], first: Callable[[], None] = lambda: None
) -> list[Job[Any]]:
    """Have files ingested in the background, all or none; each one's member of the store says when that is done.

    Parameters
    ----------
    first : callable
        Puts them into their store, once the work is accepted: what is refused has changed nothing.

    Raises
    ------
    QueueFull
        If too many files wait.
    """
    return queue.submit_background([partial(_ingest, queue, tenant, member) for member in members], first)


async def resume(queue: EngineQueue, tenant: Tenant) -> None:
    """Ingest what an earlier server was stopped before, one file behind the other, however many there are."""
    for member in tenant.uploads.members():
        if member.status == "in_progress":
            job = await _ingest_when_there_is_room(queue, tenant, member)
            with suppress(NobodyWaits):
                async for _ in job:
                    pass


async def _ingest_when_there_is_room(queue: EngineQueue, tenant: Tenant, member: Member) -> Job[Any]:
    while True:
        try:
            [job] = ingest_later(queue, tenant, [member])
            return job
        except QueueFull:
            await asyncio.sleep(_RETRY_SECONDS)


async def forget_unused(
    queue: EngineQueue,
    tenant: Tenant,
    files: Sequence[UploadedFile],
    first: Callable[[], None] = lambda: None,
    *,
    delete: bool = False,
) -> None:
    """Take files out of the index that are in no store any more; `delete` takes them out of all, and deletes them.

    Parameters
    ----------
    first : callable
        Takes them out of their store, once the work is accepted: what is refused has changed nothing.

    Raises
    ------
    QueueFull
        If too much waits.
    """
    async for _ in queue.submit(partial(_forget, tenant, files, first, delete), alone=True):
        pass


def _ingest(queue: EngineQueue, tenant: Tenant, member: Member, job: Job[Any]) -> Iterator[Any]:
    """Make a file's chunks and their KV, questions in between; what goes wrong is noted.

    What was broken off is begun anew later.
    """
    file = tenant.uploads.file(member.file)
    if file is None or not tenant.uploads.is_in_a_store(file):
        return

    def note_stage(stage: str, done: int, total: int) -> None:
        tenant.uploads.stages[member.file] = stage, done, total
        queue.run_waiting()
        job.check()

    try:
        tenant.rag.ingest([tenant.uploads.path(file)], ignore_files=False, progress=note_stage)
    except NobodyWaits:
        raise
    except RagCacheError as error:
        tenant.uploads.note(member, hide_folders(str(error)))
    except Exception:
        _log.exception("%s could not be ingested", file.id)
        tenant.uploads.note(member, "the server failed; its log says why")
    else:
        tenant.uploads.note(member)
    finally:
        tenant.uploads.stages.pop(member.file, None)
    yield from ()


def _forget(
    tenant: Tenant, files: Sequence[UploadedFile], first: Callable[[], None], delete: bool, job: Job[Any]
) -> Iterator[Any]:
    first()
    for file in files:
        if not delete and tenant.uploads.is_in_a_store(file):
            continue
        with suppress(NoDocuments):  # it was never ingested
            tenant.rag.forget(tenant.uploads.path(file))
        if delete:
            tenant.uploads.remove_file(file)
    yield from ()
