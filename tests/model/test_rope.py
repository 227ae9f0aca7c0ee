"""The probe finds every layout, and one rotation of the stored keys equals what the model computes itself."""

import math
from collections.abc import Callable

import pytest
import torch
from conftest import ARCHITECTURES, tiny_reader
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ragcache.errors import UnsupportedModel
from ragcache.model import rope
from ragcache.model.compatibility import tolerance
from ragcache.model.plan import ForwardPlan, Positions, Slots
from ragcache.model.reader import Reader
from ragcache.model.rope import KeyRotator, RopeLayout

TOKENS = list(range(40, 64))
THETA = tuple((1e6 ** (-torch.arange(32, dtype=torch.float64) / 32)).tolist())  # head_dim 64
#: Pairing per layer and rotated dimensions; half of all 16 where not named.
LAYOUTS = {
    "glm4": (["interleaved"] * 4, 8),
    "smollm3": (["half"] * 3 + ["none"], 16),
    "phi3-partial": (["half"] * 4, 8),
    "qwen3-next": (["half"] * 2, 4),
    "qwen3.5": (["half"] * 2, 4),
}


def own_keys(reader: Reader, position: int) -> tuple[Tensor, ...]:
    """Per layer (2, kv_heads, tokens, head_dim), as the model computes them at `position`."""
    slots = torch.arange(len(TOKENS))
    buffer = reader.buffer(len(TOKENS))
    reader.forward(TOKENS, Positions(slots + position), buffer, ForwardPlan(Slots(slots), len(TOKENS)))
    return buffer.read(0, len(TOKENS))


def off(seen: Tensor, wanted: Tensor) -> float:
    return float((seen.double() - wanted.double()).norm() / wanted.double().norm())


def turned(keys: Tensor, layout: RopeLayout, *deltas: int) -> Tensor:
    """A copy of (kv_heads, tokens, head_dim) keys, moved: all by one distance, or each by its own."""
    copy = keys.clone()
    KeyRotator([layout]).rotate([copy], torch.tensor(deltas).expand(keys.shape[1]))
    return copy


def textbook(keys: Tensor, delta: int, pairing: str, inv_freq: tuple[float, ...], offset: int = 0) -> Tensor:
    """RoPE as complex numbers in fp64, keys (..., head_dim); shares nothing with the code under test."""
    n = len(inv_freq)
    turned = keys.double().clone()
    first = range(offset, offset + n) if pairing == "half" else range(offset, offset + 2 * n, 2)
    second = range(offset + n, offset + 2 * n) if pairing == "half" else range(offset + 1, offset + 2 * n, 2)
    for a, b, frequency in zip(first, second, inv_freq, strict=True):
        z = torch.complex(keys[..., a].double(), keys[..., b].double())
        z = z * complex(math.cos(delta * frequency), math.sin(delta * frequency))
        turned[..., a], turned[..., b] = z.real, z.imag
    return turned


@pytest.mark.parametrize("name", sorted(ARCHITECTURES))
def test_probe_finds_the_layout_of_every_layer(name: str, readers: Callable[[str], Reader]) -> None:
    pairings, rotated = LAYOUTS.get(name, (["half"] * readers(name).kv_layers, 16))
    layouts = readers(name).rotator.layouts
    assert [layout.pairing for layout in layouts] == pairings
    assert {2 * len(layout.inv_freq) for layout in layouts if layout.pairing != "none"} == {rotated}


def test_probe_tells_the_two_frequencies_of_hybrid_layers_apart(readers: Callable[[str], Reader]) -> None:
    sliding, full, *rest = readers("gemma3").rotator.layouts
    assert rest == [sliding, full]
    assert sliding.inv_freq[1] == pytest.approx(1e4 ** (-1 / 8), rel=1e-6)
    assert full.inv_freq[1] == pytest.approx(1e6 ** (-1 / 8), rel=1e-6)


