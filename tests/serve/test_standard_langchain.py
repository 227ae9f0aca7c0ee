"""LangChain's conformance suite for chat models, by URL: `ChatOpenAI` against the server.

Skipped are, as for our own class, tests of tools and structured output, of images, sound and PDF, of another vendor's
message format, and of recorded HTTP traffic.
"""

from typing import Any, ClassVar

import httpx
import pytest

pytest.importorskip("langchain_tests")
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests
from serve.served import MODEL

# LangChain's own clients outlive the event loop of a test, and their connections with them.
ONCE = httpx.Limits(max_keepalive_connections=0)
CLIENT, ASYNC_CLIENT = httpx.Client(limits=ONCE, timeout=60), httpx.AsyncClient(limits=ONCE, timeout=60)


class TestChatByUrl(ChatModelIntegrationTests):
    url: ClassVar[str] = ""

    @pytest.fixture(autouse=True)
    def _served(self, url: str) -> None:
        type(self).url = url

    @property
    def chat_model_class(self) -> type[ChatOpenAI]:
        return ChatOpenAI

    @property
    def chat_model_params(self) -> dict[str, Any]:
        how = {"max_retries": 0, "max_completion_tokens": 12, "stream_usage": True}
        own = {"http_client": CLIENT, "http_async_client": ASYNC_CLIENT}
        return {"base_url": self.url, "api_key": "none", "model": MODEL, **how, **own}

    @property
    def has_tool_calling(self) -> bool:
        return False

    @property
    def has_structured_output(self) -> bool:
        return False
