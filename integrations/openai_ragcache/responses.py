"""`POST /v1/responses`: answers over vector stores by `file_search`, with the files that they were answered from."""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from fastapi import APIRouter
from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from openai_ragcache.answering import results_of, stream_events
from openai_ragcache.api_errors import ApiError
from openai_ragcache.bodies import FileSearch, ResponseBody
from openai_ragcache.engine_queue import Job
from openai_ragcache.generation import Generated, Generation
from openai_ragcache.names import new_id
from openai_ragcache.server import ServerOf, TenantOf
from openai_ragcache.stores import as_result, find_store, search
from openai_ragcache.tenants import Tenant
from openai_ragcache.uploads import Member, UploadedFile, VectorStore
from ragcache import Chunk, Message
from ragcache.engine.chat import merge_messages
from ragcache.engine.clock import Clock
from ragcache.engine.request import Request, RequestOptions
from ragcache.index.chunks import order_by_document

router = APIRouter()


@router.post("/v1/responses")
async def respond(body: ResponseBody, request: HttpRequest, server: ServerOf, tenant: TenantOf) -> Response:
    """Answer a conversation, over the chunks that its last question finds in the stores."""
    server.check_model(body.model)
    asked = _Asked.of(tenant, body)

    def run(job: Job[Any]) -> Iterator[Any]:
        clock = Clock(tenant.rag.reader.device)
        with clock.stage("retrieve", waits=False):
            found = asked.find()
        yield found
        build = asked.builder(found.chunks)
        yield from Generation(server, tenant, body, build).run(job, clock)

    job = server.queue.submit(run)
    response = _Response(body, found=None)
    if body.stream:
        return await stream_events(request, job, response.events, end="", failure=response.failure)
    found, *_, done = await results_of(request, job)
    return JSONResponse(response.over(found).completed(done))


@dataclass(frozen=True)
class _Found:
    """What was searched for, and found: chunks, each with its file, as a file and as one of a store."""

    query: str
    chunks: Sequence[Chunk]
    files: Sequence[tuple[UploadedFile, Member]]

    @property
    def results(self) -> list[dict[str, Any]]:
        """As `include` asks for them."""
        return [as_result(chunk, *of) for chunk, of in zip(self.chunks, self.files, strict=True)]


@dataclass(frozen=True)
class _Asked:
    """A conversation whose last message is a question, and where its answer is looked for."""

    tenant: Tenant
    tool: FileSearch | None
    stores: list[VectorStore]
    history: list[Message]
    question: str

    @classmethod
    def of(cls, tenant: Tenant, body: ResponseBody) -> "_Asked":
        """What a body asks.

        Raises
        ------
        ApiError
            If a store is unknown, or nothing is asked.
        """
        tool = body.tools[0] if body.tools else None
        stores = [find_store(tenant, id, param="tools") for id in tool.vector_store_ids] if tool else []
        said = [Message("system", body.instructions)] if body.instructions else []
        items = body.input if isinstance(body.input, list) else []
        said += [Message(one.role, one.content) for one in items if one.content.strip()]
        said += [Message("user", body.input)] if isinstance(body.input, str) else []
        turns = merge_messages(said)
        if not turns or turns[-1].role != "user" or not turns[-1].text.strip():
            raise ApiError("the last message must be the user's question", param="input")
        return cls(tenant, tool, stores, turns[:-1], turns[-1].text)

    def find(self) -> _Found:
        """Search the stores, if there are any."""
        if self.tool is None:
            return _Found(self.question, (), ())
        most = self.tool.max_num_results or self.tenant.rag.top_k
        chunks = search(self.tenant, self.stores, self.question, most)
        files = {source: of for store in self.stores for source, of in self.tenant.uploads.sources(store).items()}
        chunks = [chunk for chunk in chunks if chunk.source in files]
        return _Found(self.question, chunks, [files[chunk.source] for chunk in chunks])

    def builder(self, chunks: Sequence[Chunk]) -> Callable[[RequestOptions], Request]:
        """What makes the engine's request; without a search, of the conversation as it is."""
        requests = self.tenant.rag.engine.requests
        if self.tool is None:
            return lambda options: requests.from_prompt([*self.history, Message("user", self.question)], options)
        read = order_by_document(chunks)
        return lambda options: requests.from_question(self.question, read, options, self.history)


