"""What a request may say; what this engine has nothing for is refused by name, unless it asks for nothing."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from ragcache.model.decode import Sampling

_ROLES = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant"}
_INTEGERS = 2**63
_DEEPEST = 32  # levels of a JSON value
_MOST_MESSAGES = 4096
_MOST_CHUNKS = 50


def _refuse(
    kind: Literal["unsupported_parameter", "unsupported_content"], said: str, param: str | None = None
) -> Exception:
    """What a validator raises; without a parameter named, it is the one that is looked at."""
    return PydanticCustomError(kind, "{said}", {"said": said, "param": param})


def _as_text(content: Any) -> Any:
    """Content as one text: its parts are lines, and none of them is anything but text."""
    if not isinstance(content, list):
        return "" if content is None else content
    lines = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else type(part).__name__
        if kind not in ("text", "input_text", "output_text") or not isinstance(part.get("text"), str):
            said = f"a content part is of type {str(kind)[:40]!a}, but the model reads text only"
            raise _refuse("unsupported_content", said)
        lines.append(part["text"])
    return "\n".join(lines)


def _encodable(text: str) -> str:
    """Text as it is, unless it holds half a character, which no tokenizer takes."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise PydanticCustomError("lone_surrogate", "it holds half of a surrogate pair, which is no text") from error
    return text


def _known_role(role: Any, roles: Mapping[str, str] = _ROLES) -> str:
    if not isinstance(role, str) or role not in roles:
        known = ", ".join(roles)
        raise _refuse("unsupported_content", f"the role {str(role)[:40]!a} is not one of {known}")
    return roles[role]


def _known_chat_role(role: Any) -> str:
    return _known_role(role, {**_ROLES, "tool": "tool"})


def _plain_json(value: Any) -> Any:
    """A JSON value as it is, unless a template could not write it."""
    level = [value]
    for _ in range(_DEEPEST):
        inner = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [one for some in inner for one in some]
    if level:
        said = "it has more than {most} levels; give it fewer"
        raise PydanticCustomError("too_deep", said, {"most": _DEEPEST})
    _encodable(json.dumps(value, ensure_ascii=False))
    return value


def _arguments(text: Any) -> Any:
    """A call's arguments, of which a client sends the JSON."""
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise PydanticCustomError("no_arguments", "it is no JSON object in a string")
    return found


def _known_choice(choice: Any) -> Any:
    if choice not in (None, "auto", "none"):
        said = "the parameter 'tool_choice' is not supported, other than as 'auto' or 'none'"
        raise _refuse("unsupported_parameter", said, "tool_choice")
    return choice


def _none_if_false(value: Any) -> Any:
    return None if value is False else value


def _as_count(value: Any) -> int:
    """A number of chunks: a whole number as it is, and nothing that could be taken for one."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST_CHUNKS:
        named = "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else ""
        said = "it is {value}; give a whole number from 1 to {most}"
        raise PydanticCustomError("no_count", said, {"value": named or json.dumps(value)[:40], "most": _MOST_CHUNKS})
    return value


Word = Annotated[str, AfterValidator(_encodable)]
#: What somebody says, whole or in parts.
Text = Annotated[str, BeforeValidator(_as_text), AfterValidator(_encodable)]
Role = Annotated[str, BeforeValidator(_known_role)]
ChatRole = Annotated[str, BeforeValidator(_known_chat_role)]
Values = Annotated[dict[str, Any], AfterValidator(_plain_json)]
ToolName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
Temperature = Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=_MOST_CHUNKS), BeforeValidator(_as_count)]


class Body(BaseModel):
    """A JSON body, of which every name means something."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    #: Parameters that there is nothing for, with the values of them that ask for nothing; all others are refused.
    unsupported: ClassVar[Mapping[str, tuple[object, ...]]] = {}
    #: Parameters that change no answer.
    ignored: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def drop_what_asks_for_nothing(cls, data: Any) -> Any:
        """Refuse what is not supported by its name."""
        if not isinstance(data, dict):
            return data
        for name in cls.unsupported.keys() & data.keys():
            takes = cls.unsupported[name]
            if data[name] is not None and data[name] not in takes:
                only = f", other than as {takes[0]!r}" if takes else ""
                raise _refuse(
                    "unsupported_parameter", f"the parameter {name!r} is not supported{only}; leave it out", name
                )
        dropped = cls.unsupported.keys() | cls.ignored
        # A null says no more than its absence; clients of typed languages send it.
        dropped |= {
            name for name, field in cls.model_fields.items() if not field.is_required() and data.get(name) is None
        }
        return {name: value for name, value in data.items() if name not in dropped}


