"""fp32 matrix products through oneDNN, for an embedder that has thousands of texts before it.

PyTorch hands a linear layer in fp32 to MKL, which on some makers' processors stays below half of what they can do.
oneDNN, which comes with PyTorch too, does not, once weights lie in its own order. Sums are taken in another order, so
results differ by rounding.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

_FEW = 256  # rows: below them not worth it, since each number of rows is compiled for


@contextmanager
def packed_weights() -> Iterator[None]:
    """Have linear layers on CPU multiply with packed weights, kept beside the model's own; for inference only."""
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):  # a build without oneDNN
        yield
        return
    plain, packed = F.linear, WeakIdKeyDictionary()

    def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        few = input.numel() < _FEW * input.shape[-1]
        if few or torch.is_grad_enabled() or weight.device.type != "cpu" or weight.dtype != torch.float32:
            return plain(input, weight, bias)
        if weight not in packed:
            packed[weight] = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), None)
        found: Tensor = torch.ops.mkldnn._linear_pointwise(input, packed[weight], bias, "none", [], "")
        return found

    F.linear = linear
    try:
        yield
    finally:
        F.linear = plain
