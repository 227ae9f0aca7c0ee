"""Forwards that begin above the first layer, and rows that leave on the way, in every architecture."""

from collections.abc import Callable

import pytest
import torch
from conftest import ATTENDING
from torch import Tensor

from ragcache.model.cost import FlopCounter
from ragcache.model.layer_hooks import layer_hooks
from ragcache.model.plan import ForwardPlan, Slots
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt, Segment

TOKENS = tuple(range(60, 160))
CHUNK = slice(20, 80)


def passed(reader: Reader) -> PrefillContext:
    """A prompt with a chunk in the middle, whose KV was made alone."""
    parts = (TOKENS[: CHUNK.start], TOKENS[CHUNK], TOKENS[CHUNK.stop :])
    prompt = Prompt(tuple(Segment(ids, "", "c" if i == 1 else None) for i, ids in enumerate(parts)), question=2)
    buffer = reader.buffer(len(TOKENS))
    kv = reader.encode(parts[1])
    reader.place(buffer, kv, CHUNK.start, CHUNK.start)
    return PrefillContext(reader, prompt, buffer, {1: kv}, frozenset(), FlopCounter(reader.dims))


@pytest.mark.parametrize("name", ATTENDING)
def test_a_forward_in_two_parts_is_the_forward(readers: Callable[[str], Reader], name: str) -> None:
    reader = readers(name)
    whole, parts = passed(reader), passed(reader)
    rows = whole.with_fresh(Slots(torch.arange(30, 50)))
    expected = whole.logits(rows)
    hidden = parts.hidden(rows, upto=2)
    assert torch.allclose(parts.logits(rows, first=2, hidden=hidden), expected, atol=1e-5)
    assert parts.flop_counter.flops == pytest.approx(whole.flop_counter.flops)
    assert parts.flop_counter.token_layers == whole.flop_counter.token_layers == 20 * reader.layers


def test_a_last_layer_writes_its_keys_and_values_and_ends_the_forward(reader: Reader) -> None:
    p, entered = passed(reader), list[int]()
    before = p.buffer.read(CHUNK.start, CHUNK.stop)
    p.forward(p.with_fresh(Slots(torch.arange(30, 50))), last=1, on_enter=lambda layer, hidden: entered.append(layer))
    assert entered == [0, 1]
    after = p.buffer.read(CHUNK.start, CHUNK.stop)
    assert [torch.equal(*both) for both in zip(before, after, strict=True)] == [False, False, True, True]


@pytest.mark.parametrize("name", ATTENDING)
def test_rows_that_leave_are_as_if_the_rest_began_there(readers: Callable[[str], Reader], name: str) -> None:
    reader = readers(name)
    narrowed, begun = passed(reader), passed(reader)
    wide, slim = (narrowed.with_fresh(Slots(torch.arange(30, stop))) for stop in (60, 40))

    def narrow(layer: int, slots: Slots) -> Tensor | None:
        return torch.isin(slots, slim).nonzero().squeeze(1) if layer == 2 else None

    found = narrowed.logits(wide, prune=narrow)
    hidden = begun.hidden(wide, upto=2)
    expected = begun.logits(slim, first=2, hidden=hidden[torch.isin(wide, slim)])
    assert torch.allclose(found, expected, atol=1e-5)
    assert not torch.allclose(found, passed(reader).logits(wide), atol=1e-3), "leaving should matter"
    assert narrowed.flop_counter.token_layers == 2 * 30 + (reader.layers - 2) * 10
    assert narrowed.stale[2:, 40:60].all()
    assert not narrowed.stale[:2, 30:60].any()


def test_the_model_is_left_as_it_was_whatever_happens(reader: Reader) -> None:
    p = passed(reader)
    rows = p.with_fresh(Slots(torch.arange(30, 40)))

    def fail(layer: int, hidden: Tensor) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        p.forward(rows, first=2, hidden=torch.zeros(len(rows), 64), on_enter=fail)
    layers = reader.model.model.layers
    assert not any(layer._forward_pre_hooks or "forward" in vars(layer) for layer in layers)


def test_a_plain_forward_has_no_hooks(reader: Reader) -> None:
    layers = reader.model.model.layers
    with layer_hooks(layers, ForwardPlan(Slots(torch.arange(3)), 3)):
        assert not any(layer._forward_pre_hooks or "forward" in vars(layer) for layer in layers)
