"""The file: one chunk's KV as safetensors, with a header that describes and checks itself.

The header names the format, the file's own key, the token ids, the start position, the codec and what
the maker wrote under `about`; it carries an xxh3-128 checksum of every tensor and opens with one of
itself, because safetensors has none. One tensor (or group of tensors, by the codec) per layer, in layer
order, so that a layer is one range of bytes and the whole file one sequential read.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import xxhash

from ragcache.errors import CorruptBlob, InvalidArgument
from ragcache.model.encoded import EncodedLayers, nbytes_of
from ragcache.model.lazy import Tensor, torch
from ragcache.store.codec import CODECS, Codec, Raw
from ragcache.store.key import FORMAT

_DTYPES = {  # safetensors' names: torch's
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
}
_NAMES = {f"torch.{dtype}": name for name, dtype in _DTYPES.items()}
_FLOATS = ("torch.bfloat16", "torch.float16", "torch.float32")
_OPENING = b'{"__metadata__":{"xxh3_128":"'  # what follows is the header's own checksum, at a fixed place
_SEAL = slice(8 + len(_OPENING), 8 + len(_OPENING) + 32)
_HEADER_LIMIT = 16 << 20
_ALIGNMENT = 64


class _Refused(Exception):
    """A check that the bytes failed, in words."""


@dataclass(frozen=True, eq=False)
class Blob:
    """One chunk's KV with everything needed to know what it is. Treat the tensors as read-only.

    Parameters
    ----------
    key : str
        Its name in the store, from `ragcache.store.kv_key`.
    token_ids : tuple of int
        The chunk's tokens, at least one.
    start : int
        Position of the first token when the KV was made.
    layers : sequence of Tensor
        Per layer (2, kv_heads, tokens, head_dim): keys as the model cached them (rotated from `start`), then values; or
        (1, kv_heads, tokens, width), both side by side. bf16, fp16 or fp32; heads, dims and dtypes may differ between
        layers. `EncodedLayers` where they were read in a form that takes fewer bytes.
    extras : mapping of str to Tensor
        What an encoder stores beside K and V.
    about : mapping of str to str
        What the maker says of it: fingerprint, recipe, rope.

    Raises
    ------
    InvalidArgument
        A layer has another shape or dtype, there is none, or `start` is negative.
    """

    key: str
    token_ids: tuple[int, ...]
    start: int
    layers: Sequence[Tensor]
    extras: Mapping[str, Tensor] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tokens = len(self.token_ids)
        if not (tokens and self.layers and self.start >= 0):
            raise InvalidArgument(
                f"a KV needs tokens, layers and a start of 0 or more, "
                f"not {tokens} tokens, {len(self.layers)} layers and start {self.start}."
            )
        for number, (shape, dtype) in enumerate(_forms(self.layers)):
            if len(shape) != 4 or shape[0] not in (1, 2) or shape[2] != tokens or str(dtype) not in _FLOATS:
                raise InvalidArgument(
                    f"layer {number} must be (1 or 2, kv_heads, {tokens}, head_dim) in bf16, fp16 or fp32, "
                    f"not {shape} in {dtype}."
                )

    @property
    def nbytes(self) -> int:
        """Bytes of memory that its tensors take."""
        return nbytes_of(self.layers) + sum(tensor.nbytes for tensor in self.extras.values())


def pack(blob: Blob, codec: Codec | None = None) -> list[bytes | memoryview]:
    """Write a blob down as a safetensors file.

    Parameters
    ----------
    blob : Blob
        On any device.
    codec : Codec, optional
        How layers are written; as they are by default. Extras are always written as they are.

    Returns
    -------
    list of bytes-like
        Header and tensors in file order; CPU tensors are not copied.

    Raises
    ------
    InvalidArgument
        An extra has a dtype that the format lacks, or the codec refuses a layer.
    """
    codec = codec or Raw()
    tensors = {
        f"{_layer_prefix(number)}{part}": tensor
        for number, layer in enumerate(blob.layers)
        for part, tensor in codec.encode(layer.detach().cpu()).items()
    } | {f"extra.{name}": tensor.detach().cpu() for name, tensor in blob.extras.items()}
    views = {name: _bytes(tensor) for name, tensor in tensors.items()}
    metadata = {
        "format": "ragcache-kv",
        "version": str(FORMAT),
        "key": blob.key,
        "codec": codec.name,
        "start": str(blob.start),
        "token_ids": _dump(blob.token_ids),
        "layers": _dump([_dtype_name(layer) for layer in blob.layers]),
        "sums": _dump({name: xxhash.xxh3_128_hexdigest(view) for name, view in views.items()}),
        "about": _dump(dict(blob.about)),
    }
    return [_header(metadata, tensors), *views.values()]


def unpack(buffer: Tensor, key: str) -> Blob:
    """Read a blob out of a file's bytes, after checking every one of them.

    Parameters
    ----------
    buffer : Tensor
        uint8, (bytes,), on the CPU. Raw layers are views into it.
    key : str
        The key that the file was found under.

    Raises
    ------
    CorruptBlob
        The bytes are not what was packed for this key.
    """
    try:
        header, data = _split(buffer)
        metadata = header.pop("__metadata__")
        if metadata["version"] != str(FORMAT):
            raise _Refused(f"it has format {metadata['version'][:20]}, and this version reads {FORMAT}")
        if metadata["key"] != key:
            raise _Refused("it belongs to another key")
        return _blob(metadata, _tensors(header, data, json.loads(metadata["sums"])))
    except _Refused as error:
        raise CorruptBlob(key, str(error)) from error
    except (ValueError, TypeError, LookupError, AttributeError, RuntimeError, OverflowError) as error:
        raise CorruptBlob(key, f"its header is malformed ({error!r:.200})") from error


def _header(metadata: dict[str, str], tensors: Mapping[str, Tensor]) -> bytes:
    entries: dict[str, Any] = {"__metadata__": {"xxh3_128": "0" * 32, **metadata}}
    offset = 0
    for name, tensor in tensors.items():
        span = [offset, offset + tensor.nbytes]
        entries[name] = {"dtype": _dtype_name(tensor), "shape": list(tensor.shape), "data_offsets": span}
        offset = span[1]
    text = _dump(entries).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    header = bytearray(len(text).to_bytes(8, "little") + text)
    header[_SEAL] = _seal(header)
    return bytes(header)


def _seal(header: bytes | bytearray) -> bytes:
    return xxhash.xxh3_128_hexdigest(bytes(header[: _SEAL.start] + header[_SEAL.stop :])).encode()


def _split(buffer: Tensor) -> tuple[dict[str, Any], Tensor]:
    prefix = buffer[: _SEAL.stop].numpy().tobytes()
    length = int.from_bytes(prefix[:8], "little")
    if not prefix[8:].startswith(_OPENING) or not _SEAL.stop <= 8 + length <= buffer.numel():
        raise _Refused("it is truncated or no ragcache file")
    if length > _HEADER_LIMIT:
        raise _Refused(f"its header claims {length:,} bytes")
    raw = buffer[: 8 + length].numpy().tobytes()
    if _seal(raw) != raw[_SEAL]:
        raise _Refused("its header fails the checksum")
    return json.loads(raw[8:]), buffer[8 + length :]


def _tensors(header: dict[str, Any], data: Tensor, sums: Mapping[str, str]) -> dict[str, Tensor]:
    found = dict(_walk(header, data))
    for name, (_, raw) in found.items():
        if xxhash.xxh3_128_hexdigest(raw.numpy().data) != sums[name]:
            raise _Refused(f"{name[:40]} fails its checksum")
    return {name: tensor for name, (tensor, _) in found.items()}


def _walk(header: dict[str, Any], data: Tensor) -> Iterator[tuple[str, tuple[Tensor, Tensor]]]:
    end = 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        dtype, shape, (start, stop) = _dtype(entry["dtype"]), entry["shape"], entry["data_offsets"]
        if not all(type(number) is int and number >= 0 for number in (*shape, start, stop)):
            raise _Refused(f"{name[:40]} has a size that is no size")
        if start != end or stop - start != prod(shape) * dtype.itemsize or stop > data.numel():
            raise _Refused(f"{name[:40]} does not lie where it must")
        raw, end = data[start:stop], stop
        aligned = raw if raw.storage_offset() % dtype.itemsize == 0 else raw.clone()
        yield name, (aligned.view(dtype).view(shape), raw)
    if end != data.numel():
        raise _Refused(f"it has {data.numel() - end:,} bytes too many")


def _blob(metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> Blob:
    codec = CODECS.get(metadata["codec"])
    if codec is None:
        raise _Refused(f"its codec {metadata['codec'][:20]!r} is unknown")
    parts: defaultdict[str, dict[str, Tensor]] = defaultdict(dict)
    for name, tensor in tensors.items():
        parts[name[:_LAYER]][name[_LAYER:]] = tensor
    dtypes = [_dtype(dtype) for dtype in json.loads(metadata["layers"])]
    written = [parts[_layer_prefix(number)] for number in range(len(dtypes))]
    layers: Sequence[Tensor] = EncodedLayers(written, [codec.shape(one) for one in written], dtypes, codec.decode_into)
    as_written = all("kv" in one and one["kv"].dtype == dtype for one, dtype in zip(written, dtypes, strict=True))
    if codec.name == Raw.name or as_written:
        layers = tuple(one["kv"] for one in written)
    return Blob(
        key=metadata["key"],
        token_ids=tuple(map(int, json.loads(metadata["token_ids"]))),
        start=int(metadata["start"]),
        layers=layers,
        extras={name[6:]: tensor for name, tensor in tensors.items() if name.startswith("extra.")},
        about=dict(json.loads(metadata["about"])),
    )


def _forms(layers: Sequence[Tensor]) -> "Iterable[tuple[tuple[int, ...], torch.dtype]]":
    if isinstance(layers, EncodedLayers):
        return zip(layers.shapes, layers.dtypes, strict=True)
    return ((tuple(layer.shape), layer.dtype) for layer in layers)


def _layer_prefix(number: int) -> str:
    return f"layer.{number:04d}."


_LAYER = len(_layer_prefix(0))


def _bytes(tensor: Tensor) -> memoryview:
    return tensor.contiguous().view(-1).view(torch.uint8).numpy().data


def _dtype_name(tensor: Tensor) -> str:
    name = _NAMES.get(str(tensor.dtype))
    if name is None:
        raise InvalidArgument(f"a stored tensor must be one of {', '.join(_DTYPES)}, not {tensor.dtype}.")
    return name


def _dtype(name: str) -> "torch.dtype":
    dtype: torch.dtype = getattr(torch, _DTYPES[name])
    return dtype


def _dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
