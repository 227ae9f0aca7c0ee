"""FastAPI: an endpoint that streams the answer of the chain in langchain_after.py, while other requests are served.

The chain's own `astream` is all it takes: the store and the model work in other threads, not in the event loop.
"""

import asyncio
from tempfile import TemporaryDirectory

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from httpx import ASGITransport, AsyncClient
from langchain_after import main as application


def service(folder: str) -> FastAPI:
    """An application with one endpoint, `/ask?question=...`."""
    app, chain = FastAPI(), application(folder)

    @app.get("/ask")
    async def ask(question: str) -> StreamingResponse:
        return StreamingResponse(chain.astream(question), media_type="text/plain")

    return app


async def main(folder: str, question: str = "Who is the founder of Grefi Partners?") -> str:
    """Ask the endpoint, without a network; `uvicorn` would serve it."""
    app = await asyncio.to_thread(service, folder)
    async with AsyncClient(transport=ASGITransport(app), base_url="http://ragcache") as client:
        return (await client.get("/ask", params={"question": question})).text


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        print(asyncio.run(main(folder)))
