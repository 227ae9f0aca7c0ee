"""Gathered rows see what a dense mask would let them see, whichever way the attention is computed."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from conftest import ATTENDING
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import DynamicCache

from ragcache.errors import UnsupportedModel
from ragcache.model import attention, plan
from ragcache.model.architecture import cache_argument
from ragcache.model.plan import Chunked, ForwardPlan, Positions, Slots, Window
from ragcache.model.reader import Reader

ANYTHING = settings(deadline=None, max_examples=60)


@st.composite
def rows_of_a_prompt(draw: st.DrawFn) -> tuple[Slots, int, Window]:
    """Some ascending slots of a prompt, its length, and a sliding window, chunks or neither."""
    end = draw(st.integers(1, 90))
    slots = draw(st.sets(st.integers(0, end - 1), min_size=1))
    window = draw(st.none() | st.integers(1, 100) | st.integers(1, 100).map(Chunked))
    return Slots(torch.tensor(sorted(slots))), end, window


def dense(slots: Tensor, keys: int, window: Window) -> Tensor:
    """(rows, keys), pair by pair."""
    if isinstance(window, Chunked):
        size = window.size
        return torch.tensor([[k <= s and s // size == k // size for k in range(keys)] for s in slots.tolist()])
    return torch.tensor([[k <= s and (window is None or s - k < window) for k in range(keys)] for s in slots.tolist()])


def tensors(rows: int, keys: int) -> tuple[Tensor, Tensor, Tensor]:
    source = torch.Generator().manual_seed(rows * 100 + keys)
    return tuple(torch.randn(1, n, m, 8, generator=source) for n, m in ((4, rows), (2, keys), (2, keys)))


@given(rows_of_a_prompt(), st.sampled_from([1, 7, 32, 256]))
@ANYTHING
def test_blocks_cover_every_row_once_and_see_what_the_dense_mask_shows(
    drawn: tuple[Slots, int, Window], size: int
) -> None:
    slots, end, window = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "BLOCK", size)
        blocks = ForwardPlan(slots, end).blocks(window)
    assert [row for block in blocks for row in range(block.rows.start, block.rows.stop)] == list(range(len(slots)))
    seen = torch.zeros(len(slots), end, dtype=torch.bool)
    for block in blocks:
        visible = seen[block.rows, block.keys]
        visible[:, : block.common] = True
        visible[:, block.common :] = True if block.mask is None else block.mask
        assert block.mask is None or bool(block.mask.any(1).all())  # a softmax over nothing is no number
        bias = block.bias(torch.bfloat16)
        assert bias is block.bias(torch.bfloat16)  # all layers share it
        assert bias is None if block.mask is None else torch.equal(bias[0, 0] == 0, block.mask)  # type: ignore[index]
        assert bool(visible.any(0)[[0, -1]].all()), "a key at an end that no row sees"
    assert torch.equal(seen, dense(slots, end, window))


def test_in_bf16_two_joined_parts_err_hardly_more_than_one_masked_product() -> None:
    slots = Slots(torch.arange(30, 330, 2))
    source = torch.Generator().manual_seed(1)
    tensors = [torch.randn(1, heads, rows, 64, generator=source) for heads, rows in ((4, 150), (2, 330), (2, 330))]
    query, key, value = (tensor.bfloat16() for tensor in tensors)
    mask = dense(slots, 330, None)
    how: dict[str, Any] = {"attn_mask": mask, "scale": 0.5, "enable_gqa": True}  # sharp: some rows see little else
    truth = F.scaled_dot_product_attention(query.double(), key.double(), value.double(), **how)
    plain = F.scaled_dot_product_attention(query, key, value, **how)
    found = attention._plain(query, key, value, ForwardPlan(slots, 330), 0.5, None)
    assert found.dtype == torch.bfloat16
    assert (found - truth).norm() <= 1.5 * (plain - truth).norm()  # two roundings in place of one


def test_a_window_that_holds_every_key_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    windows: list[int | None] = []
    monkeypatch.setattr(attention, "_plain", lambda *given: windows.append(given[-1]))
    query, key, value = tensors(3, 10)
    plan = ForwardPlan(Slots(torch.tensor([2, 5, 9])), 10)
    for window in (None, 9, 10, 11):
        attention.attended(query, key, value, plan, 0, 0.3, window)
    assert windows == [None, 9, None, None]


@given(rows_of_a_prompt())
@ANYTHING
def test_blocked_and_scored_attention_equal_dense_attention(drawn: tuple[Slots, int, Window]) -> None:
    slots, end, window = drawn
    query, key, value = tensors(len(slots), end)
    wanted = F.scaled_dot_product_attention(
        query, key, value, attn_mask=dense(slots, end, window), scale=0.3, enable_gqa=True
    )
    collected: list[Tensor] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "BLOCK", 16)
        patch.setattr(attention, "EXPLICIT_ROWS", 16)
        patch.setattr(attention, "EXPLICIT_LOGITS", 4 * 300 * 9)  # of 4 heads: 9 rows of 300 keys, 16 of few
        patch.setattr(attention, "_LEAST_ROWS", 1)
        blocked = attention._plain(query, key, value, ForwardPlan(slots, end), 0.3, window)
        asked = ForwardPlan(slots, end, scores={3: collected.append})
        scored = attention._explicit(query, key, value, asked, 3, 0.3, window)
    assert torch.allclose(blocked, wanted, atol=1e-5)
    assert torch.allclose(scored, wanted, atol=1e-5)
    probabilities = torch.cat(collected, dim=1)  # (heads, rows, keys)
    assert probabilities.shape == (4, len(slots), end)
    assert probabilities.dtype == torch.float32
    assert torch.allclose(probabilities.sum(-1), torch.ones(()), atol=1e-5)
    assert not probabilities.masked_select(~dense(slots, end, window)).any()


def test_in_fp16_products_may_be_larger_than_the_type() -> None:
    slots = Slots(torch.arange(5, 20))
    query, key, value = (tensor.half() for tensor in tensors(len(slots), 20))
    query[..., 0] = key[..., 0] = 300  # their product is 90,000, which every key has, so no probability changes
    seen: list[Tensor] = []
    asked = ForwardPlan(slots, 20, scores={3: seen.append})
    found = attention.attended(query, key, value, asked, 3, 8**-0.5, None)
    how: dict[str, Any] = {"attn_mask": dense(slots, 20, None), "scale": 8**-0.5, "enable_gqa": True}
    wanted = F.scaled_dot_product_attention(query.double(), key.double(), value.double(), **how)
    assert found.dtype == torch.float16
    assert (found - wanted).abs().max() <= 0.02
    assert torch.allclose(seen[0].sum(-1), torch.ones(()), atol=1e-5)


@given(rows_of_a_prompt(), st.none() | st.floats(0.2, 5), st.booleans(), st.booleans())
@ANYTHING
def test_capped_logits_and_sinks_are_the_textbooks(
    drawn: tuple[Slots, int, Window], cap: float | None, sunk: bool, scored: bool
) -> None:
    slots, end, window = drawn
    query, key, value = (tensor.double() for tensor in tensors(len(slots), end))
    sinks = torch.tensor([-1.0, 0.5, 2.0, 0.0]) if sunk else None
    logits = 0.3 * query[0] @ key[0].repeat_interleave(2, 0).transpose(1, 2)  # (heads, rows, keys)
    logits = logits if cap is None else cap * torch.tanh(logits / cap)
    shares = logits.exp() * dense(slots, end, window)
    total = shares.sum(-1, keepdim=True) + (0 if sinks is None else sinks[:, None, None].exp())
    wanted = shares / total @ value[0].repeat_interleave(2, 0)
    collected: list[Tensor] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "EXPLICIT_ROWS", 7)
        forward = ForwardPlan(slots, end, {0: collected.append} if scored else {})
        key.ragcache_plan = forward  # type: ignore[attr-defined]
        module, given = SimpleNamespace(layer_idx=0), {"softcap": cap, "s_aux": sinks, "layer_windows": [window]}
        output, _ = attention.attention(module, query, key, value, None, scaling=0.3, **given)  # type: ignore[arg-type]
    assert torch.allclose(output.transpose(1, 2)[0], wanted, atol=1e-6)
    if scored:
        assert torch.allclose(torch.cat(collected, 1).double(), shares / total, atol=1e-6)


@given(st.lists(rows_of_a_prompt(), min_size=2, max_size=4), st.booleans())
@ANYTHING
def test_runs_of_one_plan_do_not_see_each_other(drawn: list[tuple[Slots, int, Window]], scored: bool) -> None:
    window, starts = drawn[0][2], [0]
    for _, end, _ in drawn:
        starts.append(starts[-1] + end)
    slots = Slots(torch.cat([run[0] + start for run, start in zip(drawn, starts, strict=False)]))
    mask = torch.block_diag(*(dense(run[0], run[1], window) for run in drawn)).bool()
    query, key, value = tensors(len(slots), starts[-1])
    collected: list[Tensor] = []
    forward = ForwardPlan(slots, starts[-1], {0: collected.append} if scored else {}, cu_seqlens=starts)
    key.ragcache_plan = forward  # type: ignore[attr-defined]
    module = SimpleNamespace(layer_idx=0)
    output, _ = attention.attention(module, query, key, value, None, scaling=0.3, layer_windows=[window])  # type: ignore[arg-type]
    wanted = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=0.3, enable_gqa=True)
    assert torch.allclose(output.transpose(1, 2), wanted, atol=1e-5)
    assert [block.shape[2] for block in collected] == ([end for _, end, _ in drawn] if scored else [])


def test_blocks_are_built_once_per_window() -> None:
    forward = ForwardPlan(Slots(torch.arange(5)), 5)
    assert forward.blocks(None) is forward.blocks(None)
    assert forward.blocks(2) is forward.blocks(2)
    assert forward.blocks(2) is not forward.blocks(3)


def test_a_window_counts_the_rows_own_slot() -> None:
    mask = plan.visible(torch.tensor([5, 6]), 0, 7, 3)
    assert mask is not None
    assert mask.tolist() == [[False] * 3 + [True] * 3 + [False], [False] * 4 + [True] * 3]
    assert plan.visible(torch.tensor([6]), 4, 7, 3) is None  # one row that sees all it is given needs no mask


def called(keys: int = 6, rows: int = 2, layer: int = 0, **kwargs: Any) -> Tensor:
    query, key, value = tensors(rows, keys)
    mask = kwargs.pop("attention_mask", None)
    output, weights = attention.attention(SimpleNamespace(layer_idx=layer), query, key, value, mask, **kwargs)  # type: ignore[arg-type]
    assert weights is None
    return output


def test_without_a_plan_the_queries_are_the_last_slots() -> None:
    query, key, value = tensors(2, 6)
    wanted = F.scaled_dot_product_attention(
        query, key, value, attn_mask=dense(torch.tensor([4, 5]), 6, None), enable_gqa=True
    )
    output = called(use_cache=True, position_ids=torch.zeros(1, 2), sliding_window=None, softcap=None, s_aux=None)
    assert output.shape == (1, 2, 4, 8)
    assert torch.allclose(output, wanted.transpose(1, 2), atol=1e-6)


@pytest.mark.parametrize("name", ["position_bias", "attention_mask", "never_heard_of"])
def test_what_would_change_the_arithmetic_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedModel, match=name):
        called(**{name: torch.ones(1)})


@pytest.mark.parametrize("name", ["llama", "qwen2-hybrid", "mistral-sliding", "gemma3"])
@pytest.mark.parametrize("length", [47, 48, 49, 120])
def test_sliding_windows_count_as_transformers_does(name: str, length: int, readers: Callable[[str], Reader]) -> None:
    reader = readers(name)
    ids, slots = list(range(20, 20 + length)), Slots(torch.arange(length))
    stock, cache = reader.stock(ids)
    buffer = reader.buffer(length + 1)
    ours = reader.logits(ids, Positions(slots), buffer, ForwardPlan(slots, length))
    assert (ours - stock).abs().max() <= 1e-5
    last = Slots(torch.tensor([length]))
    following = reader.logits([7], Positions(last), buffer, ForwardPlan(last, length + 1))
    assert (following - reader.stock([7], cache)[0]).abs().max() <= 1e-5


@pytest.mark.parametrize("name", ATTENDING)
def test_sparse_queries_equal_stock_attention_with_a_4d_mask(name: str, readers: Callable[[str], Reader]) -> None:
    """The twin: the same stale keys and the same rows, through stock SDPA, the stock cache and an explicit mask."""
    reader, end = readers(name), 130
    source = torch.Generator().manual_seed(4)
    stale, ids = (torch.randint(8, 250, (end,), generator=source) for _ in range(2))
    rows = (torch.rand(end, generator=source) < 0.3).nonzero().squeeze(1)
    rows = Slots(torch.cat([rows, torch.arange(end - 5, end)]).unique())
    kept = torch.tensor(sorted(set(range(end)) - set(rows.tolist())))

    buffer = reader.buffer(end)
    reader.place(buffer, reader.encode(stale.tolist()), 0, 0)
    ours = reader.logits(ids[rows].tolist(), Positions(rows), buffer, ForwardPlan(rows, end))

    cache = DynamicCache()
    for layer, (key, value) in enumerate(reader.encode(stale.tolist()).layers):
        cache.update(key[None, :, kept], value[None, :, kept], layer)
    columns = torch.cat([kept, rows])
    window = getattr(reader.model.config, "sliding_window", None)
    full, sliding = (dense(rows, end, w)[:, columns][None, None] for w in (None, window))
    hybrid = {"full_attention": full, "sliding_attention": sliding}
    with torch.no_grad():
        twin = reader.model(
            input_ids=ids[rows][None],
            position_ids=rows[None],
            attention_mask=hybrid if getattr(reader.model.config, "layer_types", None) else sliding,
            **cache_argument(reader.model, cache),
        ).logits[0, -1]
    assert (ours - twin).abs().max() <= 1e-5
    untouched = reader.stock(stale.tolist())[0]
    assert (ours - untouched).abs().max() > 1e-2, "the rows must matter, or this proves nothing"
