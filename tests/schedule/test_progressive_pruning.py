"""Rows that leave on the way: against a dense forward with a set of its own for every layer."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from dense import dense
from hypothesis import given
from hypothesis import strategies as st
from stages import Stage, stage
from torch import Tensor

from ragcache.encode import Alone
from ragcache.errors import InvalidArgument
from ragcache.method import Method
from ragcache.prompt import Prompt
from ragcache.schedule import Flat, ProgressivePruning, Schedule
from ragcache.select import KeyDeviation, RandomTokens, Selector


@pytest.fixture
def set_up(tmp_path: Path) -> Stage:
    return stage(tmp_path, "naive")


def row(schedule: Schedule, select: Selector | None = None) -> Method:
    return Method("own", Alone(), select or RandomTokens(3), 0.3, schedule=schedule)


@given(st.floats(0, 1), st.floats(0.01, 1), st.integers(2, 40))
def test_shares_fall_from_at_most_one_and_their_mean_is_the_budget(spread: float, budget: float, layers: int) -> None:
    shares = [ProgressivePruning(spread).share(layer, layers, budget) for layer in range(layers)]
    assert sum(shares) / layers == pytest.approx(budget)
    assert all(-1e-9 <= later <= earlier + 1e-9 <= 1 + 1e-6 for earlier, later in pairwise(shares))


def test_a_constant_width_is_flat(set_up: Stage) -> None:
    flat, narrow = (set_up.prefill(row(schedule)) for schedule in (Flat(), ProgressivePruning(spread=0)))
    assert torch.equal(flat.logits, narrow.logits)
    assert flat.report.charged == narrow.report.charged


def test_layers_compute_ever_fewer_rows_of_the_best_scores(set_up: Stage) -> None:
    ours = set_up.prefill(row(ProgressivePruning(spread=0.8)))
    prompt = ours.prompt
    candidates = set_up.selectable(prompt)
    assert ours.context is not None
    order = candidates[RandomTokens(3).scores(ours.context)[candidates].argsort(descending=True)]
    shares = [0.3 * (1 + 0.8 * (1 - 2 * layer / 5)) for layer in range(6)]
    counts = [round(share * len(candidates)) for share in shares]
    assert len(set(counts)) == 6, "every layer should have a set of its own"

    def rows(layer: int) -> Tensor:
        return torch.cat([order[: counts[layer]], set_up.fresh(prompt)]).sort().values

    expected = dense(set_up.reader, prompt, set_up.kv(prompt), rows)
    assert torch.allclose(ours.logits, expected, atol=1e-4)
    assert ours.report.charged == pytest.approx(sum(counts) / (6 * len(candidates)))


def test_by_deviation_those_stay_whose_keys_moved_most_in_the_layer_before(set_up: Stage) -> None:
    """CacheBlend's own filtering: two dense layers, then a ranking by each layer's deviation."""
    ours = set_up.prefill(row(ProgressivePruning(spread=0.6, by="deviation"), KeyDeviation(layer=1)))
    prompt = ours.prompt
    candidates, fresh = set_up.selectable(prompt), set_up.fresh(prompt)
    # The line begins behind the two layers that are fresh for all, and its mean there is the budget.
    shares = [0.3 * (1 + 0.6 * (1 - 2 * max(0, layer - 2) / 3)) for layer in range(6)]
    assert sum(shares[2:]) / 4 == pytest.approx(0.3)
    counts = [round(share * len(candidates)) for share in shares]
    kv = set_up.kv(prompt)
    # The first two layers of all context tokens are fresh before the selection.
    moved: dict[int, Tensor] = {}

    def look(layer: int, hidden: Tensor, key: Tensor) -> None:
        moved[layer] = (key - kv[layer][0]).pow(2).sum(-1).mean(0)

    first = dense_prefix(set_up, kv, prompt)
    deviation = first[candidates]
    current = candidates[deviation.argsort(descending=True)[: counts[0]]]
    chosen = {0: current}

    def rows(layer: int) -> Tensor:
        nonlocal current
        if layer not in chosen:
            # Layers 0 and 1 hold what this forward makes again: no key has moved there, the selector's scores stand.
            by = first if layer <= 2 else moved[layer - 1]
            current = current[by[current].argsort(descending=True, stable=True)[: counts[layer]]]
            chosen[layer] = current
        return torch.cat([chosen[layer], fresh]).sort().values

    expected = dense(set_up.reader, prompt, kv, rows, look=look)
    assert torch.allclose(ours.logits, expected, atol=1e-4)
    assert ours.report.charged == pytest.approx((2 * len(candidates) + sum(counts[2:])) / (6 * len(candidates)))


def dense_prefix(set_up: Stage, kv: list[tuple[Tensor, Tensor]], prompt: Prompt) -> Tensor:
    """Make layers 0 and 1 fresh for the context, and give the key deviation at layer 1."""
    context = torch.arange(set_up.fresh(prompt)[0])
    copies = [(keys.clone(), values.clone()) for keys, values in kv]
    found: list[Tensor] = []

    def measure(layer: int, hidden: Tensor, key: Tensor) -> None:
        if layer == 1:
            found.append((key - kv[1][0]).pow(2).sum(-1).mean(0))

    dense(set_up.reader, prompt, copies, lambda layer: context, look=measure)
    for layer in (0, 1):
        for ours, new in zip(kv[layer], copies[layer], strict=True):
            ours[:, context] = new[:, context]
    return found[0]


@pytest.mark.parametrize("spread", [-0.1, 1.5])
def test_a_spread_outside_zero_to_one_is_refused(spread: float) -> None:
    with pytest.raises(InvalidArgument, match="spread"):
        ProgressivePruning(spread)


def test_all_of_it_is_all_of_it_everywhere(set_up: Stage) -> None:
    ours = set_up.prefill(row(ProgressivePruning(spread=1)), 1.0)
    full, _ = set_up.reader.stock(ours.prompt.token_ids)
    assert torch.allclose(ours.logits, full, atol=1e-4)
