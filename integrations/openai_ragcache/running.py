"""Listen, until told to stop; then end what was begun."""

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from openai_ragcache.app import create_app
from openai_ragcache.listening import bind, listen
from openai_ragcache.settings import ServerSettings
from openai_ragcache.tenants import Tenants

_HEADERS = 64 << 10  # bytes of a request's headers


def run(
    tenants: Tenants,
    settings: ServerSettings,
    listening: Callable[[str], None] = lambda url: None,
    sockets: Sequence[socket.socket] | None = None,
) -> None:
    """Serve until interrupted or terminated; answers that were begun get their time to end.

    Parameters
    ----------
    tenants : Tenants
        Who may ask, and over which index; closed at the end.
    settings : ServerSettings
        Where to listen, and the limits.
    listening : callable
        Told the URL once connections are taken.
    sockets : sequence of socket, optional
        What `bind` has given, for whoever took the address before the index was opened.

    Raises
    ------
    InvalidArgument
        As `create_app` and `bind`.
    """
    try:
        config = configure(tenants, settings)
        with bind(settings.host, settings.port) if sockets is None else nullcontext(sockets) as bound:
            listen(bound, config.backlog)
            _Listening(config, listening).run(list(bound))
    finally:
        tenants.close()


def configure(tenants: Tenants, settings: ServerSettings) -> uvicorn.Config:
    """How uvicorn is to serve the application: one process, since the model is in it."""
    return uvicorn.Config(
        create_app(tenants, settings),
        host=settings.host.strip("[]"),
        port=settings.port,
        http=_connection(settings.headers_seconds),
        h11_max_incomplete_event_size=_HEADERS,
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )


def _connection(headers_seconds: float) -> type[H11Protocol]:
    """What uvicorn makes of each connection: h11 limits the size of headers, and this how long they take to come."""

    class Connection(H11Protocol):
        _closing: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait_for_headers()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._wait_for_headers()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._stop_waiting()

        def _wait_for_headers(self) -> None:
            if self.conn.their_state is not h11.IDLE:
                self._stop_waiting()
            elif self._closing is None:
                self._closing = self.loop.call_later(headers_seconds, self.transport.close)

        def _stop_waiting(self) -> None:
            if self._closing is not None:
                self._closing.cancel()
                self._closing = None

    return Connection


class _Listening(uvicorn.Server):
    """A server that says where it listens."""

    def __init__(self, config: uvicorn.Config, listening: Callable[[str], None]) -> None:
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        for one in sockets or ():
            host, port = one.getsockname()[:2]
            self._listening(f"http://{f'[{host}]' if ':' in host else host}:{port}/v1")
