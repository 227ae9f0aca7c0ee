"""Listen, until told to stop; then end what was begun."""

from collections.abc import Callable

import uvicorn

from openai_ragcache.app import create_app
from openai_ragcache.settings import ServerSettings
from openai_ragcache.tenants import Tenants

_HEADERS = 64 << 10  # bytes of a request's headers


def run(tenants: Tenants, settings: ServerSettings, listening: Callable[[str], None] = lambda url: None) -> None:
    """Serve until interrupted or terminated; answers that were begun get their time to end.

    Parameters
    ----------
    tenants : Tenants
        Who may ask, and over which index; closed at the end.
    settings : ServerSettings
        Where to listen, and the limits.
    listening : callable
        Told the URL once connections are taken.

    Raises
    ------
    InvalidArgument
        As `create_app`.
    """
    try:
        _Listening(configure(tenants, settings), listening).run()
    finally:
        tenants.close()


def configure(tenants: Tenants, settings: ServerSettings) -> uvicorn.Config:
    """How uvicorn is to serve the application: one process, since the model is in it."""
    return uvicorn.Config(
        create_app(tenants, settings),
        host=settings.host.strip("[]"),
        port=settings.port,
        http="h11",  # it limits headers
        h11_max_incomplete_event_size=_HEADERS,
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )


class _Listening(uvicorn.Server):
    """A server that says where it listens."""

    def __init__(self, config: uvicorn.Config, listening: Callable[[str], None]) -> None:
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: object = None) -> None:
        await super().startup(sockets=None)
        for one in (socket for server in self.servers for socket in server.sockets):
            host, port = one.getsockname()[:2]
            self._listening(f"http://{f'[{host}]' if ':' in host else host}:{port}/v1")
