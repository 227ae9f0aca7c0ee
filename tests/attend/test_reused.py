"""Which keys count as reused, without a change to what is known of them."""

from types import SimpleNamespace
from typing import Any

import torch

from ragcache.attend.protocol import reused
from ragcache.model.plan import Slots


def test_an_exact_chunk_stands_among_the_others_and_stays_exact() -> None:
    stale = torch.tensor([[False, False, False, True, True, False]] * 2)  # prefix, an exact chunk, another, question
    p: Any = SimpleNamespace(
        stale=stale.clone(),
        selectable=stale[0],
        placed={1: None, 2: None},
        prompt=SimpleNamespace(chunks=lambda: [1, 2]),
        span=lambda segment: {1: slice(1, 3), 2: slice(3, 5)}[segment],
    )
    keys = reused(p, Slots(torch.empty(0, dtype=torch.int64)))
    assert keys.tolist() == [[False, True, True, True, True, False]] * 2
    assert torch.equal(p.stale, stale)
    assert reused(p, Slots(torch.tensor([3]))) is p.stale, "what is recomputed or exact is exempt then"
