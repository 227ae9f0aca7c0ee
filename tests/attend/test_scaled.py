"""APE's temperature and scale: worked out by hand, and against two softmaxes merged by their log-sum-exps."""

from math import exp, log
from pathlib import Path

import pytest
import torch
from dense import Attend, dense
from stages import Stage, stage
from torch import Tensor

from ragcache.attend import Scaled
from ragcache.encode import Alone, Encoder, Prefixed
from ragcache.errors import InvalidArgument
from ragcache.layout import Layout, Overlapped, Retrieved
from ragcache.method import Method
from ragcache.model.plan import Slots
from ragcache.model.prefill_context import PrefillContext
from ragcache.select import KeyDeviation, RandomTokens, Selector

T, S = 0.8, 0.7


def merged(context: Tensor, temperature: float = T, scale: float = S) -> Attend:
    """APE as published: outputs of the two sides, weighted by softmax([S T lse_X, lse_O])."""

    def attend(layer: int, logits: Tensor, values: Tensor) -> Tensor:
        inside = context[layer]
        x, o = logits[..., inside] / temperature, logits[..., ~inside]
        lse = torch.stack([scale * temperature * x.logsumexp(-1), o.logsumexp(-1)], -1)  # (heads, rows, 2)
        lse = lse.nan_to_num(nan=float("-inf"))
        out_x = x.softmax(-1).nan_to_num() @ values[:, inside]
        out_o = o.softmax(-1) @ values[:, ~inside]
        weights = lse.softmax(-1)[..., None]  # (heads, rows, 2, 1)
        return weights[..., 0, :] * out_x + weights[..., 1, :] * out_o

    return attend


def row(
    shaping: Scaled, select: Selector | None = None, layout: Layout | None = None, encode: Encoder | None = None
) -> Method:
    recompute = 0.3 if select else None
    return Method("own", encode or Prefixed(), select, recompute, attend=shaping, layout=layout or Retrieved())


@pytest.fixture
def set_up(tmp_path: Path) -> Stage:
    return stage(tmp_path, "naive", "fusionrag")


def test_two_prefix_and_three_context_keys_by_hand() -> None:
    """T = .9, S = .8: the context as one key of weight exp(.72 lse), shared out within it, beside the others."""
    logits = torch.tensor([0.3, -0.2, 1.0, 0.1, -0.5])
    context = [exp(x / 0.9) for x in (1.0, 0.1, -0.5)]
    whole = exp(0.8 * 0.9 * log(sum(context)))
    others = [exp(0.3), exp(-0.2)]
    total = whole + sum(others)
    expected = [other / total for other in others] + [whole * c / sum(context) / total for c in context]

    class Buffer(PrefillContext):
        def __init__(self) -> None:
            self.stale = torch.tensor([[False, False, True, True, True]])
            self.selectable = self.stale[0]

    score_mod = Scaled(0.9, 0.8).score_mod(Buffer(), Slots(torch.tensor([0])))
    assert score_mod is not None
    found = score_mod(0, logits[None, None]).softmax(-1)[0, 0]
    assert torch.allclose(found, torch.tensor(expected), atol=1e-6)


@pytest.mark.parametrize("layout", [Retrieved(), Overlapped()])
def test_without_recompute_every_chunk_is_context(set_up: Stage, layout: Layout) -> None:
    ours = set_up.prefill(row(Scaled(T, S), layout=layout))
    prompt = ours.prompt
    prefix = prompt.segments[0].token_ids
    context = torch.zeros(6, len(prompt), dtype=torch.bool)
    context[:, set_up.selectable(prompt)] = True  # the first chunk too, which is exact
    fresh = set_up.fresh(prompt)
    expected = dense(set_up.reader, prompt, set_up.kv(prompt, prefix), lambda layer: fresh, merged(context))
    assert torch.allclose(ours.logits, expected, atol=1e-4)


def test_recomputed_keys_are_exempt_and_recomputed_rows_are_not(set_up: Stage) -> None:
    ours = set_up.prefill(row(Scaled(T, S), RandomTokens(1), encode=Alone()))
    prompt = ours.prompt
    chosen = ours.recomputed.nonzero().squeeze(1)
    context = torch.zeros(6, len(prompt), dtype=torch.bool)
    context[:, set_up.selectable(prompt)] = True
    context[:, chosen] = False
    rows = torch.cat([chosen, set_up.fresh(prompt)])
    expected = dense(set_up.reader, prompt, set_up.kv(prompt), lambda layer: rows, merged(context))
    assert torch.allclose(ours.logits, expected, atol=1e-4)


def test_layers_that_a_selector_has_made_fresh_are_exempt(set_up: Stage) -> None:
    ours = set_up.prefill(row(Scaled(T, S), KeyDeviation(layer=1), encode=Alone()))
    prompt = ours.prompt
    kv, candidates = set_up.kv(prompt), set_up.selectable(prompt)
    made = [(keys.clone(), values.clone()) for keys, values in kv]
    dense(set_up.reader, prompt, made, lambda layer: torch.arange(int(set_up.fresh(prompt)[0])))
    for layer in (0, 1):
        kv[layer] = made[layer]
    chosen = ours.recomputed.nonzero().squeeze(1)
    context = torch.zeros(6, len(prompt), dtype=torch.bool)
    context[2:, candidates] = True
    context[:, chosen] = False
    rows = torch.cat([chosen, set_up.fresh(prompt)])
    expected = dense(set_up.reader, prompt, kv, lambda layer: rows, merged(context))
    assert torch.allclose(ours.logits, expected, atol=1e-4)


def test_decoding_is_shaped_too(set_up: Stage) -> None:
    method = row(Scaled(T, S), encode=Alone())
    ours = set_up.prefill(method)
    prompt = ours.prompt
    token = int(ours.logits.argmax())
    context = torch.zeros(6, len(prompt) + 1, dtype=torch.bool)
    context[:, set_up.selectable(prompt)] = True
    from dataclasses import replace

    last = prompt.segments[-1]
    longer = replace(prompt, segments=(*prompt.segments[:-1], replace(last, token_ids=(*last.token_ids, token))))
    fresh = torch.cat([set_up.fresh(prompt), torch.tensor([len(prompt)])])
    expected = dense(set_up.reader, longer, set_up.kv(longer), lambda layer: fresh, merged(context))
    assert torch.allclose(ours.step(token), expected, atol=1e-4)


def test_one_and_one_change_nothing(set_up: Stage) -> None:
    plain = set_up.prefill(Method("own", Alone()))
    assert torch.equal(set_up.prefill(row(Scaled(1, 1), encode=Alone())).logits, plain.logits)


def test_all_recomputed_is_full_prefill(set_up: Stage) -> None:
    ours = set_up.prefill(row(Scaled(T, S), RandomTokens(1)), 1.0)
    full, _ = set_up.reader.stock(ours.prompt.token_ids)
    assert torch.allclose(ours.logits, full, atol=1e-4)


def test_a_temperature_of_zero_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="temperature"):
        Scaled(temperature=0)
