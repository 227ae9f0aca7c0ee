"""Tokens of two tokenizers matched by their characters, for any text."""

from types import SimpleNamespace

import pytest
import torch
from conftest import SPECIAL, byte_tokenizer
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from ragcache.errors import UnsupportedModel
from ragcache.prompt import Template
from ragcache.select.offsets import spans, spread

BYTES = byte_tokenizer()
PIECES = st.sampled_from(
    [*SPECIAL, "The bridge", "  ", "\n\n", "\u20ac", "漢字", "e\u0301", "\U0001f600", "\ufffd", "It is"]
)
TEXT = st.one_of(st.text(min_size=1, max_size=30), st.lists(st.one_of(PIECES, st.text(max_size=3))).map("".join))
TEXT = TEXT.filter(bool)


def lossy_tokenizer() -> PreTrainedTokenizerFast:
    """Lower case, a blank put in front, unknown characters: what decoding gives is not what was put in."""
    vocabulary = {token: i for i, token in enumerate(["<unk>", *SPECIAL, "\u2581", *"abcdefghijklmnopqrst", "th"])}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[("t", "h")], unk_token="<unk>", fuse_unk=True))
    backend.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    backend.decoder = decoders.Metaspace(prepend_scheme="always")
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>", bos_token="<|bos|>", chat_template=None)


def in_bytes(tokenizer, ids, text: str) -> list[tuple[int, int]]:
    """Characters whose bytes a byte-level token holds, by counting bytes."""
    owner = [i for i, character in enumerate(text) for _ in character.encode()]
    found, start = [], 0
    for token in tokenizer.convert_ids_to_tokens(list(ids)):
        end = start + len(token)  # byte-level vocabularies write a byte as one character
        found.append((owner[start], owner[end - 1] + 1))
        start = end
    assert start == len(owner)
    return found


def check_cover(found: torch.Tensor, text: str) -> None:
    assert (found[:, 0] < found[:, 1]).all()
    assert {c for start, end in found.tolist() for c in range(start, end)} == set(range(len(text)))


@settings(max_examples=150, deadline=None)
@drawn(text=TEXT)
@pytest.mark.parametrize("name", ["merging", "trimming"])
def test_spans_are_the_characters_of_the_tokens_bytes(tokenizers, name: str, text: str) -> None:
    tokenizer = tokenizers[name]
    ids = tokenizer(text, add_special_tokens=False, split_special_tokens=True, verbose=False)["input_ids"]
    assert [tuple(pair) for pair in spans(tokenizer, text, ids).tolist()] == in_bytes(tokenizer, ids, text)


@settings(max_examples=100, deadline=None)
@drawn(text=TEXT.filter(lambda text: "\ufffd" not in text))
def test_text_that_was_cut_at_markup_is_matched_by_decoding(text: str) -> None:
    text = f"{text}<|end|>{text}"
    ids = Template(BYTES).plain(text)
    assert [tuple(pair) for pair in spans(Unequal(BYTES), text, ids).tolist()] == in_bytes(BYTES, ids, text)


class Unequal:
    """A tokenizer whose ids for a whole text are never those that its pieces gave."""

    is_fast = True

    def __init__(self, tokenizer) -> None:
        self.decode = tokenizer.decode

    def __call__(self, text: str, **options: object) -> dict[str, list[object]]:
        return {"input_ids": [], "offset_mapping": []}


@settings(max_examples=150, deadline=None)
@drawn(text=TEXT, seed=st.integers(0, 99))
@pytest.mark.parametrize("name", ["bytes", "merging", "trimming", "lossy"])
def test_any_text_is_covered_and_no_mass_is_lost(tokenizers, name: str, text: str, seed: int) -> None:
    both = {**tokenizers, "bytes": BYTES, "lossy": lossy_tokenizer()}
    own, other = both[name], both["trimming"]
    where = []
    for tokenizer in (own, other):
        where.append(spans(tokenizer, text, Template(tokenizer).plain(text) or (0,)))
        check_cover(where[-1], text)
    mass = torch.rand(len(where[0]), generator=torch.Generator().manual_seed(seed))
    handed = spread(mass, *where)
    assert float(handed.sum()) == pytest.approx(float(mass.sum()), rel=1e-4)
    torch.testing.assert_close(handed, by_hand(mass, *where), atol=1e-5, rtol=1e-4)


def by_hand(mass, own, other) -> torch.Tensor:
    """Every pair of tokens by itself."""
    handed = torch.zeros(len(other))
    for amount, (start, end) in zip(mass, own.tolist(), strict=True):
        shared = [len(set(range(start, end)) & set(range(*pair))) for pair in other.tolist()]
        for i, length in enumerate(shared):
            handed[i] += amount * length / sum(shared)
    return handed


def test_a_long_token_goes_to_those_it_spans() -> None:
    own, other = torch.tensor([[0, 4], [4, 5]]), torch.tensor([[0, 1], [1, 3], [3, 5]])
    assert spread(torch.tensor([0.8, 0.2]), own, other).tolist() == pytest.approx([0.2, 0.4, 0.4])


def test_a_slow_tokenizer_is_refused() -> None:
    with pytest.raises(UnsupportedModel, match=r"SimpleNamespace is not a fast tokenizer.*auxiliary"):
        spans(SimpleNamespace(is_fast=False), "text", (1,))
