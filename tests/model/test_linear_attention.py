"""Layers that carry a state: chunks' changes compose in any order, and equal what the stock layers do run by run."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from conftest import HYBRIDS, byte_tokenizer, tiny_model
from ragcache_bench.spliced_cache import SplicedCache
from torch import Tensor

from ragcache.errors import UnsupportedModel
from ragcache.model import linear_attention
from ragcache.model.buffer import ChunkKV, KVBuffer
from ragcache.model.linear_attention import State, StateChange, StateLayer, find_runs
from ragcache.model.plan import ForwardPlan, Positions, Slots
from ragcache.model.reader import Reader

PARTS = ((0, 17), (17, 19), (19, 41))  # of 50 tokens; one chunk is shorter than a convolution looks back
TOKENS = torch.randint(8, 250, (50,), generator=torch.Generator().manual_seed(3)).tolist()

Readers = Callable[[str], Reader]


def read_behind(reader: Reader, kvs: Sequence[ChunkKV], rest: Sequence[int]) -> tuple[Tensor, KVBuffer]:
    """Logits after some more tokens behind chunks."""
    buffer, slot = reader.buffer(64), 0
    for kv in kvs:
        reader.place(buffer, kv, slot, slot)
        slot += len(kv)
    slots = Slots(torch.arange(slot, slot + len(rest)))
    return reader.logits(rest, Positions(slots), buffer, ForwardPlan(slots, slot + len(rest))), buffer


@pytest.mark.parametrize("name", HYBRIDS)
def test_chunks_in_every_order_are_what_the_stock_layers_make_of_them_one_by_one(name: str, readers: Readers) -> None:
    reader = readers(name)
    kvs = {part: reader.encode(TOKENS[slice(*part)]) for part in PARTS}
    seen = []
    for order in itertools.permutations(PARTS):
        logits, _ = read_behind(reader, [kvs[part] for part in order], TOKENS[41:])
        spliced, at = SplicedCache(reader.model), 0
        for part in order:
            spliced.place(TOKENS[slice(*part)], at)
            at += part[1] - part[0]
        assert (logits - spliced.read(TOKENS[41:], at)).abs().max() <= 1e-4, order
        seen.append(logits)
    assert all((one - other).abs().max() > 1e-3 for one, other in itertools.combinations(seen, 2))


@pytest.mark.parametrize("name", HYBRIDS)
def test_chunks_that_were_made_behind_each_other_are_one_run_and_decoding_goes_on_as_stock_does(
    name: str, readers: Readers
) -> None:
    reader, made = readers(name), []
    for part in PARTS:
        made.append(reader.encode(TOKENS[slice(*part)], made[:]))
    stock, cache = reader.stock(TOKENS)
    logits, buffer = read_behind(reader, made, TOKENS[41:])
    assert (logits - stock).abs().max() <= 1e-4
    for slot in range(50, 56):
        token = int(stock.argmax())
        stock, cache = reader.stock([token], cache)
        slots = Slots(torch.tensor([slot]))
        buffer.truncate(slot)
        logits = reader.logits([token], Positions(slots), buffer, ForwardPlan(slots, slot + 1))
        assert (logits - stock).abs().max() <= 1e-4, slot


@pytest.mark.parametrize("name", HYBRIDS)
def test_rows_between_chunks_read_the_state_at_their_place_in_one_forward(name: str, readers: Readers) -> None:
    reader = readers(name)
    buffer, spliced = reader.buffer(64), SplicedCache(reader.model)
    for start, stop in ((4, 15), (18, 30)):
        reader.place(buffer, reader.encode(TOKENS[start:stop]), start, start)
    rows = [*range(4), *range(15, 18), *range(30, 40)]
    slots = Slots(torch.tensor(rows))
    logits = reader.logits([TOKENS[row] for row in rows], Positions(slots), buffer, ForwardPlan(slots, 40))
    spliced.read(TOKENS[:4], 0)
    spliced.place(TOKENS[4:15], 4)
    spliced.read(TOKENS[15:18], 15)
    spliced.place(TOKENS[18:30], 18)
    assert (logits - spliced.read(TOKENS[30:40], 30)).abs().max() <= 1e-4


def test_a_copy_of_a_buffers_beginning_knows_its_states_and_none_behind(readers: Readers) -> None:
    reader = readers("qwen3.5")
    kvs = [reader.encode(TOKENS[slice(*part)]) for part in PARTS[:2]]
    logits, buffer = read_behind(reader, kvs, TOKENS[41:])
    copy, slots = buffer.beginning(19, 64), Slots(torch.arange(19, 28))
    assert torch.equal(reader.logits(TOKENS[41:], Positions(slots), copy, ForwardPlan(slots, 28)), logits)


def test_a_part_of_a_chunk_cannot_be_computed_anew_and_a_state_cannot_go_back(readers: Readers) -> None:
    reader = readers("qwen3.5")
    _, buffer = read_behind(reader, [reader.encode(TOKENS[:20])], TOKENS[20:30])
    slots = Slots(torch.arange(8, 12))
    with pytest.raises(UnsupportedModel, match=r"tokens 8 to 12 cannot be computed anew within 0 to 20.*--recompute 0"):
        reader.logits(TOKENS[8:12], Positions(slots), buffer, ForwardPlan(slots, 30))
    with pytest.raises(UnsupportedModel, match="cannot go back to token 25"):
        buffer.truncate(25)
    cut = reader.encode(TOKENS[:20]).first(10)
    with pytest.raises(UnsupportedModel, match="says nothing of the state of layer 0"):
        reader.place(reader.buffer(20), cut, 0, 0)


def test_a_change_is_small_beside_its_tokens_only_for_long_chunks(readers: Readers) -> None:
    reader = readers("qwen3.5")
    short, long = reader.encode(TOKENS[:5]), reader.encode(TOKENS[:50])
    assert short.state_nbytes == long.state_nbytes == reader.bytes_per_chunk + 2 * 2 * 80 * 4  # a seam of 3, not of 1
    assert long.nbytes == long.state_nbytes + 50 * reader.bytes_per_token
    assert reader.bytes_per_token == 2 * 2 * 2 * 16 * 4  # two layers of four have K and V
    assert readers("llama").bytes_per_chunk == 0


def test_a_change_composes_as_matrices_do() -> None:
    made = torch.Generator().manual_seed(0)

    def random(*shape: int) -> Tensor:
        return torch.randn(1, 3, *shape, generator=made)

    changes = [StateChange(n, random(4, 4), random(4, 5), random(min(n, 3))) for n in (2, 7, 1)]
    layer, at = StateLayer(0), 0
    for change in changes:
        layer.write(at, at + change.tokens, change)
        at += change.tokens
    memory = torch.zeros(1, 3, 4, 5)
    for change in changes:
        memory = change.transition @ memory + change.end
    found = layer.before(10)
    assert found is not None
    torch.testing.assert_close(found.memory, memory)
    assert torch.equal(found.seam, torch.cat([changes[1].seam, changes[2].seam], -1))
    assert layer.before(0) is None
    assert layer.before(9).memory is not None


def test_runs_are_rows_that_stand_next_to_each_other() -> None:
    assert find_runs([0, 1, 5, 6, 7, 9]) == [(slice(0, 2), 0, 2), (slice(2, 5), 5, 8), (slice(5, 6), 9, 10)]


def exchanged(patch: pytest.MonkeyPatch) -> None:
    """A and B change places."""
    measure = linear_attention._measure

    def wrong(*given: Any) -> StateChange:
        right = measure(*given)
        return StateChange(right.tokens, right.end[..., :12], right.transition, right.seam)

    patch.setattr(linear_attention, "_measure", wrong)


def forgotten(patch: pytest.MonkeyPatch) -> None:
    """A is left out: what stands in front of a chunk is forgotten."""

    def apply(self: StateChange, state: State | None) -> State:
        return State(None if self.end is None else self.end.float(), self.seam)

    patch.setattr(StateChange, "apply", apply)


def shorter(patch: pytest.MonkeyPatch) -> None:
    """A seam of one input less."""
    patch.setattr(linear_attention, "_last", lambda inputs, count: inputs[..., max(0, inputs.shape[-1] - count + 1) :])


@pytest.mark.parametrize(
    ("name", "mutate"),
    [("square", exchanged), ("qwen3-next", forgotten), ("qwen3-next", shorter), ("lfm2", shorter)],
)
def test_a_wrong_composition_is_refused_when_the_model_is_loaded(
    name: str, mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    square = {"linear_key_head_dim": 12, "linear_value_head_dim": 12}
    model = tiny_model("qwen3.5", **square) if name == "square" else tiny_model(name)
    Reader(model, byte_tokenizer())
    mutate(monkeypatch)
    with pytest.raises(UnsupportedModel, match=r"with a reused chunk are [\d.e+-]+ off"):
        Reader(model, byte_tokenizer())
