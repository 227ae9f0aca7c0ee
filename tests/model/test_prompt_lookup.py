"""Drafts from the prompt: the same tokens by fewer forwards, and little lost where they are in vain."""

import itertools
from collections.abc import Sequence

import torch
from hypothesis import given
from hypothesis import strategies as st

from ragcache.model.decode import Sampling, decode, decode_drafts
from ragcache.model.prompt_lookup import PromptLookup

END = 9
TOKENS = st.lists(st.integers(0, END), max_size=40)


class Scripted:
    """Says a text whatever it is given, and counts forwards and rows."""

    def __init__(self, says: Sequence[int]) -> None:
        self.says, self.at, self.rows = [*says, *[END] * 20], 0, list[int]()

    def logits(self) -> torch.Tensor:
        return torch.nn.functional.one_hot(torch.tensor(self.says[self.at]), END + 1).float()

    def step(self, token: int) -> torch.Tensor:
        return self.verify([token])[1]

    def verify(self, draft: Sequence[int]) -> tuple[int, torch.Tensor]:
        said = self.says[self.at :]
        kept = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(draft, said, strict=False)))
        assert kept, "what was said already is forwarded first"
        self.at += kept
        self.rows.append(len(draft))
        return kept, self.logits()


@given(prompt=TOKENS, says=TOKENS, most=st.integers(1, 30), drafted=st.integers(0, 9))
def test_tokens_are_those_of_plain_decoding(prompt: list[int], says: list[int], most: int, drafted: int) -> None:
    sampling = Sampling(max_new_tokens=most, prompt_lookup_num_tokens=drafted)
    plain, looked_up = Scripted(says), Scripted(says)
    expected = list(decode(plain.step, plain.logits(), prompt, sampling, {END}))
    found = list(decode_drafts(looked_up.verify, looked_up.logits(), prompt, sampling, {END}))
    assert found == expected
    assert len(looked_up.rows) <= len(plain.rows)
    assert looked_up.at <= most  # so that nothing is written behind the room that was kept for the answer


def test_a_quotation_takes_few_forwards() -> None:
    quoted = list(range(END)) * 3
    model = Scripted(quoted)
    sampling = Sampling(max_new_tokens=27)
    assert list(decode_drafts(model.verify, model.logits(), quoted, sampling, {END})) == quoted
    assert model.rows == [9, 9, 8]  # the last token needs no forward


def test_a_quotation_goes_on_where_it_was() -> None:
    lookup = PromptLookup([4, 5, 6, 7, 8, 0, 4, 5, 6, 9, 9, 1], 2)
    for token in (8, 0, 4):
        lookup.append(token)
    assert lookup.draft(2) == [5, 6]
    lookup.append(5)
    lookup.append(6)
    assert lookup.draft(2) == [9, 9]  # looked up anew, 4, 5, 6 would go on with 7


def test_the_first_continuation_is_drafted_and_the_text_s_own_end_is_none() -> None:
    lookup = PromptLookup([1, 2, 3, 4, 1, 2, 3, 5, 6, 7], 3)
    assert lookup.draft(3) == []
    for token in (1, 2, 3):
        lookup.append(token)
    assert lookup.draft(3) == [4, 1, 2]
    assert lookup.draft(1) == [4]
    lookup.append(5)
    assert lookup.draft(3) == [6, 7, 1]  # where it was looked up is forgotten with the first other token


def test_pauses_double_while_drafts_are_in_vain() -> None:
    lookup, tried = PromptLookup([0, 0, 0, 0], 4), list[int]()
    for at in range(40):
        lookup.append(0)
        if lookup.draft(4):
            tried.append(at)
            lookup.note_kept(0)
    assert tried == [0, 2, 5, 10, 19, 36]
    lookup.note_kept(1)
    lookup.append(0)
    assert lookup.draft(4)
