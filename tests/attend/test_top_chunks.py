"""SEL's hard selection: the other chunks' reused keys are as good as absent."""

from pathlib import Path

import pytest
import torch
from dense import dense
from stages import Stage, stage
from torch import Tensor

from ragcache.attend import TopChunks
from ragcache.encode import Alone, Prefixed
from ragcache.errors import InvalidArgument
from ragcache.method import Method
from ragcache.select import QuestionAttention, RandomTokens


@pytest.fixture
def set_up(tmp_path: Path) -> Stage:
    return stage(tmp_path, "naive", "fusionrag")


def masses(set_up: Stage, left: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Chunks by the question's attention over all layers and heads, best first, from a dense forward."""
    prompt = set_up.prefill(Method("own", Prefixed() if left else Alone())).prompt
    question = torch.arange(prompt.slots[prompt.question], prompt.slots[prompt.question + 1])
    total = torch.zeros(len(prompt))

    def attend(layer: int, logits: Tensor, values: Tensor) -> Tensor:
        weights = logits.softmax(-1)
        nonlocal total
        total = total + weights[:, : len(question)].sum((0, 1))
        return weights @ values

    fresh = set_up.fresh(prompt)
    dense(set_up.reader, prompt, set_up.kv(prompt, left), lambda layer: fresh, attend)
    mass = {s: float(total[prompt.slots[s] : prompt.slots[s + 1]].sum()) for s in prompt.chunks()}
    return sorted(mass, key=lambda segment: -mass[segment]), list(prompt.slots)


@pytest.mark.parametrize("chunks", [1, 2, 3])
@pytest.mark.parametrize("encode", [Alone(), Prefixed()])
def test_rows_see_the_best_chunks_only(set_up: Stage, chunks: int, encode: Alone | Prefixed) -> None:
    ours = set_up.prefill(Method("own", encode, attend=TopChunks(chunks)))
    prompt = ours.prompt
    left = prompt.segments[0].token_ids if isinstance(encode, Prefixed) else ()
    ranked, slots = masses(set_up, left)
    hidden = torch.cat([torch.arange(slots[s], slots[s + 1]) for s in ranked[chunks:]])

    def attend(layer: int, logits: Tensor, values: Tensor) -> Tensor:
        return logits.index_fill(-1, hidden, float("-inf")).softmax(-1) @ values

    fresh = set_up.fresh(prompt)
    expected = dense(set_up.reader, prompt, set_up.kv(prompt, left), lambda layer: fresh, attend)
    assert torch.allclose(ours.logits, expected, atol=1e-4)


def test_all_chunks_are_plain_attention(set_up: Stage) -> None:
    plain = set_up.prefill(Method("own", Alone()))
    ours = set_up.prefill(Method("own", Alone(), attend=TopChunks(4)))
    assert torch.equal(ours.logits, plain.logits)
    assert ours.report.charged_flops == plain.report.charged_flops, "nothing to choose, so no scoring pass"


def test_the_scoring_pass_is_paid_for(set_up: Stage) -> None:
    plain = set_up.prefill(Method("own", Alone()))
    ours = set_up.prefill(Method("own", Alone(), attend=TopChunks(2)))
    assert ours.report.charged_flops > plain.report.charged_flops
    assert ours.report.charged == 0


def test_recomputed_keys_of_other_chunks_stay_visible(set_up: Stage) -> None:
    method = Method("own", Alone(), RandomTokens(2), 0.3, attend=TopChunks(1))
    ours = set_up.prefill(method)
    prompt, chosen = ours.prompt, ours.recomputed.nonzero().squeeze(1)
    ranked, slots = masses(set_up, ())
    hidden = torch.cat([torch.arange(slots[s], slots[s + 1]) for s in ranked[1:]])
    hidden = hidden[~torch.isin(hidden, chosen)]
    rows = torch.cat([chosen, set_up.fresh(prompt)])

    def attend(layer: int, logits: Tensor, values: Tensor) -> Tensor:
        return logits.index_fill(-1, hidden, float("-inf")).softmax(-1) @ values

    expected = dense(set_up.reader, prompt, set_up.kv(prompt), lambda layer: rows, attend)
    assert torch.allclose(ours.logits, expected, atol=1e-4)
    assert TopChunks(1).by == QuestionAttention(layers="all", reduce="mean")


def test_no_chunk_at_all_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="at least 1"):
        TopChunks(0)
