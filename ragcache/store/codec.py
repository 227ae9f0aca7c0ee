"""How a layer's KV is written down: as it is, or in fewer bits."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from ragcache.errors import IndexFormat, InvalidArgument
from ragcache.model.lazy import Tensor, torch

_FLOAT16_MOST = 65504.0
_GROUP = 32  # values of a token that share one scale in 4 bits


class Codec(ABC):
    """Turns a layer's KV into named tensors and back.

    Attributes
    ----------
    name : str
        What a file's header, and `ragcache ingest --kv`, call the codec.
    summary : str
        What it does to KV, in a few words.
    """

    name: ClassVar[str]
    summary: ClassVar[str]

    @abstractmethod
    def encode(self, layer: Tensor) -> dict[str, Tensor]:
        """Write (2, kv_heads, tokens, head_dim) down as tensors, by name, in file order.

        What stands side by side, (1, kv_heads, tokens, width), is written as keys are.

        Raises
        ------
        InvalidArgument
            The layer holds numbers that the codec has no form for.
        """

    @abstractmethod
    def decode_into(self, parts: Mapping[str, Tensor], target: Tensor) -> None:
        """Restore a layer where it is wanted: of its own shape, whatever the dtype."""

    @abstractmethod
    def shape(self, parts: Mapping[str, Tensor]) -> tuple[int, ...]:
        """The shape of the layer that was written; ValueError or KeyError if the parts do not belong together."""

    @abstractmethod
    def nbytes(self, heads: int, tokens: int, width: int, itemsize: int, sides: int = 2) -> int:
        """Bytes that a layer of this shape takes, its numbers being of `itemsize` bytes before."""

    def decode(self, parts: Mapping[str, Tensor], dtype: "torch.dtype") -> Tensor:
        """Restore a layer in `dtype`."""
        decoded = torch.empty(self.shape(parts), dtype=dtype)
        self.decode_into(parts, decoded)
        return decoded


class Raw(Codec):
    """The layer as it is: bf16, fp16 or fp32, bit for bit, read without a copy."""

    name = "raw"
    summary = "as the model made it, bit for bit"

    def encode(self, layer: Tensor) -> dict[str, Tensor]:
        """Give the layer itself."""
        return {"kv": layer}

    def decode(self, parts: Mapping[str, Tensor], dtype: "torch.dtype") -> Tensor:
        """Give the layer itself."""
        return parts["kv"]

    def decode_into(self, parts: Mapping[str, Tensor], target: Tensor) -> None:
        """Copy the layer."""
        target.copy_(parts["kv"])

    def shape(self, parts: Mapping[str, Tensor]) -> tuple[int, ...]:
        """The layer's own."""
        return tuple(parts["kv"].shape)

    def nbytes(self, heads: int, tokens: int, width: int, itemsize: int, sides: int = 2) -> int:
        """As much as in memory."""
        return sides * heads * tokens * width * itemsize


class BFloat16(Raw):
    """The layer in bf16: that of a bf16 model bit for bit, that of an fp32 model rounded to 8 bits of mantissa."""

    name = "bf16"
    summary = "16-bit floats; the same as raw for a bf16 model"

    def encode(self, layer: Tensor) -> dict[str, Tensor]:
        """Round the layer."""
        return {"kv": layer.bfloat16()}

    def decode(self, parts: Mapping[str, Tensor], dtype: "torch.dtype") -> Tensor:
        """Widen the layer."""
        return parts["kv"].to(dtype)

    def nbytes(self, heads: int, tokens: int, width: int, itemsize: int, sides: int = 2) -> int:
        """Two bytes a number."""
        return super().nbytes(heads, tokens, width, 2, sides)


class Int8(Codec):
    """Symmetric 8-bit integers, keys scaled per channel and values per token.

    Keys have a few large channels and values have none, which is why the two are scaled along
    different axes (KIVI [1]_). Half the bytes of bf16; `docs/benchmarks/kv-codecs.md` has the error.

    References
    ----------
    .. [1] Liu et al., "KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache", 2402.02750.
    """

    name = "int8"
    summary = "8-bit integers, keys scaled per channel and values per token"

    def encode(self, layer: Tensor) -> dict[str, Tensor]:
        """Quantise a layer."""
        exact = layer.float()  # (2, heads, tokens, dim)
        scales = {"key_scale": _scale(exact[0], 1, self.name)}  # (heads, 1, dim)
        if len(exact) == 2:
            scales["value_scale"] = _scale(exact[1], 2, self.name)  # (heads, tokens, 1)
        sides = zip(exact, scales.values(), strict=True)
        return scales | {"q": torch.stack([_quantise(side, scale) for side, scale in sides])}

    def decode_into(self, parts: Mapping[str, Tensor], target: Tensor) -> None:
        """Restore a layer, each number within half a step of its scale."""
        torch.mul(parts["q"][0], parts["key_scale"].float(), out=target[0])
        if len(target) == 2:
            torch.mul(parts["q"][1], parts["value_scale"].float(), out=target[1])

    def shape(self, parts: Mapping[str, Tensor]) -> tuple[int, ...]:
        """That of the integers."""
        sides = len(parts) - 1
        _, heads, tokens, width = parts["q"].shape
        values = {"value_scale": (heads, tokens, 1)} if sides == 2 else {}
        _check(parts, q=(sides, heads, tokens, width), key_scale=(heads, 1, width), **values)
        return sides, heads, tokens, width

    def nbytes(self, heads: int, tokens: int, width: int, itemsize: int, sides: int = 2) -> int:
        """A byte a number, and the scales."""
        return sides * heads * tokens * width + 2 * heads * (width + (tokens if sides == 2 else 0))


