"""A question over nodes, as a message of a conversation."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import MetadataMode, NodeWithScore

from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.prompt import BEFORE_CHUNKS, BEFORE_QUESTION, CHUNK_END


class QuestionOverNodes(ChatMessage):
    """A user's question over nodes: a `RagCacheLLM` takes them as nodes.

    Whoever else reads the message reads the words of the built-in template.

    Parameters
    ----------
    question : str
        The user's words.
    passages : sequence of (str, str or None)
        The texts that it is asked over, each with its node's id where it has one; blank ones are left out.
    """

    _question: str = PrivateAttr()
    _passages: list[tuple[str, str | None]] = PrivateAttr()

    def __init__(self, question: str, passages: Sequence[tuple[str, str | None]]) -> None:
        said = [(text.strip(), name) for text, name in passages if text.strip()]
        notes = "".join(text + CHUNK_END for text, _ in said)
        super().__init__(f"{BEFORE_CHUNKS}{notes}{BEFORE_QUESTION}{question.strip()}", role=MessageRole.USER)
        self._question, self._passages = question, said

    @property
    def question(self) -> str:
        """The user's words."""
        return self._question

    def chunks(self, engine: Engine) -> list[Chunk]:
        """What it is asked over, as an engine's chunks."""
        return [engine.chunk(text, name) for text, name in self._passages]


def passages_of(nodes: Sequence[NodeWithScore]) -> list[tuple[str, str | None]]:
    """Nodes' own texts and ids."""
    return [(one.node.get_content(MetadataMode.NONE), one.node.node_id) for one in nodes]