class ReuseOptions(Body):
    """What is ragcache's own: which row of the method table answers, over which chunks, and what is said of them.

    With `retrieve` so many chunks of the index are found for the last message, and put into ragcache's own prompt; with
    `texts` the answer's `ragcache` object has their texts, in runs of tokens that were recomputed or were not; with
    `verify` full prefill says behind the answer whether it would have said the same.
    """

    method: Word | None = None
    recompute: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    retrieve: Count | None = None
    texts: bool = False
    verify: bool = False

    @property
    def is_default(self) -> bool:
        """Whether the server's own method answers, at its own share."""
        return self.method is None and self.recompute is None


class StreamOptions(Body):
    """What a stream ends with."""

    unsupported = {"include_obfuscation": (False,)}

    include_usage: bool = False


class Generating(Body):
    """What every request for text has in common."""

    model: Word
    temperature: Temperature | None = None
    top_p: Share | None = None
    top_k: Annotated[int, Field(ge=0, lt=_INTEGERS)] | None = None
    repetition_penalty: Annotated[float, Field(ge=0.01, le=100, allow_inf_nan=False)] | None = None
    seed: Annotated[int, Field(ge=-_INTEGERS, lt=_INTEGERS)] | None = None
    stop: Word | Annotated[list[Word], Field(max_length=16)] | None = None
    max_tokens: Annotated[int, Field(ge=1, lt=_INTEGERS)] | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    ragcache: ReuseOptions = ReuseOptions()

    @model_validator(mode="after")
    def verify_greedy_answers_only(self) -> Self:
        """Refuse to have an answer verified that another draw would make another."""
        if self.ragcache.verify and (self.temperature or self.repetition_penalty not in (None, 1)):
            said = "ragcache.verify takes greedy answers; leave out temperature and repetition_penalty"
            raise _refuse("unsupported_parameter", said, "ragcache.verify")
        return self

    @property
    def limit(self) -> int | None:
        """Most tokens of the answer, where the request says."""
        return self.max_tokens

    @property
    def wanted_logprobs(self) -> int | None:
        """How many tokens are named in each place beside the answer's own; None where no probabilities are wanted."""
        return None

    @property
    def sampling(self) -> Sampling:
        """How tokens are chosen; greedily, where no temperature is named."""
        return Sampling.of({**self.model_dump(exclude={"max_tokens"}), "max_tokens": self.limit})

    @property
    def includes_usage(self) -> bool:
        """Whether a stream's last event counts tokens."""
        return self.stream_options is not None and self.stream_options.include_usage


class CalledFunction(Body):
    """What an assistant called, and with which arguments."""

    name: ToolName
    arguments: Annotated[Values, BeforeValidator(_arguments)]


class CalledTool(Body):
    """A call in a conversation's history."""

    ignored = frozenset({"index"})

    id: Word = ""
    type: Literal["function"] = "function"
    function: CalledFunction


