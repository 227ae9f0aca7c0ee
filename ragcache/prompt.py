"""A prompt as token ids: a list of `fresh` and `chunk` segments, split through the model's chat template.

Every segment is tokenised alone and the prompt is the concatenation of the ids, so a chunk has the same ids wherever
it stands and nothing is ever tokenised across a border. Text that comes from documents and users is plain text: it
cannot become a special token.
"""

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import Any, Protocol

from ragcache.errors import UnsupportedModel

SYSTEM = "You answer questions from the notes you are given."
BEFORE_CHUNKS = "Notes:\n\n"
BEFORE_QUESTION = "Question: "
CHUNK_END = "\n\n"  # a chunk carries its own end: what summarises it must not fall into whatever comes next
_CHUNKS, _QUESTION = "\u2042chunks\u2042", "\u2042question\u2042"
_CUT = "\u2042/\u2042"  # stands inside markup that is none
_TOOL, _CALL, _RESULT = "offered_tool", "called_with", "what it gave"
_PROBE_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": _TOOL, "description": "None.", "parameters": {"type": "object", "properties": {}}},
}
_PROBE_CALL = {"id": "probe0001", "type": "function", "function": {"name": "tool", "arguments": {"how": _CALL}}}
_PROBE = (
    {"role": "user", "content": _QUESTION},
    {"role": "assistant", "content": "", "tool_calls": [_PROBE_CALL]},
    {"role": "tool", "content": _RESULT, "name": "tool", "tool_call_id": "probe0001"},
)


@dataclass(frozen=True)
class Segment:
    """A run of tokens that stays together: fresh text, or one chunk.

    Attributes
    ----------
    token_ids : tuple of int
        The segment's tokens, tokenised on their own.
    text : str
        What the tokens were made from.
    chunk : str or None
        The chunk's id; None for what is fresh.
    link : bool
        Whether these are link tokens: no text, but embeddings that the model was tuned with.
    """

    token_ids: tuple[int, ...]
    text: str = ""
    chunk: str | None = None
    link: bool = False

    def __len__(self) -> int:
        return len(self.token_ids)


@dataclass(frozen=True)
class Prompt:
    """Segments in causal order, and where each one stands.

    A token's *slot* is its index in the concatenation; slot order is causal order. Its RoPE *position* equals the slot
    unless `positions` says otherwise.

    Attributes
    ----------
    segments : tuple of Segment
        In causal order. The last ones hold the question and the template's suffix.
    question : int
        Index of the segment that holds the question's text.
    positions : tuple of int or None
        RoPE position of each segment's first token; None means that positions equal slots.
    """

    segments: tuple[Segment, ...]
    question: int
    positions: tuple[int, ...] | None = field(default=None)

    @cached_property
    def token_ids(self) -> tuple[int, ...]:
        """All tokens, in slot order."""
        return tuple(chain.from_iterable(segment.token_ids for segment in self.segments))

    @property
    def text_ids(self) -> list[int]:
        """The tokens that stand for text: all but link tokens."""
        return [token for segment in self.segments if not segment.link for token in segment.token_ids]

    @cached_property
    def slots(self) -> tuple[int, ...]:
        """First slot of each segment, and the prompt's length as a last entry."""
        return tuple(accumulate((len(segment) for segment in self.segments), initial=0))

    @property
    def starts(self) -> tuple[int, ...]:
        """RoPE position of each segment's first token."""
        return self.slots[:-1] if self.positions is None else self.positions

    def __len__(self) -> int:
        return self.slots[-1]

    def span(self, segment: int) -> slice:
        """Slots of a segment."""
        return slice(self.slots[segment], self.slots[segment + 1])

    def chunks(self) -> list[int]:
        """Indices of the segments that are chunks."""
        return [i for i, segment in enumerate(self.segments) if segment.chunk is not None]


class Frame(Protocol):
    """What stands around a prompt's chunks."""

    def prompt(self, chunks: Sequence[Segment], question: str, *, prefix: Segment | None = None) -> Prompt:
        """A prompt of these chunks, in the order given."""


