"""What cannot be asked is refused by name before anything is computed, on every path."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import tiny_reader
from faults.small import Letters, write_pages

from ragcache import RagCache
from ragcache.engine.chat import Message
from ragcache.errors import InvalidArgument
from ragcache.model.decode import Sampling

QUESTION = "When was the bridge built?"


@pytest.fixture(scope="module")
def rag(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RagCache]:
    folder = tmp_path_factory.mktemp("asked")
    with RagCache.open(folder / "index", model=tiny_reader(), embedder=Letters()) as rag:
        rag.ingest(write_pages(Path(folder) / "files"))
        yield rag


@pytest.mark.parametrize(
    ("question", "options", "said"),
    [
        ("a\ud800b", {}, r"lone surrogate, '\\ud800', at character 1"),
        (17, {}, "question is a int"),
        (" \n", {}, "question is blank"),
        (QUESTION, {"top_k": 0}, "top_k is 0"),
        (QUESTION, {"top_k": 2.5}, r"top_k is 2.5; it must be a whole number"),
        (QUESTION, {"top_k": "five"}, r"top_k is 'five'; it must be a whole number"),
        (QUESTION, {"top_k": True}, r"top_k is True; it must be a whole number"),
        (QUESTION, {"recompute": math.nan}, "recompute is nan; it is a share"),
        (QUESTION, {"recompute": math.inf}, "recompute is inf; it is a share"),
        (QUESTION, {"recompute": "half"}, "recompute is 'half'; it must be a number"),
        (QUESTION, {"history": [Message("user", "a\udfff")]}, "lone surrogate"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(
    rag: RagCache, question: Any, options: dict[str, Any], said: str
) -> None:
    for ask in (rag.ask, rag.stream):
        with pytest.raises(InvalidArgument, match=said):
            ask(question, **options)


@pytest.mark.parametrize("count", [2**31, 2**63, 2**70])
@pytest.mark.parametrize("retriever", ["dense", "hybrid", "iterative"])
def test_any_number_of_chunks_may_be_asked_for(rag: RagCache, count: int, retriever: str) -> None:
    rag._retriever = retriever  # type: ignore[assignment]
    assert len(rag.retrieve(QUESTION, top_k=count)) == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"temperature": math.nan}, "temperature is nan"),
        ({"temperature": math.inf}, "temperature is inf"),
        ({"temperature": -1}, "temperature is -1"),
        ({"temperature": "hot"}, "temperature is 'hot'; it must be a number"),
        ({"top_p": math.nan}, "top_p is nan"),
        ({"top_p": 0}, "top_p is 0"),
        ({"top_k": 1.5}, "top_k is 1.5; it must be a whole number"),
        ({"repetition_penalty": 0.0}, "repetition_penalty is 0"),
        ({"repetition_penalty": math.nan}, "repetition_penalty is nan"),
        ({"max_new_tokens": "many"}, "max_new_tokens is 'many'"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"seed": 2**64}, "seed is"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"stop": (1,)}, r"stop is \(1,\)"),
        ({"stop": ("",)}, r"stop is \(''"),
    ],
)
def test_sampling_is_refused_where_it_is_made(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        Sampling(**options)


def test_a_temperature_too_low_to_divide_by_is_greedy(rag: RagCache) -> None:
    greedy = rag.ask(QUESTION, sampling=Sampling(max_new_tokens=4))
    for cold in (1e-40, 1e-7):
        assert rag.ask(QUESTION, sampling=Sampling(max_new_tokens=4, temperature=cold)).token_ids == greedy.token_ids


def test_a_chunk_with_half_a_character_is_refused(rag: RagCache) -> None:
    with pytest.raises(InvalidArgument, match="the chunk has a lone surrogate"):
        rag.engine.answer(QUESTION, ["a\ud800"])


def test_a_prompt_with_half_a_character_is_refused(rag: RagCache) -> None:
    with pytest.raises(InvalidArgument, match="the prompt has a lone surrogate"):
        rag.engine.complete("a\ud800")
