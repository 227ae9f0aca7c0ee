"""The application: routes, what guards them, and what ends with it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from openai_ragcache import chat, completions, embeddings, files, insight, responses, site, status, stores
from openai_ragcache.agreement import Verifier
from openai_ragcache.api_errors import add_handlers
from openai_ragcache.engine_queue import EngineQueue
from openai_ragcache.guard import AskForKey, LimitBody
from openai_ragcache.ingesting import resume
from openai_ragcache.metrics import Metrics
from openai_ragcache.server import Server
from openai_ragcache.settings import ServerSettings
from openai_ragcache.tenants import Tenants


def create_app(tenants: Tenants, settings: ServerSettings | None = None) -> FastAPI:
    """An OpenAI-compatible application over the tenants' indexes; they stay open when it ends.

    Parameters
    ----------
    tenants : Tenants
        Who may ask, and over which index.
    settings : ServerSettings, optional
        The limits, and the model's name.

    Raises
    ------
    InvalidArgument
        If it would listen where others can connect, and ask nobody for a key.
    """
    settings = settings or ServerSettings()
    settings.check_exposure(has_keys=tenants.has_keys)
    queue, metrics = EngineQueue(settings.queue), Metrics()
    server = Server(settings, tenants, queue, metrics, Verifier(settings, queue, metrics))
    metrics.watch_queue(lambda: queue.waiting, lambda: queue.idle_work)
    metrics.watch_learnt(lambda: sum(tenant.rag.index.second_sight.nbytes for tenant in tenants.all))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        resuming = [asyncio.create_task(resume(server.queue, tenant)) for tenant in tenants.all]
        yield
        for task in resuming:
            task.cancel()
        server.queue.close()

    app = FastAPI(title="ragcache", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.state.server = server
    for routes in (site, status, chat, completions, embeddings, files, stores, responses, insight):
        app.include_router(routes.router)
    add_handlers(app)
    app.add_middleware(LimitBody, settings=settings)
    app.add_middleware(AskForKey, tenants=tenants)
    app.add_middleware(_CountRequests, metrics=server.metrics)
    return app


class _CountRequests:
    """Counts responses by route and status; what no route takes is one series, or clients could make any number."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = False

        def count(status: int) -> None:
            path = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(path, str(status)).inc()

        async def watch(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                count(message["status"])
            await send(message)

        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        try:
            return await self._app(scope, receive, watch)
        except Exception:
            if not began:  # answered outside of this, by FastAPI's own last handler
                count(500)
            raise
