"""What a call says to a LangChain model, what its class keeps, and what is nobody's question."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("langchain_core")
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import ConfigurableField
from langchain_ragcache import ChatRagCache

from ragcache import RagCache, Sampling
from ragcache.errors import InvalidArgument

NOTE = "The Tide project is led by Mara Voss. It is based in Kelmar, behind the old harbour."
QUESTION = "Who leads the Tide project?"
CALL = {"name": "look", "args": {}, "id": "1"}


@pytest.fixture(scope="module")
def rag(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RagCache]:
    with RagCache.open(tmp_path_factory.mktemp("options") / "index") as rag:
        yield rag


@pytest.fixture
def folder(rag: RagCache, tmp_path: Path) -> Path:
    """The folder of an index of the same model, which nobody has open."""
    with RagCache.open(tmp_path / "other", model=rag.reader):
        return tmp_path / "other"


def test_none_in_a_call_is_an_option_that_was_not_given(rag: RagCache) -> None:
    model = ChatRagCache(rag, max_tokens=3, temperature=1.0, seed=5, recompute=0.5)
    nothing = dict.fromkeys(("max_tokens", "temperature", "seed", "recompute"))
    stream = model.asked(QUESTION, None, None, dict(nothing))
    assert stream.sampling == Sampling(max_new_tokens=3, temperature=1.0, seed=5)
    said = model.invoke(QUESTION, documents=[NOTE], **nothing)
    assert said.text == model.invoke(QUESTION, documents=[NOTE]).text
    assert said.response_metadata["ragcache"]["recompute"] == 0.5


@pytest.mark.parametrize(
    "last",
    [
        [AIMessage("hello")],
        [SystemMessage("Be brief.")],
        [AIMessage("let me look", tool_calls=[CALL]), ToolMessage("42 crowns", tool_call_id="1")],
        [AIMessage("", tool_calls=[CALL]), ToolMessage("42 crowns", tool_call_id="1")],
        [AIMessage("hello"), HumanMessage("")],
        [ChatMessage("hello", role="assistant")],
    ],
)
def test_over_documents_only_the_user_asks(rag: RagCache, last: list[BaseMessage]) -> None:
    model = ChatRagCache(rag, max_tokens=2)
    with pytest.raises(InvalidArgument, match="the last message must be the user's question"):
        model.invoke([HumanMessage(QUESTION), *last], documents=[NOTE])
    with pytest.raises(InvalidArgument, match="the last message must be the user's question"):
        list(model.stream([HumanMessage(QUESTION), *last], documents=[NOTE]))
    assert model.invoke([HumanMessage(QUESTION), *last]).text  # without documents it is a conversation


def test_whoever_is_called_a_user_asks(rag: RagCache) -> None:
    model = ChatRagCache(rag, max_tokens=8)
    for role in ("user", "human"):
        said = model.invoke([SystemMessage("Be brief."), ChatMessage(QUESTION, role=role)], documents=[NOTE])
        assert said.text == model.invoke([SystemMessage("Be brief."), HumanMessage(QUESTION)], documents=[NOTE]).text


def test_a_configured_model_opens_its_index_once(folder: Path, opened: list[RagCache]) -> None:
    model = ChatRagCache(folder, max_tokens=2).configurable_fields(temperature=ConfigurableField(id="warmth"))
    for warmth in (0.0, 0.5, 1.0):
        model.with_config(configurable={"warmth": warmth}).invoke(QUESTION)
    model.with_config(configurable={"warmth": 0.1}).batch([QUESTION, QUESTION])
    assert len(opened) == 1


def test_a_configured_index_is_the_one_that_answers(rag: RagCache, folder: Path, opened: list[RagCache]) -> None:
    model = ChatRagCache(rag, max_tokens=2)
    either = model.configurable_fields(index=ConfigurableField(id="index"))
    either.with_config(configurable={"index": str(folder)}).invoke(QUESTION)
    assert [one.index.path for one in opened] == [folder]
    either.with_config(configurable={"index": model.index}).invoke(QUESTION)
    assert len(opened) == 1


def test_what_a_stop_string_ends_at_the_last_token_has_stopped(rag: RagCache) -> None:
    model = ChatRagCache(rag, max_tokens=1)
    first = model.invoke(QUESTION, documents=[NOTE])
    assert first.response_metadata["finish_reason"] == "length"
    stopped = model.invoke(QUESTION, documents=[NOTE], stop=[first.text])
    assert (stopped.text, stopped.response_metadata["finish_reason"]) == ("", "stop")
