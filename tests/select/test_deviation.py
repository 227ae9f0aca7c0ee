"""Deviation of keys and of values, against a stock full prefill and stock forwards of each chunk alone."""

from dataclasses import replace

import pytest
import torch
from twin import stale_kv

from ragcache.encode import Fused
from ragcache.errors import InvalidArgument
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.select import KeyDeviation, Product, QuestionAttention, ValueShift


@torch.no_grad()
def deviations(stage, prompt, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Differences of K and V from full prefill's at a layer, (kv_heads, slots, head_dim) each."""
    reader = stage.engine.reader
    _, cache = reader.stock(prompt.token_ids)
    moved = [cache.layers[layer].keys[0].clone(), cache.layers[layer].values[0].clone()]
    for i in prompt.chunks():
        span = slice(prompt.slots[i], prompt.slots[i + 1])
        for new, old in zip(moved, stale_kv(reader, prompt.segments[i].token_ids, (), span.start)[layer], strict=True):
            new[:, span] -= old[0]
    return moved[0], moved[1]


@pytest.mark.parametrize("layer", [1, 3])
def test_keys_deviate_by_the_mean_over_heads(stage, layer: int) -> None:
    p = stage.passed("cacheblend")
    key, _ = deviations(stage, p.prompt, layer)
    expected = sum(head.norm(dim=-1) ** 2 for head in key) / len(key)
    found = KeyDeviation(layer=layer).scores(p)
    torch.testing.assert_close(found[p.selectable], expected[p.selectable], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("layer", [1, 3])
def test_values_deviate_by_the_sum_over_heads_and_dimensions(stage, layer: int) -> None:
    p = stage.passed("cacheblend")
    _, value = deviations(stage, p.prompt, layer)
    expected = sum(head[:, d] ** 2 for head in value for d in range(head.shape[1]))
    found = KeyDeviation(layer=layer, of="value").scores(p)
    torch.testing.assert_close(found[p.selectable], expected[p.selectable], atol=1e-4, rtol=1e-4)
    assert expected[p.selectable].std() > 1e-3
    assert (found[~p.selectable] == float("-inf")).all()


def test_values_and_keys_rank_differently_and_cost_the_same(stage) -> None:
    key, value = (
        stage.engine.prefill("Why?", stage.chunks, recompute=0.2, method=replace(METHODS["cacheblend"], select=s))
        for s in (KeyDeviation(), KeyDeviation(of="value"))
    )
    assert (key.recomputed != value.recomputed).any()
    assert key.report.charged == value.report.charged
    assert key.report.charged_flops == pytest.approx(value.report.charged_flops, rel=0.05)


@pytest.mark.parametrize("layer", [-1, 6])
def test_a_layer_that_is_not_there_is_refused(stage, layer: int) -> None:
    with pytest.raises(InvalidArgument, match=f"layer {layer}, but tiny-llama has layers 0 to 5"):
        KeyDeviation(layer=layer).scores(stage.passed())


def test_value_shift_is_what_was_stored(bare) -> None:
    p = bare([3, 2, 2], exact=[2], extras={1: torch.tensor([1.0, 2, 3]), 2: torch.tensor([6.0, 8])})
    never = [float("-inf")] * 2
    # The chunk without a number gets the mean of the five that there are, exact or not.
    assert ValueShift().scores(p).tolist() == [*never, 1, 2, 3, *never, 4, 4, *never]


def test_value_shift_is_one_where_nothing_was_stored(bare) -> None:
    assert ValueShift().scores(bare([1, 2])).tolist() == [*[float("-inf")] * 2, 1, 1, 1, *[float("-inf")] * 2]


def test_value_shift_needs_an_encoder_that_stores_it() -> None:
    product = Product(QuestionAttention(), ValueShift())
    assert product.needs == ("value_shift",)
    with pytest.raises(InvalidArgument, match="value_shift"):
        Method("broken", METHODS["naive"].encode, product, 0.1)


def test_the_product_is_attention_times_shift(stage, attended) -> None:
    p = stage.passed(Method("pass-a", Fused().base_encoding, None))
    chunks = p.prompt.chunks()
    shifts = {i: torch.rand(len(p.prompt.segments[i])) for i in chunks[:-1]}
    known = torch.cat([*shifts.values()])
    placed = {i: replace(kv, extras={"value_shift": shifts[i]} if i in shifts else {}) for i, kv in p.placed.items()}
    fused = replace(p, placed=placed)
    found = Product(QuestionAttention(), ValueShift()).scores(fused)
    attention = QuestionAttention().scores(p)
    shifts[chunks[-1]] = torch.full((len(p.prompt.segments[chunks[-1]]),), float(known.sum()) / len(known))
    for i in chunks:
        span = p.span(i)
        expected = attention[span] * shifts[i] if i not in p.exact else torch.full_like(attention[span], float("-inf"))
        torch.testing.assert_close(found[span], expected, atol=1e-6, rtol=1e-4)
    assert chunks[0] in p.exact
