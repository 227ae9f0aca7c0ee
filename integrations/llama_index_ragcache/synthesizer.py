"""A LlamaIndex response synthesizer that hands nodes over as nodes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    MessageRole,
)
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.response_synthesizers.base import QueryTextType
from llama_index.core.schema import NodeWithScore
from llama_index.core.types import RESPONSE_TEXT_TYPE

from llama_index_ragcache.llm import RagCacheLLM
from llama_index_ragcache.questions import Passage, QuestionOverNodes
from ragcache.errors import InvalidArgument


class RagCacheSynthesizer(BaseSynthesizer):
    """Answers over retrieved nodes in the built-in template: the answer that `ragcache ask` gives.

    A question is a chat of the model's, so whatever follows the model's chats follows it too; the model's
    `system_prompt` stands in front, where it has one. The response's metadata has a `ragcache` entry that says what
    happened; a streamed one gets it with its last piece.

    Parameters
    ----------
    llm : RagCacheLLM
        Whose index, method and sampling answer.
    streaming : bool
        Whether responses are streams.
    **kwargs
        As in LlamaIndex, but for `output_cls`.

    Raises
    ------
    InvalidArgument
        If the model is another one; or for a template or an `output_cls`, whenever one is given.
    """

    def __init__(self, llm: RagCacheLLM, *, streaming: bool = False, **kwargs: Any) -> None:
        if not isinstance(llm, RagCacheLLM):
            raise InvalidArgument(f"a RagCacheSynthesizer asks a RagCacheLLM, not {type(llm).__name__}")
        _check_given(kwargs)
        super().__init__(llm=llm, streaming=streaming, **kwargs)
        self._model = llm

    def synthesize(
        self,
        query: QueryTextType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> RESPONSE_TYPE:
        """Answer over nodes."""
        told: dict[str, Any] = {}
        options = {**response_kwargs, "rc_nodes": nodes, "rc_about": told}
        response = super().synthesize(query, nodes, additional_source_nodes, **options)
        return _with(response, told)

    async def asynthesize(
        self,
        query: QueryTextType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> RESPONSE_TYPE:
        """Answer over nodes in another thread."""
        told: dict[str, Any] = {}
        options = {**response_kwargs, "rc_nodes": nodes, "rc_about": told}
        response = await super().asynthesize(query, nodes, additional_source_nodes, **options)
        return _with(response, told)

    def get_response(
        self,
        query_str: str,
        text_chunks: Sequence[str],
        rc_nodes: Sequence[NodeWithScore] = (),
        rc_about: dict[str, Any] | None = None,
        **response_kwargs: Any,
    ) -> RESPONSE_TEXT_TYPE:
        """Answer over nodes, or over texts where no nodes come along."""
        _check_given(response_kwargs)
        messages = self._messages(query_str, text_chunks, rc_nodes)
        if self._streaming:
            return _pieces(self._model.stream_chat(messages), rc_about)
        return _text(self._model.chat(messages), rc_about)

    async def aget_response(
        self,
        query_str: str,
        text_chunks: Sequence[str],
        rc_nodes: Sequence[NodeWithScore] = (),
        rc_about: dict[str, Any] | None = None,
        **response_kwargs: Any,
    ) -> RESPONSE_TEXT_TYPE:
        """Answer in another thread; questions that come together are answered at once."""
        _check_given(response_kwargs)
        messages = self._messages(query_str, text_chunks, rc_nodes)
        if self._streaming:
            return _later_pieces(await self._model.astream_chat(messages), rc_about)
        return _text(await self._model.achat(messages), rc_about)

    def _messages(self, query: str, texts: Sequence[str], nodes: Sequence[NodeWithScore]) -> list[ChatMessage]:
        passages = [Passage.of(one.node) for one in nodes] if nodes else [Passage(text) for text in texts]
        system = self._model.system_prompt
        first = [ChatMessage(system, role=MessageRole.SYSTEM)] if system else []
        return [*first, QuestionOverNodes(query, passages)]

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        """Refuse them: the words around chunks are the index's."""
        for name, prompt in prompts.items():
            raise _unused(name, prompt)


def _check_given(options: Mapping[str, Any]) -> None:
    """Refuse what LlamaIndex's own synthesizers make use of, and this one does not."""
    for name, value in options.items():
        if value is not None and (name == "output_cls" or name.endswith("_template")):
            raise _unused(name, value)


def _unused(name: str, value: object) -> InvalidArgument:
    what = getattr(value, "__name__", type(value).__name__)
    return InvalidArgument(
        f"a RagCacheSynthesizer asks in the index's own words and answers in text, so it has no use for {name}={what}; "
        f"use LlamaIndex's synthesizer, index.as_query_engine(llm, {name}=...): nodes are found in any prompt"
    )


def _text(response: ChatResponse, into: dict[str, Any] | None) -> str:
    """The answer; what happened is entered."""
    _note(response, into)
    return (response.message.content or "").rstrip()


def _pieces(responses: ChatResponseGen, into: dict[str, Any] | None) -> Generator[str, None, None]:
    """The answer's pieces; at the end what happened is entered."""
    for response in responses:
        _note(response, into)
        yield response.delta or ""


async def _later_pieces(responses: ChatResponseAsyncGen, into: dict[str, Any] | None) -> AsyncGenerator[str, None]:
    """The same, each piece from another thread."""
    async for response in responses:
        _note(response, into)
        yield response.delta or ""


def _note(response: ChatResponse, into: dict[str, Any] | None) -> None:
    """Enter what happened, as far as a response says."""
    if into is not None:
        into.update(response.additional_kwargs.get("ragcache", {}))


def _with(response: RESPONSE_TYPE, told: dict[str, Any]) -> RESPONSE_TYPE:
    if response.metadata is not None:
        response.metadata["ragcache"] = told
    return response
