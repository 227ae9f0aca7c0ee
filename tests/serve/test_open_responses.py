"""What `/v1/responses` sends is what the Open Responses specification describes, whole or as a stream."""

import json
from typing import Any

import httpx
import pytest
from openai_ragcache import Tenants
from pydantic import BaseModel
from serve.served import MODEL, ask, serve

from ragcache import Chunk, RagCache

pytestmark = pytest.mark.slow

openresponses_types = pytest.importorskip("openresponses_types")

HELLO = [{"type": "message", "role": "user", "content": "Say hello in exactly 3 words."}]
TURNS = [
    {"type": "message", "role": "system", "content": "You are a pirate."},
    {"type": "message", "role": "user", "content": "My name is Alice."},
    {"type": "message", "role": "assistant", "content": "Hello Alice!"},
    {"type": "message", "role": "user", "content": "What is my name?"},
]


def model_of(event: dict[str, Any]) -> type[BaseModel]:
    """The specification's own class of an event, named after its type."""
    name = "".join(part.title() for part in event["type"].replace("_", ".").split("."))
    found: type[BaseModel] = getattr(openresponses_types, f"{name}StreamingEvent")
    return found


def post(url: str, **body: Any) -> httpx.Response:
    return httpx.post(f"{url}/responses", json={"model": MODEL, **body}, timeout=120)


def events_of(answer: httpx.Response) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("change", [{}, {"max_output_tokens": 1}, {"temperature": 0.5, "top_p": 0.9}])
def test_a_response_is_one_of_the_specification(url: str, chunks: list[Chunk], change: dict[str, Any]) -> None:
    for said in (ask(chunks[:2]), HELLO, TURNS):
        answer = post(url, input=said, **change).raise_for_status().json()
        found = openresponses_types.ResponseResource.model_validate(answer)
        assert found.output
        assert (found.completed_at is None) == (found.status == "incomplete")
        assert (found.status == "completed") or found.incomplete_details is not None


@pytest.mark.parametrize(("most", "end"), [(None, "completed"), (1, "incomplete")])
def test_every_event_of_a_stream_is_one_of_the_specification(
    url: str, chunks: list[Chunk], most: int | None, end: str
) -> None:
    answer = post(url, input=ask(chunks[:2]), stream=True, max_output_tokens=most).raise_for_status()
    events = events_of(answer)
    for event in events:
        model_of(event).model_validate(event)
    kinds = [event["type"] for event in events if "response" in event]
    assert kinds == ["response.created", "response.in_progress", f"response.{end}"]


def test_a_stream_that_fails_is_one_of_the_specification(rag: RagCache, chunks: list[Chunk]) -> None:
    with serve(Tenants.of_one(rag), max_prompt_tokens=20) as url:
        answer = post(url, input=ask(chunks[:2]), stream=True).raise_for_status()
    events = events_of(answer)
    for event in events:
        model_of(event).model_validate(event)
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["error"]["code"] == "context_length_exceeded"


def test_what_it_has_and_this_server_has_not_is_refused_by_name(url: str) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    tool = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}
    for param, change in (
        ("input.0.content", {"input": [{"type": "message", "role": "user", "content": [image]}]}),
        ("tools.0.type", {"input": HELLO, "tools": [tool]}),
    ):
        answer = post(url, **change)
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == param
