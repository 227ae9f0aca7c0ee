"""An S3 server (moto's) on this machine that fails where it is told to."""

import logging
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from socket import SHUT_RDWR, socket
from threading import Thread
from typing import Any

import pytest

from ragcache.store import remote

#: Without an object store's client and moto there is nothing to run here.
collect_ignore_glob = [] if all(map(find_spec, ("obstore", "moto", "werkzeug"))) else ["test_*.py"]


@dataclass
class Server:
    """What stands in front of moto.

    `fault(method, path)` says what happens to a request: "" for nothing, "503", "slow", "cut" (half of the body), or
    "lost" (carried out, and the answer lost).
    """

    url: str = ""
    fault: Callable[[str, str], str] = lambda method, path: ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    patience: float = 1.0  # seconds over which clients are to repeat a request

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Any:
        """Answer one request."""
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        self.asked.append((method, path))
        fault = self.fault(method, path)
        if fault == "503":
            start("503 Slow Down", [("Content-Length", "0")])
            return [b""]
        if fault == "slow":
            time.sleep(2.5)
        body = self.app(environ, start)
        if fault == "cut":
            return _cut(b"".join(body), environ["werkzeug.socket"])
        if fault == "lost":
            environ["werkzeug.socket"].shutdown(SHUT_RDWR)
        return body

    def __post_init__(self) -> None:
        from moto.server import DomainDispatcherApplication, create_backend_app

        self.app = DomainDispatcherApplication(create_backend_app)

    def fail(self, times: int, fault: str, *, method: str = "", part: str = "") -> None:
        """Fail so many of the requests to come that are by a method and of a path that holds a part."""
        left = times

        def decide(asked: str, path: str) -> str:
            nonlocal left
            if left > 0 and asked.startswith(method) and part in path:
                left -= 1
                return fault
            return ""

        self.fault = decide

    def heal(self) -> None:
        """Fail no more."""
        self.fault = lambda method, path: ""
        self.asked.clear()
        self.patience = 1.0


def _cut(body: bytes, connection: socket) -> Iterator[bytes]:
    yield body[: len(body) // 2]
    connection.shutdown(SHUT_RDWR)


@pytest.fixture(scope="session")
def _server() -> Iterator[Server]:
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = Server()
    listening = make_server("127.0.0.1", 0, server, threaded=True)
    listening.log_error = lambda *said: None  # type: ignore[attr-defined]
    thread = Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{listening.server_port}"
    urllib.request.urlopen(urllib.request.Request(f"{server.url}/bucket", method="PUT")).close()
    yield server
    listening.shutdown()
    thread.join()
    listening.server_close()


@pytest.fixture
def s3(_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The server, in order, with an empty bucket `bucket`; credentials are in the environment."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "an-id",
        "AWS_SECRET_ACCESS_KEY": "a-secret-of-the-provider",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": _server.url,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(remote, "_REST_SECONDS", 0.0)
    _server.heal()
    yield _server
    _server.heal()
    store = remote.RemoteStore("s3://bucket")
    for name in list(store.list("")):
        store.delete(name)
