"""The kernel of sparse queries against the dense mask; run by `test_kernels.py`, in a process with the interpreter."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcache.model import kernels

CPU = torch.device("cpu")


@settings(max_examples=12, deadline=None)
@given(
    keys=st.integers(1, 200),
    share=st.floats(0.01, 1.0),
    heads=st.sampled_from([(2, 1), (4, 2), (3, 3)]),
    window=st.sampled_from([None, 1, 7, 64, 300]),
    seed=st.integers(0, 9),
)
def test_every_row_sees_what_the_dense_mask_shows(
    keys: int, share: float, heads: tuple[int, int], window: int | None, seed: int
) -> None:
    source = torch.Generator().manual_seed(seed)
    rows = max(1, int(share * keys))
    slots = torch.randperm(keys, generator=source)[:rows].sort().values
    query = torch.randn(1, heads[0], rows, 16, generator=source)
    both = torch.randn(2, 1, heads[1], keys + 5, 16, generator=source)  # a buffer with room behind
    key, value = both[0][:, :, :keys], both[1][:, :, :keys]
    found = kernels.attend_sparse_queries(query, key, value, slots, 0.3, window)
    where = torch.arange(keys)
    seen = where <= slots[:, None]  # (rows, keys)
    if window is not None:
        seen &= where > slots[:, None] - window
    expected = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=seen, scale=0.3, enable_gqa=True
    )
    assert torch.allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(("heads", "size"), [((2, 1), 16), ((2, 2), 32), ((3, 1), 64)])
def test_it_agrees_where_it_is_tried(heads: tuple[int, int], size: int) -> None:
    assert kernels._Trial(CPU, torch.float16, *heads, size).agrees()


def test_one_that_takes_the_wrong_rows_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    right = kernels.attend_sparse_queries
    monkeypatch.setattr(
        kernels, "attend_sparse_queries", lambda q, k, v, slots, *rest: right(q, k, v, slots + 1, *rest)
    )
    assert not kernels._Trial(CPU, torch.float16, 2, 1, 16).agrees()