class ChatMessage(Body):
    """One message of a conversation."""

    unsupported = {"function_call": (), "audio": ()}
    ignored = frozenset({"refusal", "annotations", "reasoning", "reasoning_content"})

    role: ChatRole
    content: Text = ""
    name: Word | None = None
    tool_calls: Annotated[list[CalledTool], Field(max_length=128)] | None = None
    tool_call_id: Word | None = None

    @model_validator(mode="after")
    def call_and_answer_in_turn(self) -> Self:
        """Refuse calls that are no assistant's, and what answers a call and is no tool's."""
        if self.tool_calls and self.role != "assistant":
            raise _refuse("unsupported_content", f"a message of the role {self.role} has tool_calls")
        if (self.tool_call_id is not None) != (self.role == "tool"):
            said = f"a message of the role {self.role} must have {'a' if self.role == 'tool' else 'no'} tool_call_id"
            raise _refuse("unsupported_content", said)
        return self

    @property
    def more(self) -> dict[str, Any]:
        """What the chat template is told of a call, or of its answer."""
        if self.tool_calls:
            return {"tool_calls": [call.model_dump() for call in self.tool_calls]}
        if self.role != "tool":
            return {}
        return {"tool_call_id": self.tool_call_id, **({"name": self.name} if self.name else {})}


class Function(Body):
    """What a model may call."""

    unsupported = {"strict": (False,)}

    name: ToolName
    description: Word = ""
    parameters: Values = Field(default_factory=lambda: {"type": "object", "properties": {}})


class Tool(Body):
    """A tool that a model may call; what is called is the client's affair."""

    type: Literal["function"]
    function: Function


class Document(Body):
    """A retrieved text; `id` is what the index or a vector store calls its chunk, where the client knows.

    Whatever else is said of it is nothing to the model, and is not refused.
    """

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    text: Word
    title: Word = ""
    id: Word | None = None


class ChatBody(Generating):
    """`POST /v1/chat/completions`."""

    unsupported = {
        "n": (1,),
        "functions": ([],),
        "function_call": ("none",),
        "response_format": ({"type": "text"},),
        "logit_bias": ({},),
        "frequency_penalty": (0,),
        "presence_penalty": (0,),
        "modalities": (["text"],),
        "audio": (),
        "prediction": (),
        "web_search_options": (),
        "reasoning_effort": ("none",),
        "verbosity": ("medium",),
        "store": (False,),
    }
    ignored = frozenset(
        {"user", "metadata", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"}
    )

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=_MOST_MESSAGES)]
    tools: Annotated[list[Tool], Field(max_length=128)] | None = None
    tool_choice: Annotated[str | None, BeforeValidator(_known_choice)] = None
    parallel_tool_calls: bool | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, lt=_INTEGERS)] | None = None
    documents: list[Document] = Field(default_factory=list)
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None

    @model_validator(mode="after")
    def name_others_only_beside_what_was_said(self) -> Self:
        """Refuse other tokens' probabilities without those of the answer's."""
        if self.top_logprobs and not self.logprobs:
            raise _refuse("unsupported_parameter", "top_logprobs goes with logprobs: true; send both", "top_logprobs")
        return self

    @property
    def offered(self) -> list[dict[str, Any]]:
        """The tools that the model is told of: none where it is to call none."""
        return [] if self.tool_choice == "none" else [tool.model_dump() for tool in self.tools or ()]

    @property
    def wanted_logprobs(self) -> int | None:
        """By two parameters."""
        return (self.top_logprobs or 0) if self.logprobs else None

    @property
    def limit(self) -> int | None:
        """Most tokens of the answer, by either of its names."""
        return self.max_completion_tokens if self.max_completion_tokens is not None else self.max_tokens


class CompletionBody(Generating):
    """`POST /v1/completions`."""

    unsupported = {
        "n": (1,),
        "best_of": (1,),
        "echo": (False,),
        "suffix": ("",),
        "logit_bias": ({},),
        "frequency_penalty": (0,),
        "presence_penalty": (0,),
    }
    ignored = frozenset({"user"})

    prompt: Word | Annotated[list[int], Field(min_length=1)] | Annotated[list[Word], Field(min_length=1, max_length=64)]
    logprobs: Annotated[Annotated[int, Field(strict=True, ge=0, le=20)] | None, BeforeValidator(_none_if_false)] = None

    @property
    def wanted_logprobs(self) -> int | None:
        """By one parameter, in which 0 names no other token."""
        return self.logprobs


