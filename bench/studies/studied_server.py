"""A server on a loopback port, and the pages that it answers over, for what is measured through it."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
import uvicorn
from openai_ragcache import ServerSettings, Tenants
from openai_ragcache.running import configure
from ragcache_bench.asking import Job, put_pages
from ragcache_bench.tasks import Example

from ragcache import RagCache, Sampling
from ragcache.methods import find_method
from ragcache.report import ignore_progress


@contextmanager
def serve(tenants: Tenants, **settings: Any) -> Iterator[str]:
    """Serve tenants on a loopback port as long as the block runs; gives the URL."""
    server = uvicorn.Server(configure(tenants, ServerSettings(port=0, **settings)))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join()


def wait_until_idle(client: httpx.Client) -> None:
    """Wait until a server has done what it does while nobody asks; the client's base URL ends with `/v1`."""
    while "\nragcache_idle_work 0.0" not in client.get("../metrics").text:
        time.sleep(0.01)


def ingest_examples(rag: RagCache, examples: Sequence[Example]) -> None:
    """Put the pages of questions, and their other chunks, into an index, and make what its method reuses."""
    put_pages(Job("asked", tuple(examples), (), Sampling()), rag.index, ignore_progress)
    if encoder := find_method(rag.method).encode:
        list(rag.index.encode(encoder))
