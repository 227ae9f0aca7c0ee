"""A second choice at a middle layer: against a dense forward that is handed the stored states."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from dense import dense, stale
from stages import Stage, stage
from torch import Tensor

from ragcache.encode import Activations, Alone, Prefixed
from ragcache.encode.fused import Fused
from ragcache.errors import InvalidArgument
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.model.plan import Slots
from ragcache.model.prefill_context import PrefillContext
from ragcache.prompt import Prompt
from ragcache.schedule import Reselect
from ragcache.select import RandomTokens

MIDDLE = 3
ROW = Method("own", Activations(Alone(), MIDDLE), RandomTokens(5), 0.25, schedule=Reselect(MIDDLE))


@pytest.fixture
def set_up(tmp_path: Path) -> Stage:
    made = stage(tmp_path, "naive")
    list(made.engine.index.encode(Activations(Alone(), MIDDLE)))
    return made


def alone(set_up: Stage, prompt: Prompt) -> Tensor:
    """Hidden states that enter the middle layer when every chunk is read alone, (slots, width)."""
    states = torch.zeros(len(prompt), 64)
    for segment in prompt.chunks():
        part = Prompt((prompt.segments[segment],), question=0)

        def look(layer: int, hidden: Tensor, key: Tensor, segment: int = segment) -> None:
            if layer == MIDDLE:
                states[prompt.slots[segment] : prompt.slots[segment + 1]] = hidden

        everything = torch.arange(len(part))
        dense(set_up.reader, part, stale(set_up.reader, part, {}), lambda layer, own=everything: own, look=look)
    return states


def test_the_second_choice_ranks_by_keys_made_from_stored_states(set_up: Stage) -> None:
    ours = set_up.prefill(ROW)
    prompt = ours.prompt
    candidates, fresh = set_up.selectable(prompt), set_up.fresh(prompt)
    assert ours.context is not None
    scores = RandomTokens(5).scores(ours.context)[candidates]
    count = round(0.25 * len(candidates))
    first = torch.cat([candidates[scores.argsort(descending=True)[:count]], fresh]).sort().values
    context = torch.cat([candidates, fresh])
    kv, states = set_up.kv(prompt), alone(set_up, prompt)
    cached = kv[MIDDLE + 1][0].clone()
    second: list[Tensor] = []
    keys: list[Tensor] = []

    def look(layer: int, hidden: Tensor, key: Tensor) -> None:
        if layer == MIDDLE + 1:
            moved = (key - cached).pow(2).sum(-1).mean(0)[candidates]
            second.append(torch.cat([candidates[moved.argsort(descending=True)[:count]], fresh]).sort().values)
            keys.append(key)

    def rows(layer: int) -> Tensor:
        # Layer m + 1 makes keys for all, and layer m's output for all: written, as CacheBlend keeps its check layer's.
        return first if layer < MIDDLE else context if layer <= MIDDLE + 1 else second[0]

    expected = dense(set_up.reader, prompt, kv, rows, states={MIDDLE: states}, look=look)
    assert torch.allclose(ours.logits, expected, atol=1e-4)
    n, k = len(candidates), count
    assert ours.report.charged == pytest.approx((MIDDLE * k + 2 * n + (6 - MIDDLE - 2) * k) / (6 * n))


def test_a_token_chosen_late_counts_as_recomputed(set_up: Stage) -> None:
    ours = set_up.prefill(ROW)
    count = round(0.25 * len(set_up.selectable(ours.prompt)))
    assert count < int(ours.recomputed.sum()) <= 2 * count


def test_what_is_exact_does_not_come_back(set_up: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = Activations(Prefixed(), MIDDLE)
    list(set_up.engine.index.encode(encoder))
    back, forward = list[Tensor](), PrefillContext.forward

    def watched(self: PrefillContext, rows: Slots, **how: Any) -> None:
        back.extend([rows] * (how.get("first") == MIDDLE))
        forward(self, rows, **how)

    monkeypatch.setattr(PrefillContext, "forward", watched)
    context = set_up.prefill(replace(ROW, encode=encoder)).context
    assert context is not None
    first, second, *_ = context.prompt.chunks()
    assert "hidden" in context.placed[first].extras
    assert (first in context.exact, second in context.exact) == (True, False)
    [rows] = back
    came = [
        bool(torch.isin(rows, torch.arange(len(context.prompt))[context.span(one)]).any()) for one in (first, second)
    ]
    assert came == [False, True]


def test_all_of_it_is_full_prefill_and_none_of_it_is_naive(set_up: Stage) -> None:
    full, _ = set_up.reader.stock(set_up.prefill(ROW).prompt.token_ids)
    assert torch.allclose(set_up.prefill(ROW, 1.0).logits, full, atol=1e-4)
    assert torch.equal(set_up.prefill(ROW, 0.0).logits, set_up.prefill(METHODS["naive"]).logits)


def test_an_encoding_without_states_is_refused_when_the_row_is_built() -> None:
    with pytest.raises(InvalidArgument, match="hidden"):
        Method("own", Alone(), RandomTokens(), 0.2, schedule=Reselect())


def test_the_last_layer_leaves_nothing_to_rank_by(set_up: Stage) -> None:
    row = Method("own", Activations(Alone(), MIDDLE), RandomTokens(), 0.25, schedule=Reselect(-1))
    with pytest.raises(InvalidArgument, match="5 of 6"):
        set_up.prefill(row)


@pytest.mark.parametrize("of", [Alone(), Prefixed(), Fused(neighbours=2)])
def test_states_are_stored_beside_an_unchanged_encoding(set_up: Stage, of: Alone | Prefixed | Fused) -> None:
    index = set_up.engine.index
    names = [chunk.id for chunk in set_up.chunks]
    for encoder in (of, Activations(of, MIDDLE)):
        list(index.encode(encoder, neighbours=lambda chunk, count: [n for n in names if n != chunk][:count]))
    for chunk in set_up.chunks:
        plain, kept = (index.load(chunk, encoder, None).kv for encoder in (of, Activations(of, MIDDLE)))
        assert plain is not None
        assert kept is not None
        assert kept.extras["hidden"].shape == (len(chunk.segment), 64)
        assert set(kept.extras) == {*plain.extras, "hidden"}
        assert all(torch.equal(a, b) for a, b in zip(plain.layers, kept.layers, strict=True))
