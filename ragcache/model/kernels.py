"""Attention of gathered rows on a GPU: exact causality by slot, without a mask in memory.

Flash attention (2205.14135) over row blocks whose queries stand anywhere: a block visits the key blocks up to its last
row's slot, and without a window compares slots only in those that not all of its rows see whole. Held against the dense
mask on a CPU through Triton's interpreter; on a GPU it serves where it was tried and found right and faster.
"""

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ragcache.errors import MissingExtra
from ragcache.model.plan import visible

try:
    import triton
    import triton.language as tl
except ModuleNotFoundError:  # a CPU build of PyTorch comes without
    triton = None

ROWS, KEYS = 128, 64  # of a block
_LOG2E = 1.4426950408889634
_DTYPES, _SIZES = (torch.bfloat16, torch.float16), (16, 32, 64, 128)  # wider heads don't fit a multiprocessor's memory
_TRIED = 256  # rows, each the last of eight slots


def serves(query: Tensor, key: Tensor) -> bool:
    """Whether the kernel is to be used for such queries and keys, (1, heads, rows, head_dim) each, where they are."""
    return query.is_cuda and tried(query.device, query.dtype, query.shape[1], key.shape[1], query.shape[3])


@cache
def tried(device: torch.device, dtype: torch.dtype, heads: int, kv_heads: int, size: int) -> bool:
    """Whether the kernel compiles on a device, agrees with the dense mask there, and is the faster one.

    Found out once in a process, on some rows and keys, which takes as long as compiling does.
    """
    if triton is None or dtype not in _DTYPES or size not in _SIZES:
        return False
    trial = _Trial(device, dtype, heads, kv_heads, size)
    try:
        return trial.agrees() and trial.faster()
    except Exception:  # compilers, drivers and launchers each raise what they like: the blocks of rows serve
        return False


class _Trial:
    """Rows to try the kernel on."""

    def __init__(self, device: torch.device, dtype: torch.dtype, heads: int, kv_heads: int, size: int) -> None:
        source = torch.Generator().manual_seed(0)
        self.slots = torch.arange(7, 8 * _TRIED, 8, device=device)  # (rows,)
        self.query, self.key, self.value = (
            torch.randn(1, count, length, size, generator=source).to(device, dtype)
            for count, length in ((heads, _TRIED), (kv_heads, 8 * _TRIED), (kv_heads, 8 * _TRIED))
        )
        self.scale, self.group = size**-0.5, heads // kv_heads

    def agrees(self) -> bool:
        """With the dense mask in fp32, up to a few roundings, with a sliding window and without."""
        return all(self._error(window) <= 4 * torch.finfo(self.query.dtype).eps for window in (None, 100))

    def faster(self) -> bool:
        """Than the dense mask over keys that are repeated for every head, as blocks of rows have it."""
        return _least(lambda: self._ours(None)) < _least(lambda: self._dense(self.query.dtype, None))

    def _error(self, window: int | None) -> float:
        expected = self._dense(torch.float32, window)
        return float((self._ours(window).float() - expected).norm() / expected.norm())

    def _ours(self, window: int | None) -> Tensor:
        return gathered(self.query, self.key, self.value, self.slots, self.scale, window)

    def _dense(self, dtype: torch.dtype, window: int | None) -> Tensor:
        key, value = (part.to(dtype).repeat_interleave(self.group, dim=1) for part in (self.key, self.value))
        mask = visible(self.slots, 0, key.shape[2], window)
        return F.scaled_dot_product_attention(self.query.to(dtype), key, value, attn_mask=mask, scale=self.scale)


def _least(run: Callable[[], Tensor]) -> float:
    """Seconds of the fastest of a few runs."""
    taken = []
    for _ in range(5):
        began = time.perf_counter()
        run().sum().item()  # waits for the device
        taken.append(time.perf_counter() - began)
    return min(taken)