class EmbeddingBody(Body):
    """`POST /v1/embeddings`."""

    unsupported = {"dimensions": ()}
    ignored = frozenset({"user"})

    model: Word
    input: Word | Annotated[list[Word], Field(min_length=1, max_length=2048)]
    encoding_format: Literal["float", "base64"] = "float"


_STRATEGY = {"chunking_strategy": ({"type": "auto"},)}
_VALUES = dict[Word, Word | int | float | bool]


class StoreBody(Body):
    """`POST /v1/vector_stores`."""

    unsupported: ClassVar[Mapping[str, tuple[object, ...]]] = {**_STRATEGY, "expires_after": ()}
    ignored = frozenset({"description"})

    name: Annotated[Word, Field(max_length=256)] = ""
    file_ids: Annotated[list[Word], Field(max_length=500)] = Field(default_factory=list)
    metadata: Annotated[dict[Word, Word], Field(max_length=16)] | None = None


class StoreChange(Body):
    """`POST /v1/vector_stores/{id}`."""

    unsupported = {"expires_after": ()}

    name: Annotated[Word, Field(max_length=256)] | None = None
    metadata: Annotated[dict[Word, Word], Field(max_length=16)] | None = None


class MemberBody(Body):
    """`POST /v1/vector_stores/{id}/files`."""

    unsupported = _STRATEGY

    file_id: Word
    attributes: Annotated[_VALUES, Field(max_length=16)] | None = None


class SearchBody(Body):
    """`POST /v1/vector_stores/{id}/search`."""

    unsupported = {"filters": (), "ranking_options": (), "rewrite_query": (False,)}

    query: Word | Annotated[list[Word], Field(min_length=1, max_length=16)]
    max_num_results: Count = 10


class FileSearch(Body):
    """The tool that a response may use."""

    unsupported = {"filters": (), "ranking_options": ()}

    type: Literal["file_search"]
    vector_store_ids: Annotated[list[Word], Field(min_length=1, max_length=16)]
    max_num_results: Count | None = None


class InputMessage(Body):
    """A message of a response's input."""

    ignored = frozenset({"id", "status", "phase"})

    type: Literal["message"] = "message"
    role: Role
    content: Text


def _said(items: Any) -> Any:
    """The messages among a response's input: its earlier output has the searches, too, which are made anew."""
    if not isinstance(items, list):
        return items
    return [one for one in items if not (isinstance(one, dict) and one.get("type") == "file_search_call")]


class ResponseBody(Generating):
    """`POST /v1/responses`."""

    unsupported = {
        "background": (False,),
        "conversation": (),
        "previous_response_id": (),
        "prompt": (),
        "store": (False,),
        "text": ({"format": {"type": "text"}},),
        "reasoning": (),
        "tool_choice": ("auto", "required"),
        "top_logprobs": (0,),
        "truncation": ("disabled",),
        "max_tokens": (),
        "stream_options": (),
        "max_tool_calls": (),
    }
    ignored = frozenset(
        {"user", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"}
        | {"parallel_tool_calls"}
    )

    input: Word | Annotated[list[InputMessage], BeforeValidator(_said), Field(min_length=1, max_length=_MOST_MESSAGES)]
    instructions: Word | None = None
    tools: Annotated[list[FileSearch], Field(max_length=1)] = Field(default_factory=list)
    include: list[Literal["file_search_call.results"]] = Field(default_factory=list)
    max_output_tokens: Annotated[int, Field(ge=1, lt=_INTEGERS)] | None = None
    metadata: Annotated[dict[Word, Word], Field(max_length=16)] | None = None

    @property
    def limit(self) -> int | None:
        """Most tokens of the answer."""
        return self.max_output_tokens
