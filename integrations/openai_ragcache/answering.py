"""From a job's results to a response: whole, or as server-sent events; whoever leaves cancels the job."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from operator import attrgetter
from typing import Any

from fastapi import Request
from fastapi.responses import StreamingResponse

from openai_ragcache.api_errors import ApiError, as_api_error
from openai_ragcache.engine_queue import Job, NobodyWaits, Result

_log = logging.getLogger(__name__)

#: Turns a job's results into the events of a stream.
Events = Callable[[AsyncIterator[Any]], AsyncIterator[dict[str, Any]]]
#: Turns what went wrong behind the first event into the last one.
FailureEvent = Callable[[ApiError], dict[str, Any]]


async def results_of(request: Request, job: Job[Result]) -> list[Result]:
    """All results of a job, as long as the client stays."""
    async with cancelled_by_leaving(request, job):
        return [result async for result in job]


async def stream_events(
    request: Request,
    job: Job[Any],
    events: Events,
    *,
    end: str = "[DONE]",
    failure: FailureEvent = attrgetter("body"),
) -> StreamingResponse:
    """A response that streams a job's results as they come; what fails before the first one is an ordinary error."""
    results = aiter(job)
    async with cancelled_by_leaving(request, job):
        first = await anext(results)

    async def stream() -> AsyncIterator[str]:
        try:
            async for data in events(_chained(first, results)):
                yield as_event(data)
        except NobodyWaits as error:  # the server is stopping; a client that left reads nothing
            yield as_event(failure(as_api_error(error)))
        except Exception as error:
            _log.exception("an answer broke off")
            yield as_event(failure(as_api_error(error)))
        else:
            if end:
                yield f"data: {end}\n\n"
        finally:
            job.cancel()

    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream(), media_type="text/event-stream", headers=headers)


def as_event(data: dict[str, Any]) -> str:
    """A server-sent event; one that has a `type` is named by it, as in OpenAI's newer API."""
    name = f"event: {data['type']}\n" if isinstance(data.get("type"), str) else ""
    return f"{name}data: {json.dumps(data)}\n\n"


@asynccontextmanager
async def cancelled_by_leaving(request: Request, job: Job[Any]) -> AsyncIterator[None]:
    """Cancel a job as soon as its client has left."""

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        job.cancel()

    watching = asyncio.create_task(watch())
    try:
        yield
    except BaseException:
        job.cancel()
        raise
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


async def _chained(first: Any, rest: AsyncIterator[Any]) -> AsyncIterator[Any]:
    yield first
    async for result in rest:
        yield result
