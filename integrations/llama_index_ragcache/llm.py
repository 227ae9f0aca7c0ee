"""A LlamaIndex model that answers from cached chunks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any

from llama_index.core.base.llms.generic_utils import messages_to_prompt
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
    TextBlock,
)
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback

from llama_index_ragcache.gathering import Gathered
from llama_index_ragcache.questions import QuestionOverNodes
from ragcache import Message, RagCache, Sampling
from ragcache.engine.chat import merge_messages
from ragcache.engine.stream import Stream, strip_leading_space
from ragcache.errors import InvalidArgument
from ragcache.model.options import check_options, override

_SYSTEM = (MessageRole.SYSTEM, MessageRole.DEVELOPER)
_ASSISTANT = (MessageRole.ASSISTANT, MessageRole.MODEL, MessageRole.CHATBOT)
_UNSAID = ("thinking", "tool_call")  # blocks of earlier answers that are not said to the user
_DONE = object()


class RagCacheLLM(CustomLLM):
    """A model whose prompts are answered from the KV of the chunks that stand in them.

    Known chunks are found in the prompt by their text, wherever a template put them, metadata around them or not; all
    other text is prefilled. A chat is written by the model's own chat template, or by `messages_to_prompt` where that
    is given. `additional_kwargs["ragcache"]` of a response says what happened.

    Parameters
    ----------
    rag : RagCache
        The index.
    **fields
        As below; each may also be given with a call.
    """

    method: str | None = Field(default=None, description="Row of the method table; the index's own by default.")
    recompute: float | None = Field(default=None, description="Share of the reused tokens to recompute.")
    max_tokens: int = Field(default=128, description="Most tokens of an answer.")
    temperature: float = Field(default=0.0, description="0 is greedy.")
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0
    seed: int | None = None
    stop: list[str] = Field(default_factory=list, description="Strings that end an answer.")

    _rag: RagCache = PrivateAttr()
    _gathered: Gathered = PrivateAttr()

    def __init__(self, rag: RagCache, **fields: Any) -> None:
        if not isinstance(rag, RagCache):
            raise InvalidArgument(f"a RagCacheLLM answers from a RagCache, not {rag!r}; RagCache.open(...) gives one")
        check_options(type(self).__name__, fields, type(self).model_fields)
        super().__init__(**fields)
        self._rag = rag
        self._gathered = Gathered(rag.reader)

    @classmethod
    def class_name(cls) -> str:
        """Name in serialised form."""
        return "RagCacheLLM"

    @property
    def rag(self) -> RagCache:
        """The index."""
        return self._rag

    @property
    def metadata(self) -> LLMMetadata:
        """The model's limits; it chats if it has a chat template."""
        reader = self._rag.reader
        return LLMMetadata(
            context_window=reader.limit,
            num_output=self.max_tokens,
            is_chat_model=bool(getattr(reader.tokenizer, "chat_template", None)),
            model_name=reader.name,
        )

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Continue a prompt."""
        return _completed(self._complete(self._wrapped(prompt, formatted), kwargs))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        """Continue a prompt, piece by piece."""
        return _completing(self._complete(self._wrapped(prompt, formatted), kwargs))

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Answer a conversation."""
        return _chatted(self._answer(messages, kwargs))

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        """Answer a conversation, piece by piece."""
        return _chatting(self._answer(messages, kwargs))

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Continue a prompt in another thread; prompts that come together are continued at once."""
        made: CompletionResponse = await self._gathered.ask(
            lambda joined: _completed(self._complete(self._wrapped(prompt, formatted), kwargs, joined=joined))
        )
        return made

    @llm_completion_callback()
    async def astream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseAsyncGen:
        """Continue a prompt in another thread, piece by piece."""
        wrapped = self._wrapped(prompt, formatted)
        return elsewhere(_completing(await asyncio.to_thread(self._complete, wrapped, kwargs)))

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Answer a conversation in another thread; those that come together are answered at once."""
        made: ChatResponse = await self._gathered.ask(
            lambda joined: _chatted(self._answer(messages, kwargs, joined=joined))
        )
        return made

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        """Answer a conversation in another thread, piece by piece."""
        return elsewhere(_chatting(await asyncio.to_thread(self._answer, messages, kwargs)))

    def _wrapped(self, prompt: str, formatted: bool) -> str:
        """A prompt in `query_wrapper_prompt` and `completion_to_prompt`, unless it was put into them before."""
        if formatted:
            return prompt
        outer, write = self.query_wrapper_prompt, self.completion_to_prompt
        wrapped = outer.format(query_str=prompt) if outer else prompt
        return write(wrapped) if write else wrapped

    def _complete(self, prompt: str | Sequence[Message], options: dict[str, Any], *, joined: bool = False) -> Stream:
        return self._rag.engine.complete(prompt, **self._row(options, joined))

    def _answer(self, messages: Sequence[ChatMessage], options: dict[str, Any], *, joined: bool = False) -> Stream:
        write = self.messages_to_prompt
        if write not in (None, messages_to_prompt):  # a function of the user's own, in place of LlamaIndex's
            return self._complete(write(messages), options, joined=joined)
        *earlier, last = messages or [ChatMessage()]
        if not isinstance(last, QuestionOverNodes):
            return self._complete(_turns(messages), options, joined=joined)
        engine, history = self._rag.engine, _turns(earlier)
        return engine.stream(last.question, last.chunks(engine), history=history, **self._row(options, joined))

    def _row(self, options: dict[str, Any], joined: bool) -> dict[str, Any]:
        """What the engine is asked for: method, share to recompute, sampling; `options` before the model's own."""
        check_options(f"a call of {type(self).__name__}", options, {*_FIELDS, "max_new_tokens"})
        how = override(self.model_dump(include=set(_FIELDS)), options)
        # Requests that are answered at once gain by what they share, whatever one alone is sooner with.
        method = how["method"] or (self._rag.method if joined else None)
        return {"method": method, "recompute": how["recompute"], "sampling": Sampling.of(how)}


