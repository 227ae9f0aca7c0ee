"""Every token keeps its slot: scatter, append, growth, truncation, and no plan that outlives its forward."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ragcache.model import attention
from ragcache.model.architecture import cache_argument
from ragcache.model.buffer import ChunkKV, KVBuffer
from ragcache.model.encoded import EncodedLayers
from ragcache.model.plan import ForwardPlan, Positions, Slots
from ragcache.model.reader import Reader

IDS = list(range(30, 70))


def states(slots: list[int]) -> tuple[Tensor, Tensor]:
    """K and V, (1, 2, rows, 4), that say which slot they belong to."""
    key = torch.tensor(slots, dtype=torch.float32)[None, None, :, None].expand(1, 2, -1, 4)
    return key, -key


def scatter(buffer: KVBuffer, slots: list[int], end: int, layer: int = 0) -> tuple[Tensor, Tensor]:
    plan = ForwardPlan(Slots(torch.tensor(slots)), end)
    with buffer.writing(plan):
        return buffer.update(*states(slots), layer)


def held(buffer: KVBuffer, start: int, end: int) -> list[float]:
    key, value = buffer.read(start, end)[0]
    assert torch.equal(key, -value)
    return key[0, :, 0].tolist()


def prefill(reader: Reader, ids: list[int], buffer: KVBuffer, first: int = 0) -> Tensor:
    slots = Slots(torch.arange(first, first + len(ids)))
    return reader.logits(ids, Positions(slots), buffer, ForwardPlan(slots, first + len(ids)))


@given(st.permutations(range(24)), st.integers(1, 30), st.integers(1, 23))
@settings(deadline=None, max_examples=40)
def test_rows_land_in_their_slots_in_whatever_order_and_capacity(order: list[int], capacity: int, cut: int) -> None:
    buffer = KVBuffer(1, capacity)
    scatter(buffer, sorted(order[:cut]), 24)
    keys, values = scatter(buffer, sorted(order[cut:]), 24)
    assert held(buffer, 0, 24) == list(range(24))
    assert keys.shape[2] == values.shape[2] == buffer.length == 24


def test_the_returned_keys_carry_the_plan_and_reach_from_the_first_slot() -> None:
    buffer = KVBuffer(1, 8)
    plan = ForwardPlan(Slots(torch.tensor([1])), 2)
    scatter(buffer, [0], 1)
    with buffer.writing(plan):
        keys, _ = buffer.update(*states([1]), 0)
    assert keys.ragcache_plan is plan  # type: ignore[attr-defined]
    assert keys[0, 0, :, 0].tolist() == [0, 1]


def test_without_a_plan_rows_are_appended_and_carry_none() -> None:
    buffer = KVBuffer(1, 2)
    scatter(buffer, [0, 1, 2], 3)
    keys, _ = buffer.update(*states([3, 4]), 0)
    assert keys.ragcache_plan is None  # type: ignore[attr-defined]
    assert held(buffer, 0, 5) == [0, 1, 2, 3, 4]


def test_rewriting_early_slots_leaves_the_later_ones() -> None:
    buffer = KVBuffer(1, 8)
    scatter(buffer, list(range(8)), 8)
    plan = ForwardPlan(Slots(torch.tensor([2])), 3)
    with buffer.writing(plan):
        assert buffer.get_mask_sizes(1, 0) == (8, 0)
        buffer.update(*states([9]), 0)
    assert held(buffer, 0, 8) == [0, 1, 9, 3, 4, 5, 6, 7]
    assert buffer.length == 8


def test_placing_over_early_slots_leaves_the_later_ones() -> None:
    buffer, early = KVBuffer(1, 8), torch.cat(states([20, 21]))
    scatter(buffer, list(range(8)), 8)
    buffer.place(0, [early])
    assert buffer.length == 8
    encoded = EncodedLayers([{"both": early}], [early.shape], [early.dtype], lambda parts, to: to.copy_(parts["both"]))
    buffer.place_from(2, encoded, early.device)
    assert held(buffer, 0, 8) == [20, 21, 20, 21, 4, 5, 6, 7]
    assert buffer.length == 8


def test_growth_keeps_what_is_there_and_truncation_frees_the_end() -> None:
    buffer = KVBuffer(2, 1)
    for slot in range(20):
        buffer.update(*states([slot]), 0)
        buffer.update(*states([slot]), 1)
    assert held(buffer, 0, 20) == list(range(20))
    assert buffer.capacity >= 20
    buffer.truncate(7)
    assert buffer.length == buffer.get_seq_length() == 7
    buffer.update(*states([70]), 0)
    assert held(buffer, 0, 8) == [*range(7), 70]


def test_place_fills_a_range_and_leaves_a_hole_for_what_comes_between() -> None:
    buffer = KVBuffer(1, 4)
    buffer.place(5, [torch.cat(states([5, 6]))])
    scatter(buffer, [0, 1, 2, 3, 4], 5)
    assert held(buffer, 0, 7) == list(range(7))


def test_reading_copies() -> None:
    buffer = KVBuffer(1, 4)
    scatter(buffer, [0, 1], 2)
    before = buffer.read(0, 2)[0]
    scatter(buffer, [0], 1)
    buffer.write(0, Slots(torch.tensor([1])), torch.ones(2, 1, 4), torch.ones(2, 1, 4))
    assert before[0, 0, :, 0].tolist() == [0, 1]
    assert buffer.keys_at(0, Slots(torch.tensor([1, 0])))[0, :, 0].tolist() == [1, 0]


def test_a_chunk_knows_its_size() -> None:
    kv = ChunkKV((torch.zeros(2, 2, 3, 4),) * 2, 0, (1, 2, 3), {"extra": torch.zeros(5)})
    assert len(kv) == 3
    assert kv.nbytes == (2 * 48 + 5) * 4


def test_writing_ends_after_an_exception() -> None:
    buffer = KVBuffer(1, 4)
    with pytest.raises(RuntimeError, match="stop"), buffer.writing(ForwardPlan(Slots(torch.arange(1)), 1)):
        raise RuntimeError("stop")
    assert buffer.plan is None


def test_no_plan_outlives_a_forward_that_fails(reader: Reader) -> None:
    buffer = reader.buffer(8)

    def fail(layer: int, *_: Tensor) -> None:
        if layer == 1:
            raise RuntimeError("midway")

    slots = Slots(torch.arange(4))
    with pytest.raises(RuntimeError, match="midway"):
        reader.forward(IDS[:4], Positions(slots), buffer, ForwardPlan(slots, 4, on_update=fail))
    assert buffer.plan is None
    prefill(reader, IDS[:8], buffer)
    assert torch.allclose(buffer.read(0, 8)[3], reader.encode(IDS[:8]).layers[3], atol=1e-6)


@pytest.mark.parametrize("name", ["llama", "qwen2-hybrid", "mistral-sliding", "gemma3", "smollm3"])
def test_a_decoder_that_knows_nothing_of_slots_appends(name: str, readers: Callable[[str], Reader]) -> None:
    """`generate` on a buffer that holds all but the last token equals stock generate."""
    reader = readers(name)
    asked = {"max_new_tokens": 24, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    ids = torch.tensor([IDS])
    stock = reader.model.generate(ids, attention_mask=torch.ones_like(ids), **asked)
    buffer = reader.buffer(16)
    prefill(reader, IDS[:-1], buffer)
    given = cache_argument(reader.model, buffer)
    reader.model.set_attn_implementation(attention.NAME)
    try:
        ours = reader.model.generate(ids, attention_mask=torch.ones_like(ids), **asked, **given)
    finally:
        reader.model.set_attn_implementation("sdpa")
    assert ours.tolist() == stock.tolist()
    assert buffer.length == len(IDS) + 23


def test_truncating_forgets_an_answer(reader: Reader) -> None:
    buffer = reader.buffer(4)
    first = prefill(reader, IDS, buffer)
    prefill(reader, [200, 201, 202], buffer, len(IDS))
    buffer.truncate(len(IDS) - 1)
    assert torch.allclose(prefill(reader, IDS[-1:], buffer, len(IDS) - 1), first, atol=1e-5)
    assert buffer.length == len(IDS)


def test_the_first_tokens_of_a_kv_take_their_own_extras_along() -> None:
    layers = (torch.randn(2, 2, 5, 8),)
    kv = ChunkKV(layers, 3, (11, 12, 13, 14, 15), {"hidden": torch.arange(10.0).view(5, 2)})
    short = kv.first(2)
    assert (len(short), short.start, short.token_ids) == (2, 3, (11, 12))
    assert torch.equal(short.layers[0], layers[0][:, :, :2])
    assert short.extras["hidden"].tolist() == [[0, 1], [2, 3]]
