"""From the host to the model's device without waiting for it, and back with one wait: each stops all that is behind."""

from collections.abc import Sequence
from typing import Any

from ragcache.model.lazy import Tensor, torch

_ALIGNED = 16  # bytes: no number of a KV is wider


def upload(values: "Tensor | Sequence[Any]", device: "torch.device") -> Tensor:
    """Numbers on a device; where they are there already, the very tensor. Pinned ones must not change soon after."""
    host = values if isinstance(values, torch.Tensor) else torch.tensor(values)
    return host.to(device, non_blocking=device.type == "cuda")  # others may read it after it is gone


def upload_views(tensors: Sequence[Tensor], device: "torch.device") -> list[Tensor]:
    """Tensors on a device, by one copy where they are views of one buffer, as the layers of a file are.

    What lies between them in the buffer is copied along.
    """
    on_host = device.type != "cpu" and all(one.device.type == "cpu" for one in tensors)
    if not on_host or len({one.untyped_storage().data_ptr() for one in tensors}) != 1:
        return [upload(one, device) for one in tensors]
    whole = torch.empty(0, dtype=torch.uint8).set_(tensors[0].untyped_storage())  # (bytes,)
    starts = [one.storage_offset() * one.itemsize for one in tensors]
    ends = [start + _extent(one) * one.itemsize for start, one in zip(starts, tensors, strict=True)]
    first = min(starts) // _ALIGNED * _ALIGNED
    held = upload(whole[first : max(ends)], device)
    typed = {one.dtype: held[: len(held) // one.itemsize * one.itemsize].view(one.dtype) for one in tensors}
    return [
        typed[one.dtype].as_strided(one.shape, one.stride(), (start - first) // one.itemsize)
        for one, start in zip(tensors, starts, strict=True)
    ]


def _extent(tensor: Tensor) -> int:
    """Numbers from a tensor's first one to its last."""
    if not tensor.numel():
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def download(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Tensors on the CPU, by one copy where they are alike, as the layers of a model are."""
    alike = len({(one.shape, one.dtype, one.device) for one in tensors}) == 1
    if not alike or tensors[0].device.type == "cpu":
        return [one.cpu() for one in tensors]
    return list(torch.stack(list(tensors)).cpu().unbind())
