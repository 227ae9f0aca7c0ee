"""fp32 matrix products on a CPU through oneDNN, for runs of many small ones: all contenders' alike, and the embedder's.

PyTorch hands a linear layer in fp32 to MKL, which on some makers' processors stays below half of what they can do.
oneDNN, which comes with PyTorch too, does not, once weights lie in its own order. Sums are taken in another order, so
results differ by rounding.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor

_FEW = 24  # rows: below them not worth it
_KEPT = 1 << 30  # bytes of packed weights: a large model keeps to the plain way behind them


@contextmanager
def packed_weights() -> Iterator[None]:
    """Have linear layers on CPU multiply with packed weights, kept beside the model's own; for inference only."""
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):  # a build without oneDNN
        yield
        return
    plain, kept = F.linear, 0
    packed: dict[int, tuple[Tensor, Tensor]] = {}  # by the weight's id, with the weight, so that no other gets its id

    def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        nonlocal kept
        rows = input.numel() // input.shape[-1]
        if rows < _FEW or weight.dtype != torch.float32 or weight.device.type != "cpu" or torch.is_grad_enabled():
            return plain(input, weight, bias)
        found = packed.get(id(weight))
        if found is None:
            if kept + weight.nbytes > _KEPT:
                return plain(input, weight, bias)
            kept += weight.nbytes
            found = packed[id(weight)] = weight, torch.ops.mkldnn._reorder_linear_weight(weight.detach(), None)
        return _product(input, found[1], bias, rows)

    F.linear = linear
    try:
        yield
    finally:
        F.linear = plain


def _product(input: Tensor, weight: Tensor, bias: Tensor | None, rows: int) -> Tensor:
    """Each number of rows is compiled for: round it up, by an eighth at most or to a block of 16."""
    step = max(16, 1 << (rows.bit_length() - 4))
    more = -rows % step
    if not more:
        found: Tensor = torch.ops.mkldnn._linear_pointwise(input, weight, bias, "none", [], "")
        return found
    flat = F.pad(input.reshape(rows, -1), (0, 0, 0, more))  # (rows + more, in)
    found = torch.ops.mkldnn._linear_pointwise(flat, weight, bias, "none", [], "")
    return found[:rows].view(*input.shape[:-1], -1)
