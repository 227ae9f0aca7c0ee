"""A LlamaIndex response synthesizer that hands nodes over as nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.response_synthesizers.base import QueryTextType
from llama_index.core.schema import MetadataMode, NodeWithScore
from llama_index.core.types import RESPONSE_TEXT_TYPE

from llama_index_ragcache.llm import RagCacheLLM, elsewhere
from ragcache.engine.stream import Stream, strip_leading_space
from ragcache.errors import InvalidArgument
from ragcache.index.chunks import Chunk

if TYPE_CHECKING:
    from collections.abc import Generator


class RagCacheSynthesizer(BaseSynthesizer):
    """Answers over retrieved nodes in the built-in template: the answer that `ragcache ask` gives.

    The response's metadata has a `ragcache` entry that says what happened; a streamed one gets it with its last piece.

    Parameters
    ----------
    llm : RagCacheLLM
        Whose index, method and sampling answer.
    streaming : bool
        Whether responses are streams.
    **kwargs
        As in LlamaIndex.
    """

    def __init__(self, llm: RagCacheLLM, *, streaming: bool = False, **kwargs: Any) -> None:
        if not isinstance(llm, RagCacheLLM):
            raise InvalidArgument(f"a RagCacheSynthesizer asks a RagCacheLLM, not {type(llm).__name__}")
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
        stream = self._stream(query_str, text_chunks, rc_nodes)
        if self._streaming:
            return _told(stream, rc_about)
        return "".join(_told(stream, rc_about)).rstrip()

    async def aget_response(
        self,
        query_str: str,
        text_chunks: Sequence[str],
        rc_nodes: Sequence[NodeWithScore] = (),
        rc_about: dict[str, Any] | None = None,
        **response_kwargs: Any,
    ) -> RESPONSE_TEXT_TYPE:
        """Answer in another thread."""
        stream = await asyncio.to_thread(self._stream, query_str, text_chunks, rc_nodes)
        if self._streaming:
            return elsewhere(_told(stream, rc_about))
        return await asyncio.to_thread(lambda: "".join(_told(stream, rc_about)).rstrip())

    def _stream(self, query: str, texts: Sequence[str], nodes: Sequence[NodeWithScore]) -> Stream:
        engine = self._model.rag.engine
        named: list[tuple[str, str | None]] = [(text, None) for text in texts]
        if nodes:
            named = [(node.node.get_content(MetadataMode.NONE), node.node.node_id) for node in nodes]
        chunks: list[Chunk] = [engine.chunk(text, name) for text, name in named if text.strip()]
        return engine.stream(query, chunks, **self._model.row())

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        """The words around chunks are the index's."""


def _told(stream: Stream, into: dict[str, Any] | None) -> Generator[str, None, None]:
    """The answer's pieces; at the end what happened is entered."""
    yield from strip_leading_space(stream)
    if into is not None:
        into.update(stream.answer.report.as_dict())


def _with(response: RESPONSE_TYPE, told: dict[str, Any]) -> RESPONSE_TYPE:
    if response.metadata is not None:
        response.metadata["ragcache"] = told
    return response
