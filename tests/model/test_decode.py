"""Tokens are chosen as transformers chooses them; text is shown only once it is certain."""

import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from conftest import byte_tokenizer
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from ragcache.errors import InvalidArgument, UnsupportedModel
from ragcache.model.decode import Sampling, decode, pieces
from ragcache.model.reader import Reader

TOKENIZER = byte_tokenizer()
IDS = list(range(30, 60))
LOGITS = torch.randn(50, generator=torch.Generator().manual_seed(5)) * 2


def stock_answer(reader: Reader, sampling: Sampling, stop_ids: tuple[int, ...] = ()) -> list[int]:
    """Our loop over transformers' own attention and cache."""
    logits, cache = reader.stock(IDS)
    return list(decode(lambda token: reader.stock([token], cache)[0], logits, IDS, sampling, stop_ids))


def generated(reader: Reader, **asked: Any) -> list[int]:
    ids = torch.tensor([IDS])
    options = {"attention_mask": torch.ones_like(ids), "pad_token_id": 0, "eos_token_id": None, "max_new_tokens": 24}
    return list(reader.model.generate(ids, **options | asked)[0, len(IDS) :].tolist())


def constant(sampling: Sampling) -> list[int]:
    return list(decode(lambda _: LOGITS, LOGITS, [1], sampling, ()))


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma3", "mistral-sliding"])
def test_greedy_is_generate(name: str, readers: Callable[[str], Reader]) -> None:
    reader = readers(name)
    assert stock_answer(reader, Sampling(max_new_tokens=24)) == generated(reader, do_sample=False)


def test_greedy_with_a_repetition_penalty_is_generate(reader: Reader) -> None:
    ours = stock_answer(reader, Sampling(max_new_tokens=24, repetition_penalty=1.5))
    assert ours == generated(reader, do_sample=False, repetition_penalty=1.5)
    assert ours != stock_answer(reader, Sampling(max_new_tokens=24)), "the penalty must matter, or this proves nothing"


@pytest.mark.parametrize(
    "asked",
    [
        {"temperature": 0.7},
        {"temperature": 1.5, "top_k": 5},
        {"temperature": 0.9, "top_p": 0.8},
        {"temperature": 2.0, "top_k": 30, "top_p": 0.9, "repetition_penalty": 1.2},
    ],
)
def test_sampling_draws_what_generate_draws_from_the_same_seed(asked: dict[str, Any], reader: Reader) -> None:
    torch.manual_seed(11)
    stock = generated(reader, do_sample=True, **{"top_k": 0} | asked)
    assert stock_answer(reader, Sampling(max_new_tokens=24, seed=11, **asked)) == stock


def test_sampled_tokens_follow_the_processed_distribution() -> None:
    draws = constant(Sampling(max_new_tokens=6000, temperature=1.3, top_k=12, seed=1))
    kept = LOGITS.topk(12)
    wanted = torch.zeros(50).scatter(0, kept.indices, (kept.values / 1.3).softmax(0))
    seen = torch.bincount(torch.tensor(draws), minlength=50) / len(draws)
    assert (seen - wanted).abs().sum() / 2 < 0.03  # total variation
    assert set(draws) <= set(kept.indices.tolist())


def test_a_seed_repeats_and_no_seed_does_not() -> None:
    asked = {"max_new_tokens": 40, "temperature": 1}
    assert constant(Sampling(seed=3, **asked)) == constant(Sampling(seed=3, **asked))
    assert constant(Sampling(seed=3, **asked)) != constant(Sampling(seed=4, **asked))
    assert constant(Sampling(**asked)) != constant(Sampling(**asked))


def test_sampling_leaves_the_callers_random_state_alone() -> None:
    torch.manual_seed(0)
    wanted = torch.rand(1)
    torch.manual_seed(0)
    constant(Sampling(max_new_tokens=5, temperature=1.0, seed=9))
    assert torch.equal(torch.rand(1), wanted)


@pytest.mark.parametrize("stop_ids", [(13,), (99, 13), [13, 14], frozenset({13})])
def test_an_answer_ends_before_any_of_the_stop_ids(stop_ids: Any) -> None:
    forwarded: list[int] = []
    script = [10, 11, 12, 13, 14]

    def step(token: int) -> Tensor:
        forwarded.append(token)
        return torch.eye(100)[script[len(forwarded)]]

    assert list(decode(step, torch.eye(100)[10], [1], Sampling(), stop_ids)) == [10, 11, 12]
    assert forwarded == [10, 11, 12]


@pytest.mark.parametrize("count", [1, 2, 7])
def test_max_new_tokens_is_kept_and_the_last_one_is_not_forwarded(count: int) -> None:
    forwarded: list[int] = []

    def step(token: int) -> Tensor:
        forwarded.append(token)
        return LOGITS

    assert len(list(decode(step, LOGITS, [1], Sampling(max_new_tokens=count), ()))) == count
    assert len(forwarded) == count - 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_new_tokens": 0},
        {"temperature": -0.1},
        {"top_k": -1},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"repetition_penalty": 0},
        {"repetition_penalty": 1e-40},
        {"repetition_penalty": 101},
        {"stop": ("a", "")},
        {"stop": "END"},
    ],
)
def test_values_that_make_no_sense_are_named(wrong: dict[str, Any]) -> None:
    [(name, value)] = wrong.items()
    with pytest.raises(InvalidArgument, match=re.escape(f"{name} is {value!r}")):
        Sampling(**wrong)