@pytest.mark.parametrize("delta", [37, 2000])
@pytest.mark.parametrize("name", sorted(ARCHITECTURES))
def test_moved_keys_are_the_models_own(name: str, delta: int, readers: Callable[[str], Reader]) -> None:
    reader = readers(name)
    stored, moved = own_keys(reader, 0), own_keys(reader, delta)
    for layer, (before, after) in enumerate(zip(stored, moved, strict=True)):
        assert off(turned(before[0], reader.rotator.layouts[layer], delta), after[0]) < 1e-4
        if reader.rotator.layouts[layer].pairing != "none":
            assert off(before[0], after[0]) > 0.2, "keys must really have moved"
        assert off(before[1], after[1]) < 1e-4


@pytest.mark.parametrize("name", [*(n for n in ARCHITECTURES if n.startswith("llama")), *LAYOUTS])
def test_moved_keys_are_the_models_own_in_bfloat16(name: str) -> None:
    reader = tiny_reader(name, dtype=torch.bfloat16)
    stored, moved = own_keys(reader, 0), own_keys(reader, 2000)
    for layer, (before, after) in enumerate(zip(stored, moved, strict=True)):
        ours = turned(before[0], reader.rotator.layouts[layer], 2000)
        assert ours.dtype == torch.bfloat16
        # The model's own noise is the yardstick: V does not rotate, and differs as much.
        assert off(ours, after[0]) < max(3 * off(before[1], after[1]), 1e-2) < tolerance(torch.bfloat16)


@pytest.mark.parametrize("delta", [1, -300, 4096, 130_560])
@pytest.mark.parametrize(("pairing", "offset"), [("half", 0), ("interleaved", 0), ("half", 32), ("interleaved", 32)])
def test_rotation_is_the_textbooks(pairing: rope.Pairing, offset: int, delta: int) -> None:
    keys = torch.randn(2, 5, 64 + offset, generator=torch.Generator().manual_seed(1))
    moved = turned(keys, RopeLayout(pairing, THETA, offset), delta)
    assert off(moved, textbook(keys, delta, pairing, THETA, offset)) < 2e-6
    assert torch.equal(moved[..., :offset], keys[..., :offset])


def test_bfloat16_is_rounded_once() -> None:
    keys = torch.randn(2, 50, 64, generator=torch.Generator().manual_seed(2)).bfloat16()
    exact = textbook(keys, 4096, "half", THETA)
    moved = turned(keys, RopeLayout("half", THETA), 4096)
    assert ((moved.double() - exact).abs() <= 2**-8 * exact.abs() + 1e-5).all()  # half a unit in the last place


def test_every_placement_rotates_the_stored_copy(reader: Reader) -> None:
    kv = reader.encode(TOKENS)
    stored = [layer.clone() for layer in kv.layers]
    buffer = reader.buffer(1024)
    for start in (900, 500, 100):
        reader.place(buffer, kv, start, start)
    for layer, before in enumerate(stored):
        for start in (100, 500):
            once = turned(before[0], reader.rotator.layouts[layer], start)
            assert torch.equal(buffer.read(start, start + 24)[layer][0], once)
        assert torch.equal(kv.layers[layer], before)


