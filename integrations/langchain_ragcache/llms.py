"""A LangChain text-completion model that answers from cached chunks; chat models are LangChain's own preference."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseLLM
from langchain_core.outputs import Generation, GenerationChunk, LLMResult

from langchain_ragcache.asking import Asking, Documents
from langchain_ragcache.batching import at_once
from ragcache import RagCache
from ragcache.engine.stream import strip_leading_space


class RagCacheLLM(Asking, BaseLLM):
    """Continues a string as it is, from the KV of the chunks that stand in it.

    Strings that come together, as `batch` and `generate` hand them over, are continued at once. `documents=` asks the
    string as a question over them, in the built-in template. `generation_info["ragcache"]` says what happened.
    """

    cache: Any = False  # LangChain's key of a text model's answer knows neither documents nor a call's options

    def __init__(self, rag: RagCache | str | Path | None = None, **fields: Any) -> None:
        super().__init__(rag, **fields)

    @property
    def _llm_type(self) -> str:
        return "ragcache"

    def _generate(
        self,
        prompts: list[str],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        documents: Documents | None = None,
        **kwargs: Any,
    ) -> LLMResult:
        def made(prompt: str) -> Generation:
            stream = self.asked(prompt, documents, stop, kwargs)
            return Generation(text=stream.answer.text, generation_info=self.about(stream))

        done = at_once(self.opened(), [partial(made, prompt) for prompt in prompts])
        return LLMResult(generations=[[one] for one in done])

    def _stream(
        self,
        prompt: str,
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        documents: Documents | None = None,
        **kwargs: Any,
    ) -> Iterator[GenerationChunk]:
        stream = self.asked(prompt, documents, stop, kwargs)
        for piece in strip_leading_space(stream):
            if run_manager:
                run_manager.on_llm_new_token(piece)
            yield GenerationChunk(text=piece)
        yield GenerationChunk(text="", generation_info=self.about(stream))