class Int8Int4(Codec):
    """Keys as `Int8` writes them, values in 4 bits: 15 steps between the least and the largest of 32 of a token.

    Attention is a softmax over what keys say and a mean of what values say, so an error in a key weighs more.
    """

    name = "k8v4"
    summary = "8-bit keys as in int8, 4-bit values, 32 of a token to a scale"

    def encode(self, layer: Tensor) -> dict[str, Tensor]:
        """Quantise a layer."""
        if len(layer) == 1:
            return INT8.encode(layer)
        keys, values = layer.float()  # (heads, tokens, dim) each
        key_scale = _scale(keys, 1, self.name)  # (heads, 1, dim)
        groups = _grouped(values)  # (heads, tokens, groups, dim of a group)
        least, most = groups.aminmax(dim=-1, keepdim=True)
        _check_finite(torch.stack([least, most]), self.name)
        step = _nonzero(((most - least) / 15).half())
        least = least.half()
        steps = ((groups - least.float()) / step.float()).round().clamp(0, 15).to(torch.uint8).flatten(-2)
        low, high = steps.chunk(2, dim=-1)  # the first half of a head beside the second
        return {
            "key_scale": key_scale,
            "value_scale": torch.stack([step, least]).squeeze(-1),  # (2, heads, tokens, groups)
            "k": _quantise(keys, key_scale),
            "v": low | high << 4,  # (heads, tokens, dim / 2)
        }

    def decode_into(self, parts: Mapping[str, Tensor], target: Tensor) -> None:
        """Restore a layer, each key within half a step of its channel and each value of its group."""
        if "q" in parts:
            INT8.decode_into(parts, target)
            return
        torch.mul(parts["k"], parts["key_scale"].float(), out=target[0])
        steps = _grouped(torch.cat([parts["v"] & 15, parts["v"] >> 4], dim=-1))
        step, least = parts["value_scale"].float().unsqueeze(-1)  # (heads, tokens, groups, 1) each
        torch.addcmul(least, steps, step, out=_grouped(target[1]))

    def shape(self, parts: Mapping[str, Tensor]) -> tuple[int, ...]:
        """That of the keys, and of as many values."""
        if "q" in parts:
            return INT8.shape(parts)
        heads, tokens, width = parts["k"].shape
        groups = width // _group(width)
        _check(
            parts,
            k=(heads, tokens, width),
            v=(heads, tokens, width // 2),
            key_scale=(heads, 1, width),
            value_scale=(2, heads, tokens, groups),
        )
        return 2, heads, tokens, width

    def nbytes(self, heads: int, tokens: int, width: int, itemsize: int, sides: int = 2) -> int:
        """A byte a key, half a byte a value, and the scales."""
        if sides == 1:
            return INT8.nbytes(heads, tokens, width, itemsize, sides)
        groups = width // _group(width)
        return heads * tokens * (width + width // 2 + 4 * groups) + 2 * heads * width


def find_codec(name: str) -> Codec:
    """The codec of a name.

    Raises
    ------
    IndexFormat
        If this version has none of that name.
    """
    if name not in CODECS:
        raise IndexFormat(f"this version has no codec {name!r} for KV, only {', '.join(CODECS)}; upgrade it")
    return CODECS[name]


def _scale(exact: Tensor, dim: int, codec: str) -> Tensor:
    scale = exact.abs().amax(dim, keepdim=True) / 127
    _check_finite(scale, codec)
    return _nonzero(scale.half())


def _check_finite(scale: Tensor, codec: str) -> None:
    if not (scale.abs() <= _FLOAT16_MOST).all():  # nor NaN
        raise InvalidArgument(
            f"a KV with infinities, NaNs or numbers beyond {_FLOAT16_MOST:,.0f} cannot be stored as {codec}; run "
            "`ragcache ingest PATH… --kv raw --index NEW`."
        )


def _nonzero(scale: Tensor) -> Tensor:
    return torch.where(scale > 0, scale, torch.ones_like(scale))


def _quantise(exact: Tensor, scale: Tensor) -> Tensor:
    return (exact / scale.float()).round().clamp(-127, 127).to(torch.int8)


def _group(width: int) -> int:
    return _GROUP if width % _GROUP == 0 else width


def _grouped(values: Tensor) -> Tensor:
    width = values.shape[-1]
    return values.view(*values.shape[:-1], width // _group(width), _group(width))


def _check(parts: Mapping[str, Tensor], **shapes: tuple[int, ...]) -> None:
    for name, shape in shapes.items():
        if tuple(parts[name].shape) != shape:
            raise ValueError(f"{name} is {tuple(parts[name].shape)} and not {shape}")


INT8 = Int8()
CODECS: dict[str, Codec] = {codec.name: codec for codec in (Raw(), BFloat16(), INT8, Int8Int4())}
"""The codecs that a file's header may name."""
