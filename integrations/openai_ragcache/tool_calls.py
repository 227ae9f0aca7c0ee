"""Replies that call tools: read where a whole reply is clean, and words as they are wherever it is not.

Two forms are read: Hermes' and Qwen's, `<tool_call>{"name": …, "arguments": {…}}</tool_call>` once or more behind what
else is said; and a reply that is nothing but such an object, or a list of some, as Llama and Mistral write it.
"""

import json
import re
from collections.abc import Collection
from typing import Any

from openai_ragcache.names import new_id

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_BARE = re.compile(r"\s*(?:\Z|\{|\[\s*(?:\{|\Z))")  # how JSON begins that may be a call


class ToolReply:
    """A reply to a request with tools, as it comes; what may be a call is held back until the end says.

    Parameters
    ----------
    tools : collection of str
        The names of those that were offered; without any, all is words.
    one : bool
        Whether the first call is all that is wanted.
    """

    def __init__(self, tools: Collection[str], *, one: bool = False) -> None:
        self._tools = tools
        self._one = one
        self._text = ""
        self._given = 0

    def take(self, piece: str) -> str:
        """Take in a piece; gives the words that are certain to be some."""
        self._text += piece
        return self._words_up_to(self._certain())

    def end(self) -> tuple[str, list[dict[str, Any]]]:
        """The rest of the words, and the calls; where there are some, they end the reply."""
        front, calls = _read(self._text, self._tools)
        rest = self._words_up_to(len(front))
        return rest, [_as_call(number, call) for number, call in enumerate(calls[: 1 if self._one else None])]

    def _words_up_to(self, stop: int) -> str:
        start, self._given = self._given, max(self._given, stop)
        return self._text[start : self._given]

    def _certain(self) -> int:
        """How many characters can be no part of a call, whatever comes next."""
        if not self._tools:
            return len(self._text)
        if _BARE.match(self._text):
            return 0
        if (found := self._text.find(_OPEN)) >= 0:
            return found
        begun = [size for size in range(1, len(_OPEN)) if self._text.endswith(_OPEN[:size])]
        return len(self._text) - max(begun, default=0)


def _read(text: str, tools: Collection[str]) -> tuple[str, list[dict[str, Any]]]:
    """What is said in front of calls, and those; the whole text and none where anything in it is no call of a tool."""
    front, *blocks = text.split(_OPEN)
    if blocks and not all(block.rstrip().endswith(_CLOSE) for block in blocks):
        return text, []
    said = [block.rstrip().removesuffix(_CLOSE) for block in blocks] or [text]
    try:
        found = [json.loads(one) for one in said]
    except (ValueError, RecursionError):
        return text, []
    found = found[0] if not blocks and isinstance(found[0], list) else found
    calls = [call for one in found if (call := _find_call(one, tools)) is not None]
    return (front if blocks else "", calls) if calls and len(calls) == len(found) else (text, [])


def _find_call(value: Any, tools: Collection[str]) -> dict[str, Any] | None:
    """The call that a JSON value is, if it is one: the name of a tool that was offered, and arguments by name."""
    if not isinstance(value, dict) or value.keys() - {"name", "arguments", "parameters", "id"}:
        return None
    arguments = value.get("arguments", value.get("parameters"))
    known = isinstance(value.get("name"), str) and value["name"] in tools
    return {"name": value["name"], "arguments": arguments} if known and isinstance(arguments, dict) else None


def _as_call(number: int, call: dict[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(call["arguments"], ensure_ascii=False)
    return {
        "index": number,
        "id": new_id("call"),
        "type": "function",
        "function": {"name": call["name"], "arguments": arguments},
    }