class Template:
    """Turns chunks and a question into a `Prompt`, the way the model was trained to be asked.

    The system text and the words around the chunks go *through* the model's chat template with two markers in them; the
    rendered string is cut at the markers, so prefix and suffix are right for every model: templates without a system
    role get the text in the user turn, templates that trim content trim nothing of ours, a thinking switch is off, and
    a template that prints the date is rendered once (an index freezes what it was ingested with).

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        The model's tokenizer.
    system : str
        The instruction in front of the chunks.
    """

    def __init__(self, tokenizer: Any, system: str = SYSTEM) -> None:
        self.system = system
        self._tokenizer = tokenizer
        # Whether text may become special tokens is a switch on the tokenizer itself, and other threads are using it.
        self._marking = copy.deepcopy(tokenizer)
        self._guard = _markup_pattern(tokenizer)
        before, between, after = _rendered(self._marking, system)
        self.prefix = self.markup(before)
        self._before_question = between
        self._suffix = self.markup(after)

    def chunk(self, text: str, chunk: str) -> Segment:
        """One chunk as a segment; its end belongs to it."""
        return Segment(self.plain(text + CHUNK_END), text, chunk)

    def question(self, text: str) -> tuple[Segment, Segment]:
        """The question's own words, and the template's suffix after them."""
        asked = self._before_question + text.strip()
        return Segment(self.plain(asked), asked), self._suffix

    def prompt(self, chunks: Sequence[Segment], question: str, *, prefix: Segment | None = None) -> Prompt:
        """Prefix, chunks in the order given, question, suffix.

        Parameters
        ----------
        chunks : sequence of Segment
            From `chunk`.
        question : str
            The user's words.
        prefix : Segment, optional
            The prefix an index was ingested with; the freshly rendered one otherwise.
        """
        segments = (prefix or self.prefix, *chunks, *self.question(question))
        return Prompt(segments, question=len(segments) - 2)

    def plain(self, text: str) -> tuple[int, ...]:
        """Token ids of text that must not become markup, whatever it contains."""
        pieces = self._pieces(text)
        return tuple(token for piece in pieces for token in _ids(self._tokenizer, piece, split_special_tokens=True))

    def _pieces(self, text: str) -> list[str]:
        """Text, cut inside all that would be markup."""
        # A cut keeps the tokenizer from seeing a markup string whole; special tokens are split anyway, but models also
        # register markup (role names, thinking tags) as ordinary added tokens.
        inside = (match.start() + 1 for match in self._guard.finditer(text)) if self._guard else ()
        cuts = [0, *inside, len(text)]
        return [text[start:end] for start, end in pairwise(cuts) if start < end]

    @property
    def beginning(self) -> Segment:
        """The token that the model expects at the beginning of a text, if it does."""
        return self.markup(_leading_bos(self._marking))

    def markup(self, text: str) -> Segment:
        """What a chat template wrote, where special tokens are meant as such."""
        pieces = text.split(_CUT)
        return Segment(tuple(token for piece in pieces for token in _ids(self._marking, piece)), "".join(pieces))

    def conversation(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> str:
        """Messages as the chat template writes them, open for the model's answer; hand it on to `markup`.

        Where it has no place for a system message, that stands in the one behind it. What `tools`, and messages beside
        `role` and `content`, hold is text: none of it becomes markup.

        Parameters
        ----------
        messages : sequence of mapping
            With `role` and `content`, no content part of another; the first may be the system's. Beside those they may
            have what templates know: `tool_calls`, and of the role `tool` a `name` and a `tool_call_id`.
        tools : sequence of mapping
            Functions that the model may call, as JSON schemas.

        Raises
        ------
        UnsupportedModel
            If the template refuses them, or has no place for tools and there are some.
        """
        if tools or any(message["role"] == "tool" or "tool_calls" in message for message in messages):
            self.check_tools()
        said = [{**self._guarded(message), "content": message["content"]} for message in messages]
        return _conversation(self._marking, said, self._guarded(tools))

    def check_tools(self) -> None:
        """Refuse tools if the chat template has no place for them, for their calls, or for what they give.

        Raises
        ------
        UnsupportedModel
            The message says what to do.
        """
        if not self._takes_tools:
            raise UnsupportedModel(
                "the model's chat template has no place for tools; leave tools and their results out, or take a model "
                "that was taught to call some"
            )

    @cached_property
    def _takes_tools(self) -> bool:
        try:
            text = _conversation(self._marking, _PROBE, [_PROBE_TOOL])
        except UnsupportedModel:
            return False
        return all(part in text for part in (_TOOL, _CALL, _RESULT))

    def _guarded(self, value: Any) -> Any:
        """Any JSON value with a cut inside all that would be markup; but for plain names, which templates look at."""
        if isinstance(value, str):
            return value if value.isidentifier() else _CUT.join(self._pieces(value))
        if isinstance(value, Mapping):
            return {self._guarded(key): self._guarded(one) for key, one in value.items()}
        return [self._guarded(one) for one in value] if isinstance(value, list | tuple) else value


def _ids(tokenizer: Any, text: str, **options: bool) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False, verbose=False, **options)["input_ids"]
    return ids


