"""A server on a loopback port, and what it is asked."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import uvicorn
from openai_ragcache import ServerSettings, Tenants
from openai_ragcache.running import configure

from ragcache import Chunk

MODEL = "bundled"


@contextmanager
def serve(tenants: Tenants, **settings: object) -> Iterator[str]:
    """Serve tenants as long as the block runs; gives the URL."""
    server = uvicorn.Server(configure(tenants, ServerSettings(port=0, **settings)))  # type: ignore[arg-type]
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.should_exit = True
        thread.join()


def ask(chunks: Sequence[Chunk], question: str = "Who leads the project Amber Raven?") -> list[dict[str, str]]:
    """A question over chunks, in a client's own words."""
    notes = "\n\n".join(chunk.text for chunk in chunks)
    return [{"role": "user", "content": f"Notes:\n\n{notes}\n\nQuestion: {question}"}]
