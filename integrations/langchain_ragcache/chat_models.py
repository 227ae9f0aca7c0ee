"""A LangChain chat model that answers from cached chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Never, cast
from uuid import UUID

from langchain_core.callbacks import CallbackManagerForLLMRun, Callbacks
from langchain_core.language_models import BaseChatModel, LangSmithParams, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult, LLMResult
from langchain_core.runnables import RunnableConfig, run_in_executor
from langchain_core.runnables.config import get_config_list

from langchain_ragcache.asking import Asking, Documents
from langchain_ragcache.batching import at_once
from langchain_ragcache.messages import check_question, turns
from ragcache import RagCache
from ragcache.engine.stream import Stream, strip_leading_space
from ragcache.errors import UnsupportedModel


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

    streaming: bool = False
    """Whether `invoke` too makes its answer piece by piece, for the sake of callbacks."""

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
        documents: Documents | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        stream = self._ask(messages, documents, stop, kwargs)
        message = AIMessage(stream.answer.text, response_metadata=self.about(stream), usage_metadata=_usage(stream))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        documents: Documents | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        stream = self._ask(messages, documents, stop, kwargs)
        for piece in strip_leading_space(stream):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=piece))
            if run_manager:
                run_manager.on_llm_new_token(piece, chunk=chunk)
            yield chunk
        last = AIMessageChunk(
            content="", response_metadata=self.about(stream), usage_metadata=_usage(stream), chunk_position="last"
        )
        yield ChatGenerationChunk(message=last)

    # -- several at once: their forwards are joined, which reads every weight once for all of them

    def batch(
        self,
        inputs: list[LanguageModelInput],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[AIMessage]:
        """Answer several inputs at once, as many as the first config's `max_concurrency` says, or 16."""
        if not inputs:
            return []
        configs = get_config_list(config, len(inputs))

        def one(place: int) -> Any:
            try:
                return self.invoke(inputs[place], configs[place], **kwargs)
            except Exception as error:
                if not return_exceptions:
                    raise
                return error

        requests = [partial(one, place) for place in range(len(inputs))]
        return at_once(self.opened(), requests, configs[0].get("max_concurrency"))

    async def abatch(
        self,
        inputs: list[LanguageModelInput],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[AIMessage]:
        """The same in another thread."""
        answer = partial(self.batch, inputs, config, return_exceptions=return_exceptions, **kwargs)
        return await run_in_executor(None, answer)

    def generate(
        self,
        messages: list[list[BaseMessage]],
        stop: list[str] | None = None,
        callbacks: Callbacks = None,
        *,
        run_id: UUID | None = None,
        **kwargs: Any,
    ) -> LLMResult:
        """Answer several conversations at once."""
        made = super().generate
        requests = [
            partial(made, [one], stop, callbacks, run_id=None if place else run_id, **kwargs)
            for place, one in enumerate(messages)
        ]
        parts = at_once(self.opened(), requests)
        if len(parts) == 1:
            return parts[0]
        runs = [run for part in parts for run in part.run or ()]
        return LLMResult(generations=[said for part in parts for said in part.generations], llm_output={}, run=runs)

    async def agenerate(
        self,
        messages: list[list[BaseMessage]],
        stop: list[str] | None = None,
        callbacks: Callbacks = None,
        **kwargs: Any,
    ) -> LLMResult:
        """The same in another thread; one conversation as LangChain does it."""
        if len(messages) == 1:
            return await super().agenerate(messages, stop, callbacks, **kwargs)
        return await run_in_executor(None, partial(self.generate, messages, stop, callbacks, **kwargs))

    # -- what LangChain asks of a model beside answers

    def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Sequence[Any] | None = None) -> int:
        """Tokens of a conversation as the model's chat template writes it, open for an answer."""
        template = self.opened().index.template
        said = [{"role": turn.role, "content": turn.text} for turn in self._turns(messages)]
        try:
            return len(template.markup(template.conversation(said))) if said else 0
        except UnsupportedModel:  # a part of a conversation, which the template does not take
            return sum(len(template.plain(turn["content"])) for turn in said)

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Never:
        """Refuse: nothing in ragcache constrains what a model writes.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError(
            "ChatRagCache answers from chunks and calls no tools, so neither bind_tools nor with_structured_output "
            "works; let another model call the tools, and this one answer over what they give"
        )

    def _ask(
        self,
        messages: list[BaseMessage],
        documents: Documents | None,
        stop: list[str] | None,
        options: dict[str, Any],
    ) -> Stream:
        if documents:
            check_question(messages)
        return self.asked(self._turns(messages), documents, stop, options)

    def _turns(self, messages: Sequence[BaseMessage]) -> Any:
        return turns(messages, self.opened().engine.chunk)


def _usage(stream: Stream) -> UsageMetadata:
    """Tokens of the prompt and of the answer; of the prompt's, those read from the cache, and those read in vain."""
    answer = stream.answer
    tokens, said = answer.report.tokens, len(answer.token_ids)
    read = cast(InputTokenDetails, {"cache_read": tokens.reused, "recomputed": tokens.recomputed})
    asked = tokens.context + tokens.question
    return UsageMetadata(input_tokens=asked, output_tokens=said, total_tokens=asked + said, input_token_details=read)
