"""`POST /v1/completions`: a prompt is continued as it is, nothing in it is markup."""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import APIRouter
from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from openai_ragcache.answering import results_of, stream_events
from openai_ragcache.api_errors import ApiError
from openai_ragcache.bodies import CompletionBody
from openai_ragcache.engine_queue import Job
from openai_ragcache.generation import Generated, Generation, Piece, sum_usage
from openai_ragcache.logprobs import as_completion_logprobs
from openai_ragcache.names import new_id
from openai_ragcache.server import ServerOf, TenantOf
from openai_ragcache.text_form import ContinuedText
from ragcache import Reader

router = APIRouter()


@router.post("/v1/completions")
async def complete(body: CompletionBody, request: HttpRequest, server: ServerOf, tenant: TenantOf) -> Response:
    """Continue a prompt, or several one after the other; chunks of the index that stand in it come from the cache."""
    server.check_model(body.model)
    rag = tenant.rag
    builders = [partial(rag.engine.requests.from_prompt, text) for text in _texts(body.prompt, rag.reader)]
    generations = [Generation(server, tenant, body, build, ContinuedText) for build in builders]
    job = server.queue.submit(partial(_run, generations))
    head = {"id": new_id("cmpl"), "object": "text_completion", "created": int(time.time()), "model": body.model}
    if body.stream:
        return await stream_events(request, job, _events(head, include_usage=body.includes_usage))
    done = [one.result for one in await results_of(request, job) if isinstance(one.result, Generated)]
    choices = [_choice(number, one, one) for number, one in enumerate(done)]
    return JSONResponse({**head, "choices": choices, "usage": sum_usage(done)})


@dataclass(frozen=True)
class _Numbered:
    """A result, and which prompt it is of."""

    number: int
    result: Piece | Generated


def _run(generations: Sequence[Generation], job: Job[Any]) -> Iterator[_Numbered]:
    for number, generation in enumerate(generations):
        for result in generation.run(job):
            yield _Numbered(number, result)


def _texts(prompt: str | list[int] | list[str], reader: Reader) -> list[str]:
    """The prompts as text; token ids as the text that they stand for.

    Raises
    ------
    ApiError
        If one stands for none.
    """
    if isinstance(prompt, str):
        return [prompt]
    ids = [token for token in prompt if isinstance(token, int)]
    if not ids:
        return [text for text in prompt if isinstance(text, str)]
    special = set(reader.tokenizer.all_special_ids)
    ids = ids[1:] if ids[0] == reader.tokenizer.bos_token_id else ids  # stands in front of any prompt
    for token in ids:
        if not 0 <= token < len(reader.tokenizer) or token in special:
            raise ApiError(
                f"the token {token} stands for no text; send a conversation to /v1/chat/completions instead",
                param="prompt",
                code="invalid_value",
            )
    return [reader.tokenizer.decode(ids, clean_up_tokenization_spaces=False)]


def _choice(number: int, said: Piece | Generated, done: Generated | None) -> dict[str, Any]:
    choice = {"index": number, "text": said.text, "logprobs": as_completion_logprobs(said.logprobs)}
    choice["finish_reason"] = done and done.finish_reason
    return {**choice, "ragcache": done.about} if done else choice


def _events(
    head: dict[str, Any], *, include_usage: bool
) -> Callable[[AsyncIterator[Any]], AsyncIterator[dict[str, Any]]]:
    """Events of one or several answers: pieces, then why each ends and its `ragcache` object, then usage if wanted."""
    base = {**head, **({"usage": None} if include_usage else {})}

    async def events(results: AsyncIterator[Any]) -> AsyncIterator[dict[str, Any]]:
        done = []
        async for one in results:
            if isinstance(one.result, Generated):
                done.append(one.result)
                yield {**base, "choices": [_choice(one.number, Piece(""), one.result)]}
            else:
                yield {**base, "choices": [_choice(one.number, one.result, None)]}
        if include_usage:
            yield {**base, "choices": [], "usage": sum_usage(done)}

    return events
