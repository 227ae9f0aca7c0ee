import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from ragcache_bench.agreement import Agreement, agreement, looks
from staged import make

from ragcache.errors import InvalidArgument
from ragcache.select import Auxiliary

SCORES = st.lists(st.floats(0.5, 50, width=32), min_size=1, max_size=30)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), primary=SCORES, share=st.sampled_from([0.05, 0.2, 0.5, 1.0]))
def test_agreement_is_kl_and_overlap_as_defined(data: st.DataObject, primary: list[float], share: float) -> None:
    other = data.draw(st.lists(st.floats(0.5, 50, width=32), min_size=len(primary), max_size=len(primary)))
    found = agreement(torch.tensor(other), torch.tensor(primary), share)
    p, q = ([x / sum(row) for x in row] for row in (primary, other))
    assert found.kl == pytest.approx(sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)), abs=1e-3)
    count = max(1, round(share * len(primary)))
    one, two = (sorted(range(len(row)), key=lambda i, row=row: (-row[i], i))[:count] for row in (primary, other))
    assert found.overlap == len({*one} & {*two}) / count
    itself = agreement(torch.tensor(primary), torch.tensor(primary), share)
    assert itself == Agreement(pytest.approx(0.0, abs=1e-9), 1.0)


def test_direction_and_what_the_auxiliary_does_not_see() -> None:
    one = agreement(torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0]), 0.5)
    assert one.kl == pytest.approx(math.log(2), abs=1e-4)
    other = agreement(torch.tensor([1.0, 0.0]), torch.tensor([0.5, 0.5]), 0.5)
    assert 5 < other.kl < 10, "costly, not infinite"
    assert (one.overlap, other.overlap) == (1.0, 1.0), "ties go to the earlier token"


@pytest.mark.parametrize(
    ("auxiliary", "primary", "share", "words"),
    [
        ([1.0, 2.0], [1.0], 0.5, "2 scores cannot be compared with 1"),
        ([1.0], [1.0], 0.0, "share is 0"),
        ([1.0], [1.0], 1.5, "share is 1.5"),
        ([1.0, float("-inf")], [1.0, 1.0], 0.5, "no distribution"),
        ([0.0, 0.0], [1.0, 1.0], 0.5, "no distribution"),
        ([], [], 0.5, "no distribution"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    auxiliary: list[float], primary: list[float], share: float, words: str
) -> None:
    with pytest.raises(InvalidArgument, match=words):
        agreement(torch.tensor(auxiliary), torch.tensor(primary), share)


def test_an_auxiliary_is_compared_with_the_primary_over_the_whole_prompt(tmp_path, reader, readers) -> None:
    engine, chunks = make(tmp_path, reader, "naive")
    p = engine.prefill("What colour is the bridge?", chunks, method="naive").context
    before = p.flop_counter.flops
    assert agreement(*looks(Auxiliary(model=reader), p), 0.15) == Agreement(pytest.approx(0.0, abs=1e-6), 1.0)
    other = agreement(*looks(Auxiliary(model=readers("qwen3")), p), 0.15)
    assert other.kl > 0.01
    assert other.overlap < 1
    assert p.flop_counter.flops == before
