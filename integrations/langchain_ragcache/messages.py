"""LangChain's messages in the engine's terms."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage

from ragcache import Message
from ragcache.engine.chat import merge_messages
from ragcache.errors import InvalidArgument
from ragcache.index.chunks import Chunk

#: Blocks of earlier answers that are not said to the user.
_UNSAID = ("reasoning", "thinking", "redacted_thinking", "tool_call", "tool_use", "invalid_tool_call")

#: Gives the index's chunk of a text, the one of a name first.
Finder = Callable[[str, str | None], Chunk]


def turns(messages: Sequence[BaseMessage], find: Finder) -> list[Message]:
    """A conversation; neighbours of one role are one turn, and empty messages are left out."""
    said = [Message(_role(message), _content(message, find)) for message in messages]
    return merge_messages(message for message in said if message.content)


def check_question(messages: Sequence[BaseMessage]) -> None:
    """Refuse to take for the question over documents what is not the user's.

    Raises
    ------
    InvalidArgument
        If the last message that says anything is a system's, an assistant's, or a tool's.
    """
    last = next((message for message in reversed(messages) if message.content), None)
    if last is None or isinstance(last, HumanMessage) or (isinstance(last, ChatMessage) and _role(last) == "user"):
        return
    raise InvalidArgument(
        f"over documents, the last message must be the user's question, but it is of type {last.type!r}; ask behind "
        "it, or leave out documents="
    )


def _role(message: BaseMessage) -> str:
    if isinstance(message, ChatMessage):
        return {"human": "user", "ai": "assistant"}.get(message.role, message.role)
    if isinstance(message, SystemMessage):
        return "system"
    return "assistant" if isinstance(message, AIMessage) else "user"


def _content(message: BaseMessage, find: Finder) -> str | tuple[str | Chunk, ...]:
    if isinstance(message.content, str):
        return message.content
    return tuple(part for block in message.content for part in _parts(block, find))


def _parts(block: str | dict[str, Any], find: Finder) -> Iterator[str | Chunk]:
    """What a content block says: text; or a chunk, if it is a plain-text document or its extras say `chunk`."""
    if isinstance(block, str):
        yield block
        return
    kind, extras = block.get("type"), block.get("extras") or {}
    chunk = extras.get("chunk")
    if kind in ("text", "text-plain") and not isinstance(block.get("text"), str):
        raise InvalidArgument(f"a content block of type {kind!r} has no text of its own, and nothing is fetched")
    if kind == "text-plain" or (kind == "text" and chunk):
        yield find(block["text"], chunk if isinstance(chunk, str) else block.get("id"))
    elif kind == "text":
        yield block["text"]
    elif kind not in _UNSAID:
        raise InvalidArgument(f"a content block is of type {kind!r}, but the model reads text and text-plain only")