def gathered(query: Tensor, key: Tensor, value: Tensor, slots: Tensor, scale: float, window: int | None) -> Tensor:
    """Attention of rows over the slots up to their own.

    Parameters
    ----------
    query : Tensor
        (1, heads, rows, head_dim).
    key, value : Tensor
        (1, kv_heads, keys, head_dim); views of a larger buffer are read as they lie.
    slots : Tensor
        (rows,) int64, ascending: where each row stands.
    scale : float
        Of the logits.
    window : int or None
        Sliding window, as in `ragcache.model.plan.visible`.

    Returns
    -------
    Tensor
        (1, heads, rows, head_dim).

    Raises
    ------
    MissingExtra
        If Triton is not installed.
    """
    if triton is None:
        raise MissingExtra("triton is not installed; it comes with PyTorch's CUDA builds")
    _, heads, rows, size = query.shape
    query, output = query.contiguous(), torch.empty_like(query, memory_format=torch.contiguous_format)
    kernel: Any = _kernel
    kernel[(triton.cdiv(rows, ROWS), heads)](
        query, key, value, slots, output, scale * _LOG2E, rows, key.shape[2], window or 0,
        query.stride(1), key.stride(1), key.stride(2), value.stride(1), value.stride(2),
        GROUP=heads // key.shape[1], SIZE=size, ROWS=ROWS, KEYS=KEYS,
        num_warps=8 if size > 64 else 4, num_stages=3,
    )  # fmt: skip
    return output


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator]
    def _visit(  # type: ignore[no-untyped-def]
        acc, top, total, queries, own, key, value, scale, first, stop, keys, window, key_row, value_row,
        SIZE: tl.constexpr, KEYS: tl.constexpr, MASKED: tl.constexpr,
    ):  # fmt: skip
        lanes = tl.arange(0, SIZE)
        for start in range(first, stop, KEYS):
            here = start + tl.arange(0, KEYS)
            inside = here < keys
            k = tl.load(key + here[None, :] * key_row + lanes[:, None], mask=inside[None, :], other=0.0)  # (size, keys)
            logits = tl.dot(queries, k) * scale  # (rows, keys), in powers of two
            if MASKED:
                seen = here[None, :] <= own[:, None]
                if window > 0:
                    seen = seen & (here[None, :] > own[:, None] - window)
                logits = tl.where(seen, logits, float("-inf"))
            higher = tl.maximum(top, tl.max(logits, 1))
            safe = tl.where(higher == float("-inf"), 0.0, higher)  # a row that saw nothing yet
            shares = tl.exp2(logits - safe[:, None])
            kept = tl.exp2(top - safe)
            total = total * kept + tl.sum(shares, 1)
            v = tl.load(value + here[:, None] * value_row + lanes[None, :], mask=inside[:, None], other=0.0)
            acc = acc * kept[:, None] + tl.dot(shares.to(v.dtype), v)
            top = higher
        return acc, top, total

    @triton.jit  # type: ignore[untyped-decorator]
    def _kernel(  # type: ignore[no-untyped-def]
        query, key, value, slots, output, scale, rows, keys, window,
        query_head, key_head, key_row, value_head, value_row,
        GROUP: tl.constexpr, SIZE: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
    ):  # fmt: skip
        # The last rows see most keys: they start first.
        block = tl.num_programs(0) - 1 - tl.program_id(0)
        head = tl.program_id(1)
        at = block * ROWS + tl.arange(0, ROWS)
        lanes = tl.arange(0, SIZE)
        inside = at < rows
        own = tl.load(slots + at, mask=inside, other=keys - 1)  # (rows,)
        lowest = tl.load(slots + block * ROWS)
        highest = tl.load(slots + tl.minimum(block * ROWS + ROWS, rows) - 1)
        where = head * query_head + at[:, None] * SIZE + lanes[None, :]
        queries = tl.load(query + where, mask=inside[:, None], other=0.0)  # (rows, size)
        key += (head // GROUP) * key_head
        value += (head // GROUP) * value_head
        acc = tl.zeros((ROWS, SIZE), tl.float32)
        top = tl.full((ROWS,), float("-inf"), tl.float32)
        total = tl.zeros((ROWS,), tl.float32)
        stop = tl.minimum(highest + 1, keys).to(tl.int32)
        first = lowest.to(tl.int32) * 0
        whole = (((lowest + 1) // KEYS) * KEYS).to(tl.int32)  # up to here all rows see every key
        if window > 0:
            first = (tl.maximum(lowest - window + 1, 0) // KEYS * KEYS).to(tl.int32)
            whole = first  # the window's edge cuts these too
        acc, top, total = _visit(
            acc, top, total, queries, own, key, value, scale, first, whole, keys, window, key_row, value_row,
            SIZE, KEYS, False,
        )  # fmt: skip
        acc, top, total = _visit(
            acc, top, total, queries, own, key, value, scale, whole, stop, keys, window, key_row, value_row,
            SIZE, KEYS, True,
        )  # fmt: skip
        acc = acc / tl.where(total > 0, total, 1.0)[:, None]  # rows of the padding may have seen nothing
        tl.store(output + where, acc.to(output.dtype.element_ty), mask=inside[:, None])