def _markup_pattern(tokenizer: Any) -> re.Pattern[str] | None:
    added = {str(token) for token in tokenizer.get_added_vocab()} | set(tokenizer.all_special_tokens)
    markup = sorted((text for text in added if len(text) > 1 and not text.isspace()), key=len, reverse=True)
    # A look-ahead finds markup inside markup too: cutting `<|user|>` behind its first character leaves `user` whole.
    return re.compile(f"(?={'|'.join(map(re.escape, markup))})") if markup else None


def _rendered(tokenizer: Any, system: str) -> tuple[str, str, str]:
    """Text before the chunks, between chunks and question, and after the question."""
    user = BEFORE_CHUNKS + _CHUNKS + BEFORE_QUESTION + _QUESTION
    text = _conversation(tokenizer, [{"role": "system", "content": system}, {"role": "user", "content": user}])
    before, *rest = re.split(f"{_CHUNKS}|{_QUESTION}", text)
    if len(rest) != 2 or text.index(_CHUNKS) > text.index(_QUESTION):
        raise UnsupportedModel(
            "the model's chat template does not render the user's words exactly once, so a prompt cannot be cut into "
            "segments; give the tokenizer another chat_template, or none"
        )
    return before, rest[0], rest[1]


def _conversation(
    tokenizer: Any, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Messages through the chat template; where it has no system turn, the system's words stand before the user's."""
    from jinja2.exceptions import TemplateError

    if not getattr(tokenizer, "chat_template", None):
        return _leading_bos(tokenizer) + _unadorned(messages)
    text, refused = "", None
    try:
        text = _render(tokenizer, messages, tools)
    except (TemplateError, TypeError, ValueError, LookupError) as error:  # a template is a program of anybody's
        refused = error
    first, *rest = messages
    lost = any(text.count(message["content"].strip()) != 1 for message in messages if message["content"])
    if lost and first["role"] == "system" and rest:
        merged = {**rest[0], "content": f"{first['content']}\n\n{rest[0]['content']}"}
        return _conversation(tokenizer, [merged, *rest[1:]], tools)
    if refused is not None:
        raise UnsupportedModel(f"the model's chat template refuses these messages: {refused}") from refused
    return text


def _unadorned(messages: Sequence[Mapping[str, Any]]) -> str:
    """A conversation with a model that was never taught one."""
    texts = [("\nAnswer: " if m["role"] == "assistant" else "\n\n") + m["content"] for m in messages]
    return "".join(texts).removeprefix("\n\n") + "\nAnswer:"


def _render(tokenizer: Any, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> str:
    how: dict[str, Any] = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
    offered = {"tools": [dict(tool) for tool in tools]} if tools else {}  # some tokenizers have a template of its own
    return str(tokenizer.apply_chat_template([dict(message) for message in messages], **how, **offered))


def _leading_bos(tokenizer: Any) -> str:
    """The BOS text where the tokenizer itself would put one, else nothing."""
    bos = tokenizer.bos_token_id
    ids = tokenizer("a")["input_ids"]
    return str(tokenizer.bos_token) if bos is not None and ids and ids[0] == bos else ""
