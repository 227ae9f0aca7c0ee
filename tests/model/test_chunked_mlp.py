"""Feed-forward parts in tiles of rows say what they say in one go, and are left as they were."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import ATTENDING, SIZES, byte_tokenizer, tiny_reader
from torch import Tensor

from ragcache.model import chunked_mlp
from ragcache.model.plan import ForwardPlan, Positions, Slots
from ragcache.model.reader import Reader

TOKENS = list(range(60, 160))


def logits(reader: Reader) -> Tensor:
    slots = torch.arange(len(TOKENS))
    return reader.logits(TOKENS, Positions(slots), reader.buffer(len(TOKENS)), ForwardPlan(Slots(slots), len(TOKENS)))


def rows_of(part: torch.nn.Module) -> list[int]:
    """How many rows each run of a module is given, as they come."""
    seen: list[int] = []
    part.register_forward_pre_hook(lambda _, given: seen.append(given[0].shape[1]))
    return seen


@pytest.mark.parametrize("name", ATTENDING)
def test_tiles_give_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = tiny_reader(name)
    down = next(m for n, m in reader.model.named_modules() if n.endswith("mlp.down_proj"))
    whole, seen = logits(reader), rows_of(down)
    monkeypatch.setattr(chunked_mlp, "CHUNK_ROWS", 32)
    assert torch.allclose(logits(reader), whole, atol=1e-5)
    assert seen == [25, 25, 25, 25]
    assert not any("forward" in vars(part) for part in reader.model.modules())


def test_requests_together_and_rows_that_leave_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = tiny_reader()
    slots = torch.arange(len(TOKENS))

    def narrowed() -> Tensor:
        def narrow(layer: int, slots: Slots) -> Tensor | None:
            return torch.arange(70, len(slots)) if layer == 2 else None

        buffer = reader.buffer(len(TOKENS))
        buffer.place(0, reader.encode(TOKENS).layers)  # what leaves is still looked at
        return reader.logits(TOKENS, Positions(slots), buffer, ForwardPlan(Slots(slots), len(TOKENS), prune=narrow))

    whole, left = logits(reader), narrowed()
    monkeypatch.setattr(chunked_mlp, "CHUNK_ROWS", 32)
    for found in reader.run_batch([lambda: logits(reader)] * 3):
        assert torch.allclose(found, whole, atol=1e-5)
    assert torch.allclose(narrowed(), left, atol=1e-5)


@pytest.mark.parametrize("how", [{"scale": 2.0}, {}])
def test_a_part_that_is_given_more_than_rows_is_left_alone(how: dict[str, float]) -> None:
    seen: list[tuple[int, ...]] = []

    class Part(torch.nn.Module):
        def forward(self, hidden: Tensor, *rest: Tensor, scale: float = 1.0) -> Tensor:
            seen.append(tuple(hidden.shape))
            return hidden * scale

    layer = torch.nn.Module()
    layer.mlp = Part()
    rows = chunked_mlp.CHUNK_ROWS + 1
    with chunked_mlp.chunked_mlp([layer], rows):
        layer.mlp(torch.ones(rows, 2), **how)
        layer.mlp(torch.ones(1, rows, 2), torch.ones(1), **how)
    assert seen == [(rows, 2), (1, rows, 2)]


def test_experts_see_all_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    sizes = {**SIZES, "num_local_experts": 4, "num_experts_per_tok": 2}
    reader = Reader(AutoModelForCausalLM.from_config(AutoConfig.for_model("mixtral", **sizes)), byte_tokenizer())
    seen = rows_of(reader.model.model.layers[0].mlp)
    monkeypatch.setattr(chunked_mlp, "CHUNK_ROWS", 32)
    logits(reader)
    assert seen == [len(TOKENS)]


@pytest.mark.parametrize("error", [None, RuntimeError])
def test_what_another_library_had_put_there_is_there_again(
    error: type[Exception] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = tiny_reader()
    part = reader.model.model.layers[1].mlp
    own: Callable[..., Any] = part.forward
    calls: list[int] = []

    def wrapped(hidden: Tensor) -> Tensor:
        calls.append(hidden.shape[1])
        if error is not None:
            raise error
        result: Tensor = own(hidden)
        return result

    part.forward = wrapped
    monkeypatch.setattr(chunked_mlp, "CHUNK_ROWS", 64)
    if error is None:
        logits(reader)
    else:
        with pytest.raises(error):
            logits(reader)
    assert calls == ([50, 50] if error is None else [50])
    assert part.forward is wrapped
