"""Messages of a conversation, and a question over chunks as one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragcache.checks import check_kind
from ragcache.index.chunks import Chunk
from ragcache.prompt import BEFORE_CHUNKS, BEFORE_QUESTION, CHUNK_END, SYSTEM


@dataclass(frozen=True)
class Message:
    """One message of a conversation.

    Attributes
    ----------
    role : str
        Who speaks: "system", "user", "assistant" or "tool", as the model's chat template calls them.
    content : str or tuple of (str or Chunk)
        What is said: text, or text and chunks that the caller knows to be chunks, one after the other.
    more : mapping
        What else a chat template reads: an assistant's `tool_calls`; a tool's `tool_call_id` and `name`.
    """

    role: str
    content: str | tuple[str | Chunk, ...]
    more: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def text(self) -> str:
        """What is said, chunks and all."""
        parts = (part if isinstance(part, str) else part.text for part in contents(self))
        return "".join(parts)


def check_history(history: Sequence[Message]) -> None:
    """Refuse what is no list of messages.

    Raises
    ------
    InvalidArgument
        If one of them is something else.
    """
    for one in history:
        check_kind("one of history=", one, Message, "messages, Message('user', 'What is it?') for instance")


def build_chat(
    question: str, chunks: Sequence[Chunk], history: Sequence[Message], system: str = SYSTEM
) -> list[Message]:
    """A question over chunks in the built-in template, behind earlier turns, whose system message stays theirs."""
    first = [] if history and history[0].role == "system" else [Message("system", system)]
    notes = [part for chunk in chunks for part in (chunk, CHUNK_END)]
    return merge_messages(
        [*first, *history, Message("user", (BEFORE_CHUNKS, *notes, BEFORE_QUESTION + question.strip()))]
    )


def merge_messages(messages: Iterable[Message]) -> list[Message]:
    """The same, with neighbours of one role as one message: many chat templates take no two in a row.

    Results of tools stay apart, and so does what calls them.
    """
    turns: list[Message] = []
    said: list[list[str | Chunk]] = []  # behind the first message of each turn
    for message in messages:
        alone = message.role == "tool" or message.more or (turns and turns[-1].more)
        if turns and turns[-1].role == message.role and not alone:
            said[-1] += ["\n\n", *contents(message)]
        else:
            turns.append(message)
            said.append([])
    return [
        Message(turn.role, (*contents(turn), *more)) if more else turn for turn, more in zip(turns, said, strict=True)
    ]


def contents(message: Message) -> tuple[str | Chunk, ...]:
    """What a message says, part by part."""
    return (message.content,) if isinstance(message.content, str) else message.content