@pytest.mark.parametrize("together", [1, 7, 4096])
def test_placing_together_is_placing_one_by_one(together: int, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragcache.model.rope._ROTATED", together)
    kvs = [reader.encode(TOKENS), reader.encode(TOKENS[:5]), reader.encode(TOKENS[3:])]
    where = list(zip(kvs, (4, 40, 28), (300, 40, 0), strict=True))  # with a gap, and out of order
    singly, at_once = reader.buffer(64), reader.buffer(64)
    for placement in where:
        reader.place(singly, *placement)
    reader.place_all(at_once, where)
    for kv, slot, _ in where:
        pairs = zip(singly.read(slot, slot + len(kv)), at_once.read(slot, slot + len(kv)), strict=True)
        assert all(torch.equal(one, other) for one, other in pairs)
    reader.place_all(at_once, [])


def test_distance_counts_from_where_the_keys_were_made(reader: Reader) -> None:
    kv = reader.encode(TOKENS, [reader.encode(list(range(70, 80)))])
    assert kv.start == 10
    buffer = reader.buffer(64)
    reader.place(buffer, kv, 0, 10)
    for placed, stored in zip(buffer.read(0, len(kv)), kv.layers, strict=True):
        assert torch.equal(placed, stored)  # at its own position nothing is touched, whatever the slot


@given(st.integers(-5000, 5000), st.integers(-5000, 5000), st.sampled_from(["half", "interleaved"]))
@settings(deadline=None, max_examples=50)
def test_rotations_compose_and_keep_lengths(a: int, b: int, pairing: rope.Pairing) -> None:
    layout = RopeLayout(pairing, THETA[::4])
    keys = torch.randn(1, 3, 20, generator=torch.Generator().manual_seed(4))
    assert torch.allclose(turned(turned(keys, layout, a), layout, b), turned(keys, layout, a + b), atol=2e-6)
    assert torch.allclose(turned(keys, layout, a).norm(dim=-1), keys.norm(dim=-1), rtol=1e-6)


def test_every_token_moves_by_its_own_distance() -> None:
    layout, keys = RopeLayout("half", THETA), torch.ones(2, 4, 64)
    moved = turned(keys, layout, 7, 0, -5, 7)
    for token, delta in enumerate((7, 0, -5, 7)):
        assert off(moved[:, token], textbook(keys[:, token], delta, "half", THETA)) < 1e-6
    assert torch.equal(moved[:, 1], keys[:, 1])


def synthetic(pairing: str, offset: int = 0, **changes: float) -> Callable[[int], list[tuple[Tensor, Tensor]]]:
    """One layer of a made-up model, to be probed."""
    keys, values = torch.randn(2, 2, 2, 80, generator=torch.Generator().manual_seed(3))

    def record(position: int) -> list[tuple[Tensor, Tensor]]:
        stretch = changes.get("stretch", 1.0) if position > 1000 else 1.0
        inv_freq = tuple(f / stretch for f in THETA)
        moved = keys if pairing == "none" else textbook(keys, position, pairing, inv_freq, offset).float()
        return [(moved, values * (1 + changes.get("drift", 0.0) * position))]

    return record


@pytest.mark.parametrize(
    ("pairing", "offset"), [("none", 0), ("half", 0), ("interleaved", 0), ("half", 16), ("interleaved", 16)]
)
def test_probe_finds_partial_layouts_in_the_first_or_last_dimensions(pairing: rope.Pairing, offset: int) -> None:
    [found] = rope.probe(synthetic(pairing, offset), [torch.tensor(THETA)], limit=4096, tolerance=2e-3)
    assert (found.pairing, found.offset) == (pairing, offset)


def test_probe_finds_keys_that_turn_the_other_way() -> None:
    [found] = rope.probe(synthetic("half"), [-torch.tensor(THETA)], limit=4096, tolerance=2e-3)
    assert (found.pairing, found.inv_freq[0]) == ("half", 1.0)


@pytest.mark.parametrize(
    ("change", "reason", "dtype"),
    [
        ({"stretch": 2.0}, "4,?094 positions", torch.float32),
        ({"drift": 0.01}, "values change", torch.float32),
        ({"stretch": 1.0003}, "4,?094 positions", torch.bfloat16),  # off by a quarter
        ({"drift": 0.25 / 4094}, "values change", torch.bfloat16),
    ],
)
def test_probe_refuses_what_depends_on_more_than_the_distance(
    change: dict[str, float], reason: str, dtype: torch.dtype
) -> None:
    with pytest.raises(UnsupportedModel, match=f"layer 0.*{reason}"):
        rope.probe(synthetic("half", **change), [torch.tensor(THETA)], limit=4096, tolerance=tolerance(dtype))


def test_probe_refuses_keys_that_are_no_numbers() -> None:
    """Every comparison with NaN is false: such a layer would pass as one that does not turn."""
    record = synthetic("half")

    def overflowing(position: int) -> list[tuple[Tensor, Tensor]]:
        [(keys, values)] = record(position)
        return [(keys.clone().fill_(float("nan")), values)]

    with pytest.raises(UnsupportedModel, match="layer 0: keys or values are no numbers"):
        rope.probe(overflowing, [torch.tensor(THETA)], limit=4096, tolerance=tolerance(torch.float32))