def test_numbers_of_other_kinds_are_taken_as_pythons_own() -> None:
    numbers: dict[str, Any] = {
        "max_new_tokens": np.int64(5),
        "top_k": np.int64(3),
        "seed": np.int64(7),
        "prompt_lookup_num_tokens": np.int8(2),
    }
    assert [type(getattr(Sampling(**numbers), name)) for name in numbers] == [int] * 4


def test_an_option_that_is_none_does_not_hide_its_other_name() -> None:
    assert Sampling.of({"max_tokens": 10, "max_new_tokens": None}).max_new_tokens == 10
    assert Sampling.of({"max_tokens": 10, "max_new_tokens": 20}).max_new_tokens == 20
    assert Sampling.of({"max_tokens": None}) == Sampling()


def test_a_draw_from_no_numbers_is_refused() -> None:
    logits = torch.full((100,), float("nan"))
    with pytest.raises(UnsupportedModel, match="logits are no numbers"):
        next(decode(lambda token: logits, logits, [1], Sampling(temperature=1.0), ()))


def shown(text: str, stop: tuple[str, ...] = ()) -> tuple[list[str], list[int]]:
    """Pieces of a text, token by token, and the ids that were taken."""
    ids = TOKENIZER(text, add_special_tokens=False)["input_ids"]
    sink: list[int] = []
    return list(pieces(iter(ids), TOKENIZER, stop, sink)), sink


def test_a_character_is_shown_when_its_last_byte_is_there() -> None:
    assert shown("a€😀é")[0] == ["a", "€", "😀", "é"]


def test_an_answer_cut_inside_a_character_says_so_at_its_end() -> None:
    ids = TOKENIZER("ok €", add_special_tokens=False)["input_ids"][:-1]
    assert "".join(pieces(iter(ids), TOKENIZER, (), [])) == "ok \ufffd"


def test_special_tokens_are_not_text() -> None:
    ids = TOKENIZER("<|user|>a<|end|>b")["input_ids"]
    assert "".join(pieces(iter(ids), TOKENIZER, (), [])) == "ab"


def test_a_stop_string_split_over_tokens_is_never_shown() -> None:
    given_out, taken = shown("Paris.\nQuestion: next", ("\nQuestion:",))
    assert "".join(given_out) == "Paris."
    assert TOKENIZER.decode(taken) == "Paris.\nQuestion:", "nothing is decoded after it"


def test_what_only_looked_like_a_stop_string_is_shown() -> None:
    assert shown("a\nQuiet", ("\nQuestion:",))[0] == ["a", "\nQui", "e", "t"]


@given(st.text("é问✅\n:a", max_size=12), st.lists(st.text("é问✅\n:a", min_size=1, max_size=4), max_size=2))
@example("答案是绿色。问题：", ["问题："])
@example(":✅:", ["✅", ":✅:"])
@settings(deadline=None, max_examples=200)
def test_no_part_of_a_stop_string_is_shown_however_many_bytes_its_letters_have(text: str, stop: list[str]) -> None:
    given_out, _ = shown(text, tuple(stop))
    begun = (text[:size] for size in range(len(text) + 1))  # whichever is complete first ends the answer
    ended = next((part for part in begun if any(word in part for word in stop)), text)
    assert "".join(given_out) == ended[: min((ended.find(word) for word in stop if word in ended), default=len(ended))]


@given(st.text(max_size=30))
@settings(deadline=None, max_examples=80)
def test_pieces_concatenate_to_the_whole_text(text: str) -> None:
    given_out, taken = shown(text)
    assert "".join(given_out) == text
    assert taken == TOKENIZER(text, add_special_tokens=False)["input_ids"]
    assert "" not in given_out
    if "\ufffd" not in text:
        assert not any("\ufffd" in piece for piece in given_out)


WORDS = st.text("ab.", min_size=1, max_size=3)


@given(st.lists(WORDS, max_size=12), st.lists(WORDS, max_size=3))
@example(["a", "ab"], ["aab", "b"])
@settings(deadline=None, max_examples=300)
def test_text_ends_before_the_first_stop_string_however_tokens_split_it(words: list[str], stop: list[str]) -> None:
    tokenizer = SimpleNamespace(decode=lambda ids, **_: "".join(words[i] for i in ids))
    sink: list[int] = []
    told: list[str] = []

    def tokens() -> Iterator[int]:
        for n in range(len(words)):
            yield n
            assert not any(word in "".join(told) for word in stop)

    for piece in pieces(tokens(), tokenizer, tuple(stop), sink):
        told.append(piece)
    grown = ["".join(words[:n]) for n in range(len(words) + 1)]
    taken, whole = next(((n, t) for n, t in enumerate(grown) if any(w in t for w in stop)), (len(words), grown[-1]))
    assert len(sink) == taken
    assert "".join(told) == whole[: min((whole.find(w) for w in stop if w in whole), default=len(whole))]
