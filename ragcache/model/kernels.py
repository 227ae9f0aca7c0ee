"""Sparse-query attention on a GPU: exact causality by slot, without a mask in memory.

The kernel (`sparse_query_kernel`) is held against the dense mask on a CPU through Triton's interpreter; on a GPU it
serves where it was tried and found right and faster.
"""

import logging
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ragcache.errors import MissingExtra
from ragcache.model.plan import ForwardPlan, Slots, visible

ROWS, KEYS = 128, 64  # of a block
_LOG2E = 1.4426950408889634
_DTYPES, _SIZES = (torch.bfloat16, torch.float16), (16, 32, 64, 128)  # wider heads don't fit a multiprocessor's memory
_TRIED_ROWS, _TRIED_KEYS, _STRIDE = 250, 4081, 16  # of no round number, as those of prompts are
_log = logging.getLogger(__name__)

#: Attention by other means: queries, keys, values, plan, scale, window.
Blocks = Callable[[Tensor, Tensor, Tensor, ForwardPlan, float, int | None], Tensor]


def avoid_cudnn(device: torch.device) -> None:
    """Have a GPU's attention go to other kernels than cuDNN's, in this process.

    PyTorch prefers cuDNN on recent GPUs, which makes a plan for every length anew, about 40 ms each; behind a prompt
    every token is another length.
    """
    if device.type == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)


def serves(query: Tensor, key: Tensor, blocks: Blocks) -> bool:
    """Whether the kernel is to be used where such queries and keys are, (1, heads, rows, head_dim) each."""
    if not query.is_cuda or query.dtype != key.dtype or key.stride(3) != 1:
        return False
    return tried(query.device, query.dtype, query.shape[1], key.shape[1], query.shape[3], blocks)


@cache
def tried(device: torch.device, dtype: torch.dtype, heads: int, kv_heads: int, size: int, blocks: Blocks) -> bool:
    """Whether the kernel compiles on a device, agrees with the dense mask there, and is faster than `blocks`.

    Found out once in a process, on some rows and keys, which takes as long as compiling does.
    """
    if dtype not in _DTYPES or size not in _SIZES:
        return False
    try:
        trial = _Trial(device, dtype, heads, kv_heads, size)
        serves = trial.agrees() and trial.faster(blocks)
    except Exception as error:  # compilers, drivers and launchers each raise what they like
        _log.warning("sparse queries go through blocks on %s: %s: %s", device, type(error).__name__, error)
        return False
    if not serves:
        _log.warning("sparse queries go through blocks on %s, since the kernel is wrong or slower there", device)
    return serves


class _Trial:
    """Rows to try the kernel on, and keys that are a view of a longer buffer."""

    def __init__(self, device: torch.device, dtype: torch.dtype, heads: int, kv_heads: int, size: int) -> None:
        source = torch.Generator().manual_seed(0)
        self.slots = torch.arange(7, _STRIDE * _TRIED_ROWS, _STRIDE, device=device)  # (rows,)
        self.query = torch.randn(1, heads, _TRIED_ROWS, size, generator=source).to(device, dtype)
        both = torch.randn(2, 1, kv_heads, _TRIED_KEYS + 15, size, generator=source).to(device, dtype)
        self.key, self.value = both[:, :, :, :_TRIED_KEYS]
        self.scale = size**-0.5

    def agrees(self) -> bool:
        """With the dense mask in fp32, up to a few roundings, with a sliding window and without."""
        return all(self._error(window) <= 4 * torch.finfo(self.query.dtype).eps for window in (None, 100))

    def faster(self, blocks: Blocks) -> bool:
        """Than attention by other means, whose plan is made once for all layers and so before it is timed."""
        plan = ForwardPlan(Slots(self.slots), _TRIED_KEYS)
        other = _seconds(lambda: blocks(self.query, self.key, self.value, plan, self.scale, None))
        return _seconds(lambda: self._ours(None)) < other

    def _error(self, window: int | None) -> float:
        query, key, value = self.query.float(), self.key.float(), self.value.float()
        mask = visible(self.slots, 0, _TRIED_KEYS, window)
        how: dict[str, Any] = {"attn_mask": mask, "scale": self.scale, "enable_gqa": True}
        expected = F.scaled_dot_product_attention(query, key, value, **how)
        return float((self._ours(window).float() - expected).norm() / expected.norm())

    def _ours(self, window: int | None) -> Tensor:
        return attend_sparse_queries(self.query, self.key, self.value, self.slots, self.scale, window)


def _seconds(run: Callable[[], Tensor]) -> float:
    """The mean of a few runs, after some that make ready."""
    from torch.utils.benchmark import Timer  # brings setuptools, which only this trial pays for

    return Timer("run()", globals={"run": run}).timeit(5).mean  # which waits for the device


def attend_sparse_queries(
    query: Tensor, key: Tensor, value: Tensor, slots: Tensor, scale: float, window: int | None
) -> Tensor:
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
    try:
        import triton

        from ragcache.model import sparse_query_kernel
    except ModuleNotFoundError as error:  # a CPU build of PyTorch comes without
        raise MissingExtra("triton is not installed; it comes with PyTorch's CUDA builds") from error
    _, heads, rows, size = query.shape
    query, output = query.contiguous(), torch.empty_like(query, memory_format=torch.contiguous_format)
    kernel: Any = sparse_query_kernel.attend
    with torch.cuda.device_of(query):  # type: ignore[no-untyped-call]  # or it goes to the current device
        kernel[(triton.cdiv(rows, ROWS), heads)](
            query, key, value, slots, output, scale * _LOG2E, rows, key.shape[2], window or 0,
            query.stride(1), key.stride(1), key.stride(2), value.stride(1), value.stride(2),
            GROUP=heads // key.shape[1], SIZE=size, ROWS=ROWS, KEYS=KEYS,
            num_warps=8 if size > 64 else 4, num_stages=3,
        )  # fmt: skip
    return output
