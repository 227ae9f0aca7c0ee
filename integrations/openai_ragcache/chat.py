"""`POST /v1/chat/completions`."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from openai_ragcache.answering import results_of, stream_events
from openai_ragcache.api_errors import ApiError
from openai_ragcache.bodies import ChatBody, Document
from openai_ragcache.generation import Generated, Generation
from openai_ragcache.logprobs import TokenLogprob, as_chat_logprobs
from openai_ragcache.names import new_id
from openai_ragcache.server import ServerOf, TenantOf
from ragcache import Chunk, Engine, Message, RagCache
from ragcache.engine.chat import merge_messages
from ragcache.engine.clock import Clock
from ragcache.engine.request import Request, RequestOptions

router = APIRouter()


@router.post("/v1/chat/completions")
async def complete_chat(body: ChatBody, request: HttpRequest, server: ServerOf, tenant: TenantOf) -> Response:
    """Answer a conversation; chunks of the index that stand in it come from the cache."""
    server.check_model(body.model)
    build = chat_builder(tenant.rag, body)
    job = server.queue.submit(Generation(server, tenant, body, build).run)
    head = {"id": new_id("chatcmpl"), "created": int(time.time()), "model": body.model}
    if body.stream:
        return await stream_events(request, job, _events(head, include_usage=body.includes_usage))
    done = (await results_of(request, job))[-1]
    assert isinstance(done, Generated)  # a generation's last result
    message = {"role": "assistant", "content": done.text, "refusal": None}
    logprobs = as_chat_logprobs(done.logprobs)
    choice = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": done.finish_reason}
    return JSONResponse(
        {**head, "object": "chat.completion", "choices": [choice], "usage": done.usage, "ragcache": done.about}
    )


def chat_builder(rag: RagCache, body: ChatBody) -> Callable[[RequestOptions], Request]:
    """What makes the engine's request of a conversation.

    With documents, or chunks that are to be retrieved, it is over those, in the built-in template.

    Raises
    ------
    ApiError
        If there are some, and the last message is not the user's.
    """
    engine, count = rag.engine, body.ragcache.retrieve
    turns = merge_messages(Message(one.role, one.content) for one in body.messages if one.content.strip())
    if not body.documents and count is None:
        return lambda options: engine.requests.from_prompt(turns, options)
    if not turns or turns[-1].role != "user":
        raise ApiError("over documents, the last message must be the user's question", param="messages")
    *history, question = turns

    def build(options: RequestOptions) -> Request:
        clock = options.clock or Clock(rag.reader.device)
        with clock.stage("retrieve", waits=False):
            found = [] if count is None else rag.retrieve(question.text, top_k=count)
        chunks = [*_chunks(engine, body.documents), *found]
        return engine.requests.from_question(question.text, chunks, replace(options, clock=clock), history)

    return build


def _chunks(engine: Engine, documents: Sequence[Document]) -> list[Chunk]:
    """Documents as chunks: the index's, where it has them; any other with its title in front, for the model to read."""
    found = []
    for document in documents:
        if not document.text.strip():
            continue
        chunk = engine.chunk(document.text, document.id)
        titled = f"{document.title.strip()}\n{document.text.strip()}"
        found.append(chunk if chunk.source or not document.title.strip() else engine.chunk(titled))
    return found


def _events(
    head: dict[str, Any], *, include_usage: bool
) -> Callable[[AsyncIterator[Any]], AsyncIterator[dict[str, Any]]]:
    """A conversation's events: who speaks, the pieces, why it ends with the `ragcache` object, and usage if wanted."""
    base = {**head, "object": "chat.completion.chunk", **({"usage": None} if include_usage else {})}

    def event(
        delta: dict[str, str], reason: str | None = None, logprobs: list[TokenLogprob] | None = None, **more: Any
    ) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": as_chat_logprobs(logprobs), "finish_reason": reason}
        return {**base, "choices": [choice], **more}

    async def events(results: AsyncIterator[Any]) -> AsyncIterator[dict[str, Any]]:
        yield event({"role": "assistant", "content": ""})
        async for result in results:
            if not isinstance(result, Generated):
                yield event({"content": result.text}, logprobs=result.logprobs)
                continue
            yield event({}, result.finish_reason, ragcache=result.about)
            if include_usage:
                yield {**base, "choices": [], "usage": result.usage}

    return events
