"""A question over nodes, as a message of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode

from llama_index_ragcache.listing import entry_of
from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.prompt import BEFORE_CHUNKS, BEFORE_QUESTION, CHUNK_END


@dataclass(frozen=True)
class Passage:
    """A text that is asked over.

    Attributes
    ----------
    text : str
        What it says.
    node : str or None
        The id of its node, where it has one.
    document : str
        What reports call its document, where the index does not know it.
    """

    text: str
    node: str | None = None
    document: str = ""

    @classmethod
    def of(cls, node: BaseNode) -> Self:
        """A node's own text."""
        entry = entry_of(node)
        return cls(entry.text, entry.name, entry.title)


class QuestionOverNodes(ChatMessage):
    """A user's question over nodes: a `RagCacheLLM` takes them as nodes.

    Whoever else reads the message reads the words of the built-in template.

    Parameters
    ----------
    question : str
        The user's words.
    passages : sequence of Passage
        What it is asked over; blank ones are left out.
    """

    _question: str = PrivateAttr()
    _passages: list[Passage] = PrivateAttr()

    def __init__(self, question: str, passages: Sequence[Passage]) -> None:
        said = [one for one in passages if one.text.strip()]
        notes = "".join(one.text.strip() + CHUNK_END for one in said)
        super().__init__(f"{BEFORE_CHUNKS}{notes}{BEFORE_QUESTION}{question.strip()}", role=MessageRole.USER)
        self._question, self._passages = question, said

    @property
    def question(self) -> str:
        """The user's words."""
        return self._question

    def chunks(self, engine: Engine) -> list[Chunk]:
        """What it is asked over, as an engine's chunks."""
        return [engine.chunk(one.text, one.node, called=one.document) for one in self._passages]
