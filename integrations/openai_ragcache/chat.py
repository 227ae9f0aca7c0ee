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
from openai_ragcache.tool_calls import ToolReply
from ragcache import Chunk, Engine, Message, RagCache
from ragcache.engine.chat import merge_messages
from ragcache.engine.clock import Clock
from ragcache.engine.request import Request, RequestOptions
from ragcache.errors import UnsupportedModel
from ragcache.index.chunks import order_by_document

router = APIRouter()


@router.post("/v1/chat/completions")
async def complete_chat(body: ChatBody, request: HttpRequest, server: ServerOf, tenant: TenantOf) -> Response:
    """Answer a conversation; chunks of the index that stand in it come from the cache."""
    server.check_model(body.model)
    build = chat_builder(tenant.rag, body)
    job = server.queue.submit(Generation(server, tenant, body, build).run)
    reply = ToolReply([tool["function"]["name"] for tool in body.offered], one=body.parallel_tool_calls is False)
    head = {"id": new_id("chatcmpl"), "created": int(time.time()), "model": body.model}
    if body.stream:
        return await stream_events(request, job, _events(head, reply, include_usage=body.includes_usage))
    done = (await results_of(request, job))[-1]
    assert isinstance(done, Generated)  # a generation's last result
    words = reply.take(done.text)
    rest, calls = reply.end()
    message: dict[str, Any] = {"role": "assistant", "content": words + rest, "refusal": None}
    if calls:
        called = [{name: call[name] for name in ("id", "type", "function")} for call in calls]
        message |= {"content": message["content"].strip() or None, "tool_calls": called}
    reason = "tool_calls" if calls else done.finish_reason
    choice = {"index": 0, "message": message, "logprobs": as_chat_logprobs(done.logprobs), "finish_reason": reason}
    return JSONResponse(
        {**head, "object": "chat.completion", "choices": [choice], "usage": done.usage, "ragcache": done.about}
    )


def chat_builder(rag: RagCache, body: ChatBody) -> Callable[[RequestOptions], Request]:
    """What makes the engine's request of a conversation.

    With documents, or chunks that are to be retrieved, it is over those, in the built-in template.

    Raises
    ------
    ApiError
        If there are some, and the last message is not the user's; or tools that the chat template has no place for.
    """
    engine, count, tools = rag.engine, body.ragcache.retrieve, body.offered
    said = (Message(one.role, one.content, one.more) for one in body.messages if one.content.strip() or one.more)
    turns = merge_messages(said)
    _check_tools(rag, "tools" if tools else "messages" if any(turn.more for turn in turns) else "")
    if not body.documents and count is None:
        return lambda options: engine.requests.from_prompt(turns, options, tools=tools)
    if not turns or turns[-1].role != "user":
        raise ApiError("over documents, the last message must be the user's question", param="messages")
    *history, question = turns

    def build(options: RequestOptions) -> Request:
        clock = options.clock or Clock(rag.reader.device)
        with clock.stage("retrieve", waits=False):
            found = [] if count is None else order_by_document(rag.retrieve(question.text, top_k=count))
        chunks = [*_chunks(engine, body.documents), *found]
        return engine.requests.from_question(question.text, chunks, replace(options, clock=clock), history, tools)

    return build


def _check_tools(rag: RagCache, param: str) -> None:
    """Refuse what a request says of tools by the parameter's name, where the model was not taught to call any."""
    try:
        if param:
            rag.index.template.check_tools()
    except UnsupportedModel as error:
        raise ApiError(str(error), param=param, code="unsupported_parameter") from error


def _chunks(engine: Engine, documents: Sequence[Document]) -> list[Chunk]:
    """Documents as chunks: the index's, where it has them; any other with its title in front, for the model to read."""
    found = []
    for document in documents:
        if not document.text.strip():
            continue
        title = document.title.strip()
        called = title or document.id or ""
        chunk = engine.chunk(document.text, document.id, called=called)
        titled = f"{title}\n{document.text.strip()}"
        found.append(chunk if chunk.source or not title else engine.chunk(titled, called=called))
    return found


def _events(
    head: dict[str, Any], reply: ToolReply, *, include_usage: bool
) -> Callable[[AsyncIterator[Any]], AsyncIterator[dict[str, Any]]]:
    """A conversation's events: who speaks, the pieces, why it ends with the `ragcache` object, and usage if wanted."""
    base = {**head, "object": "chat.completion.chunk", **({"usage": None} if include_usage else {})}

    def event(
        delta: dict[str, Any], reason: str | None = None, logprobs: list[TokenLogprob] | None = None, **more: Any
    ) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": as_chat_logprobs(logprobs), "finish_reason": reason}
        return {**base, "choices": [choice], **more}

    async def events(results: AsyncIterator[Any]) -> AsyncIterator[dict[str, Any]]:
        yield event({"role": "assistant", "content": ""})
        async for result in results:
            if not isinstance(result, Generated):
                if (words := reply.take(result.text)) or result.logprobs:
                    yield event({"content": words}, logprobs=result.logprobs)
                continue
            rest, calls = reply.end()
            if rest:
                yield event({"content": rest})
            if calls:
                yield event({"tool_calls": calls})
            yield event({}, "tool_calls" if calls else result.finish_reason, ragcache=result.about)
            if include_usage:
                yield {**base, "choices": [], "usage": result.usage}

    return events
