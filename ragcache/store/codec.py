"""How a layer's KV is written down: as it is, or in 8 bits."""

from collections.abc import Mapping
from typing import ClassVar, Protocol

from ragcache.errors import InvalidArgument
from ragcache.model.lazy import Tensor, torch


class Codec(Protocol):
    """Turns a layer's KV into named tensors and back.

    Attributes
    ----------
    name : str
        What a file's header calls the codec.
    """

    name: ClassVar[str]

    def encode(self, layer: Tensor) -> dict[str, Tensor]:
        """Write (2, kv_heads, tokens, head_dim) down as tensors, by name, in file order."""

    def decode(self, parts: Mapping[str, Tensor], dtype: "torch.dtype") -> Tensor:
        """Restore (2, kv_heads, tokens, head_dim) in `dtype`."""


class Raw:
    """The layer as it is: bf16, fp16 or fp32, bit for bit, read without a copy."""

    name: ClassVar[str] = "raw"

    def encode(self, layer: Tensor) -> dict[str, Tensor]:
        """Give the layer itself."""
        return {"kv": layer}

    def decode(self, parts: Mapping[str, Tensor], dtype: "torch.dtype") -> Tensor:
        """Give the layer itself."""
        return parts["kv"]


class Int8:
    """Symmetric 8-bit integers, keys scaled per channel and values per token.

    Keys have a few large channels and values have none, which is why the two are scaled along
    different axes (KIVI [1]_). About half the bytes of bf16; the error is measured in the tests.

    References
    ----------
    .. [1] Liu et al., "KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache", 2402.02750.
    """

    name: ClassVar[str] = "int8"

    def encode(self, layer: Tensor) -> dict[str, Tensor]:
        """Quantise a layer.

        Raises
        ------
        InvalidArgument
            The layer holds an infinity or a NaN.
        """
        exact = layer.float()  # (2, heads, tokens, dim)
        key_scale = _scale(exact[0], dim=1)  # (heads, 1, dim)
        value_scale = _scale(exact[1], dim=2)  # (heads, tokens, 1)
        scaled = torch.stack([exact[0] / key_scale, exact[1] / value_scale])
        return {
            "key_scale": key_scale,
            "value_scale": value_scale,
            "q": scaled.round().clamp(-127, 127).to(torch.int8),
        }

    def decode(self, parts: Mapping[str, Tensor], dtype: "torch.dtype") -> Tensor:
        """Restore a layer, each number within half a step of its scale."""
        exact = parts["q"].float()  # (2, heads, tokens, dim)
        exact[0] *= parts["key_scale"]
        exact[1] *= parts["value_scale"]
        return exact.to(dtype)


def _scale(exact: Tensor, dim: int) -> Tensor:
    scale = exact.abs().amax(dim, keepdim=True) / 127
    if not torch.isfinite(scale).all():
        raise InvalidArgument("a KV with infinities or NaNs cannot be stored as int8; store it raw.")
    return torch.where(scale > 0, scale, torch.ones_like(scale))


CODECS: dict[str, Codec] = {codec.name: codec for codec in (Raw(), Int8())}
"""The codecs that a file's header may name."""
