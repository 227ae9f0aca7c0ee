"""What both models have in common: an index, a method, and how tokens are chosen."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from pydantic import BaseModel, Field

from langchain_ragcache.batching import joined
from langchain_ragcache.listing import name_of
from ragcache import Message, RagCache, Sampling
from ragcache.checks import check_kind
from ragcache.engine.stream import Stream
from ragcache.errors import InvalidArgument
from ragcache.model.options import check_options, override

#: What `documents=` takes: documents, texts, and what `similarity_search_with_score` gives, best first.
Documents = Sequence[Document | str | tuple[Document, float]] | Document

_OPENING = threading.Lock()
#: What LangChain gives every model, for the sake of those behind a network: not every model makes use of it.
_STANDARD = {"timeout", "max_retries", "api_key", "streaming"}


class Asking(BaseModel):
    """The fields of a model that answers from an index.

    Any of them but `index` and `model` may be given anew with each call, or bound: `model.bind(recompute=0.15)`.
    """

    index: str = Field(default="./index")
    """Folder of the index; opened at the first question, if no `RagCache` was handed over."""
    model: str | None = None
    """Hub id or folder of the model that made the index; the index knows it."""
    method: str | None = None
    """Row of the method table; the index's own by default."""
    recompute: float | None = None
    """Share of the reused tokens to recompute; the method's own by default."""
    max_tokens: int = 128
    """Most tokens of an answer."""
    temperature: float = 0.0
    """0 is greedy."""
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0
    seed: int | None = None
    stop: list[str] | None = None
    """Strings that end an answer, none of them part of it."""

    rag: Any = Field(default=None, exclude=True, repr=False)
    """The `RagCache` that was handed over; no part of what is written down."""
    opened_indexes: Any = Field(default_factory=dict, exclude=True, repr=False)
    """By folder and model: what was opened here, or by another model that was made from this one's fields."""

    def __init__(self, rag: RagCache | str | Path | None = None, **fields: Any) -> None:
        if isinstance(rag, RagCache):
            fields = {"index": str(rag.index.path), "model": rag.reader.name, **fields}
            if Path(fields["index"]).resolve() == rag.index.path.resolve():  # else another folder is configured
                fields["rag"] = rag
        elif isinstance(rag, str | PathLike):
            fields = {"index": str(rag), **fields}
        elif rag is not None:
            raise InvalidArgument(f"rag is {rag!r:.80}; give what RagCache.open(...) gives, or the index's folder")
        check_options(type(self).__name__, fields.keys() - _STANDARD, type(self).model_fields)
        super().__init__(**fields)

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return self.model_dump(include=set(Asking.model_fields))

    def opened(self) -> RagCache:
        """The index; opened now if it was not yet."""
        with _OPENING:
            if self.rag is None:
                named = self.index, self.model
                if named not in self.opened_indexes:
                    self.opened_indexes[named] = RagCache.open(self.index, model=self.model, create=False)
                self.rag = self.opened_indexes[named]
            rag: RagCache = self.rag
            return rag

    def get_token_ids(self, text: str) -> list[int]:
        """The text's tokens, as the index's model reads it."""
        own = getattr(self, "custom_get_token_ids", None)
        return own(text) if own else list(self.opened().index.template.plain(text))

    def asked(
        self,
        prompt: str | Sequence[Message],
        documents: Documents | None,
        stop: Sequence[str] | None,
        options: dict[str, Any],
    ) -> Stream:
        """The answer to a prompt; over documents, in the built-in template, where there are some."""
        check_options(f"a call of {type(self).__name__}", options, _CALLED)
        rag, how = self.opened(), override(self._identifying_params, options)
        if how["model"] not in (None, self.model, rag.reader.name):
            raise InvalidArgument(
                f"the index {self.index} holds KV of {rag.reader.name}, not of {how['model']}; another model needs an "
                "index of its own"
            )
        sampling = Sampling.of({**how, "stop": stop or how["stop"]})
        # Requests that are answered at once gain by what they share, whatever one alone is sooner with.
        method = how["method"] or (rag.method if joined() else None)
        row = {"method": method, "recompute": how["recompute"], "sampling": sampling}
        if isinstance(documents, str | Document):
            documents = [documents]  # or a text would be as many chunks as it has characters
        if not (documents and prompt):
            return rag.engine.complete(prompt, **row)
        *history, last = [Message("user", prompt)] if isinstance(prompt, str) else prompt
        named = [(text, name) for text, name in map(_named, documents) if text.strip()]
        chunks = [rag.engine.chunk(text, name) for text, name in named]
        return rag.engine.stream(last.text, chunks, history=history, **row)

    def about(self, stream: Stream) -> dict[str, Any]:
        """What a model says of a finished answer."""
        answer = stream.answer
        return {
            "model_name": answer.model,
            "finish_reason": stream.finish_reason,
            "ragcache": answer.report.as_dict(),
        }


_CALLED = set(Asking.model_fields) - {"index", "rag", "opened_indexes"} | {"max_new_tokens", "documents"}


def _named(document: Document | str | tuple[Document, float]) -> tuple[str, str | None]:
    """A document's text and name; a score beside it says nothing to the model."""
    if isinstance(document, str):
        return document, None
    one = document[0] if isinstance(document, tuple) and document else document
    check_kind("one of documents=", one, Document, "documents, texts, or pairs of a document and its score")
    return one.page_content, name_of(one)