_FIELDS = set(RagCacheLLM.model_fields) - set(CustomLLM.model_fields)


async def elsewhere(pieces: Iterator[Any]) -> AsyncGenerator[Any, None]:
    """A generator's pieces, each made in another thread."""
    while (piece := await asyncio.to_thread(next, pieces, _DONE)) is not _DONE:
        yield piece


def _turns(messages: Sequence[ChatMessage]) -> list[Message]:
    """A conversation; neighbours of one role are one turn, and empty messages are left out."""
    said = [Message(_role(message), _text(message)) for message in messages]
    return merge_messages(message for message in said if message.content)


def _role(message: ChatMessage) -> str:
    return "system" if message.role in _SYSTEM else "assistant" if message.role in _ASSISTANT else "user"


def _text(message: ChatMessage) -> str:
    for block in message.blocks:
        if not isinstance(block, TextBlock) and block.block_type not in _UNSAID:
            raise InvalidArgument(f"a message holds a {block.block_type} block, but the model reads text only")
    return message.content or ""


def about(stream: Stream) -> dict[str, Any]:
    """What is said beside a finished answer."""
    report = stream.answer.report
    said = len(stream.answer.token_ids)
    asked = report.tokens.context + report.tokens.question
    return {
        "prompt_tokens": asked,
        "completion_tokens": said,
        "total_tokens": asked + said,
        "ragcache": report.as_dict(),
    }


def _completed(stream: Stream) -> CompletionResponse:
    return CompletionResponse(text=stream.answer.text, additional_kwargs=about(stream))


def _completing(stream: Stream) -> CompletionResponseGen:
    text = ""
    for piece in strip_leading_space(stream):
        text += piece
        yield CompletionResponse(text=text, delta=piece)
    yield CompletionResponse(text=text, delta="", additional_kwargs=about(stream))


def _chatted(stream: Stream) -> ChatResponse:
    message = ChatMessage(role=MessageRole.ASSISTANT, content=stream.answer.text)
    return ChatResponse(message=message, additional_kwargs=about(stream))


def _chatting(stream: Stream) -> ChatResponseGen:
    for response in _completing(stream):
        message = ChatMessage(role=MessageRole.ASSISTANT, content=response.text)
        yield ChatResponse(message=message, delta=response.delta, additional_kwargs=response.additional_kwargs)
