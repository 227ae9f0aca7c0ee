"""A LangChain chat model that answers from cached chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, LangSmithParams
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from langchain_ragcache.asking import Asking
from langchain_ragcache.messages import turns
from ragcache import RagCache
from ragcache.stream import Stream, spoken


class ChatRagCache(Asking, BaseChatModel):
    """A chat model whose prompts are answered from the KV of the chunks that stand in them.

    Chunks come, in this order, from `documents=` (a call's, or bound), from content blocks that are plain-text
    documents or say `{"extras": {"chunk": True}}`, from `<chunk>` blocks, and from any known text that stands in a
    message. What is none is prefilled. `response_metadata["ragcache"]` says what happened.

    Parameters
    ----------
    rag : RagCache, optional
        The index; without it, the one at `index`.
    **fields
        As below.

    Examples
    --------
    >>> model = ChatRagCache(rag, method="auto", max_tokens=64)  # doctest: +SKIP
    >>> model.invoke("Who leads the Tide project?", documents=retriever.invoke("Tide project"))  # doctest: +SKIP
    """

    def __init__(self, rag: RagCache | str | Path | None = None, **fields: Any) -> None:
        super().__init__(rag, **fields)

    @property
    def _llm_type(self) -> str:
        return "ragcache"

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """A model is its fields; whoever loads them opens the index at `index`."""
        return True

    @classmethod
    def get_lc_namespace(cls) -> list[str]:
        """Where LangChain's loader finds the class."""
        return ["langchain_ragcache", "chat_models"]

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop, **kwargs)
        params["ls_provider"] = "ragcache"
        params.setdefault("ls_model_name", self.index)  # whose model it is
        return params

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        documents: Sequence[Document | str] | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        stream = self.asked(self._turns(messages), documents, stop, kwargs)
        message = AIMessage(
            stream.answer.text, response_metadata=self.about(stream), usage_metadata=_usage(stream)
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        documents: Sequence[Document | str] | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        stream = self.asked(self._turns(messages), documents, stop, kwargs)
        for piece in spoken(stream):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=piece))
            if run_manager:
                run_manager.on_llm_new_token(piece, chunk=chunk)
            yield chunk
        last = AIMessageChunk(
            content="", response_metadata=self.about(stream), usage_metadata=_usage(stream), chunk_position="last"
        )
        yield ChatGenerationChunk(message=last)

    def _turns(self, messages: Sequence[BaseMessage]) -> Any:
        return turns(messages, self.opened().engine.chunk)


def _usage(stream: Stream) -> UsageMetadata:
    """Tokens of the prompt and of the answer; of the prompt's, those read from the cache, and those read in vain."""
    answer = stream.answer
    tokens, said = answer.report.tokens, len(answer.token_ids)
    read = cast(InputTokenDetails, {"cache_read": tokens.reused, "recomputed": tokens.recomputed})
    asked = tokens.context + tokens.question
    return UsageMetadata(
        input_tokens=asked, output_tokens=said, total_tokens=asked + said, input_token_details=read
    )