class _Response:
    """A response as OpenAI has it: an item for the search, if there was one, and one for the answer."""

    def __init__(self, body: ResponseBody, found: _Found | None) -> None:
        self._body = body
        self._found = found
        self._search_id, self._message_id = new_id("fs"), new_id("msg")
        self._numbers = count()
        self._head = {
            "id": new_id("resp"),
            "object": "response",
            "created_at": int(time.time()),
            "completed_at": None,
            "background": False,
            "model": body.model,
            "instructions": body.instructions,
            "max_output_tokens": body.max_output_tokens,
            "max_tool_calls": None,
            "metadata": body.metadata or {},
            "frequency_penalty": 0.0,
            "parallel_tool_calls": False,
            "presence_penalty": 0.0,
            "previous_response_id": None,
            "prompt_cache_key": None,
            "reasoning": None,
            "safety_identifier": None,
            "service_tier": "default",
            "store": False,
            "temperature": body.temperature or 0.0,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [tool.model_dump(exclude_none=True) for tool in body.tools],
            "top_logprobs": 0,
            "top_p": 1.0 if body.top_p is None else body.top_p,
            "truncation": "disabled",
            "error": None,
            "incomplete_details": None,
        }

    def over(self, found: _Found) -> "_Response":
        """The same, with what was found."""
        self._found = found
        return self

    def begun(self) -> dict[str, Any]:
        """The response before anything is said."""
        return {**self._head, "status": "in_progress", "output": [], "usage": None}

    def completed(self, done: Generated) -> dict[str, Any]:
        """The whole response."""
        cut = done.finish_reason == "length"
        message = self._message(done.text, "incomplete" if cut else "completed")
        usage = {
            "input_tokens": done.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": done.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": done.prompt_tokens + done.completion_tokens,
        }
        return {
            **self._head,
            "status": "incomplete" if cut else "completed",
            "completed_at": None if cut else int(time.time()),
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "output": [*self._searches("completed"), message],
            "usage": usage,
            "ragcache": done.about,
        }

    async def events(self, results: AsyncIterator[Any]) -> AsyncIterator[dict[str, Any]]:
        """What happens, one after the other, numbered."""
        async for event in self._events(results):
            yield self._numbered(event)

    def failure(self, told: ApiError) -> dict[str, Any]:
        """The last event of a response that broke off behind its first one."""
        refused = told.kind == "invalid_request_error"
        code = told.code or "invalid_prompt" if refused else "server_error"
        error = {"code": code, "message": told.message}
        response = {**self.begun(), "status": "failed", "error": error}
        return self._numbered({"type": "response.failed", "response": response})

    def _numbered(self, event: dict[str, Any]) -> dict[str, Any]:
        return {**event, "sequence_number": next(self._numbers)}

    async def _events(self, results: AsyncIterator[Any]) -> AsyncIterator[dict[str, Any]]:
        yield {"type": "response.created", "response": self.begun()}
        yield {"type": "response.in_progress", "response": self.begun()}
        text, place = "", 0
        async for result in results:
            if isinstance(result, _Found):
                for event in self.over(result)._search_events():
                    yield event
                place = len(self._searches("completed"))
                yield self._item("added", place, {**self._message("", "in_progress"), "content": []})
                yield self._part("content_part.added", place, part=_text(""))
            elif isinstance(result, Generated):
                for event in self._end_events(place, text, result):
                    yield event
            else:
                text += result.text
                yield self._part("output_text.delta", place, delta=result.text, logprobs=[])

    def _search_events(self) -> Iterator[dict[str, Any]]:
        if not self._body.tools:
            return
        yield self._item("added", 0, self._searches("in_progress")[0])
        for state in ("in_progress", "searching", "completed"):
            yield {"type": f"response.file_search_call.{state}", "item_id": self._search_id, "output_index": 0}
        yield self._item("done", 0, self._searches("completed")[0])

    def _end_events(self, place: int, text: str, done: Generated) -> Iterator[dict[str, Any]]:
        whole = self.completed(done)
        message = {**whole["output"][-1], "content": [_text(text, self._citations(text))]}
        whole["output"][-1] = message
        yield self._part("output_text.done", place, text=text, logprobs=[])
        for number, one in enumerate(self._citations(text)):
            yield self._part("output_text.annotation.added", place, annotation=one, annotation_index=number)
        yield self._part("content_part.done", place, part=message["content"][0])
        yield self._item("done", place, message)
        yield {"type": f"response.{whole['status']}", "response": whole}

    def _item(self, what: str, place: int, item: dict[str, Any]) -> dict[str, Any]:
        return {"type": f"response.output_item.{what}", "output_index": place, "item": item}

    def _part(self, what: str, place: int, **more: Any) -> dict[str, Any]:
        where = {"item_id": self._message_id, "output_index": place, "content_index": 0}
        return {"type": f"response.{what}", **where, **more}

    def _searches(self, status: str) -> list[dict[str, Any]]:
        if not self._body.tools or self._found is None:
            return []
        shown = self._found.results if self._body.include else None
        queries = [self._found.query]
        return [
            {"id": self._search_id, "type": "file_search_call", "status": status, "queries": queries, "results": shown}
        ]

    def _message(self, text: str, status: str) -> dict[str, Any]:
        content = [_text(text, self._citations(text))]
        return {"id": self._message_id, "type": "message", "role": "assistant", "status": status, "content": content}

    def _citations(self, text: str) -> list[dict[str, Any]]:
        """The files that the answer was given from, best first, at its end: the model does not say which it used."""
        files = {file.id: file for file, _ in (self._found.files if self._found else ())}.values()
        return [
            {"type": "file_citation", "file_id": file.id, "filename": file.name, "index": len(text)} for file in files
        ]


def _text(text: str, citations: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": list(citations), "logprobs": []}
