"""KV as a file has it, decoded layer by layer where it is asked for, or straight into its place in a buffer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import overload

from ragcache.model.lazy import Tensor, torch
from ragcache.model.upload import upload_views

#: Parts of one layer by name.
Parts = Mapping[str, Tensor]


class EncodedLayers(Sequence[Tensor]):
    """Layers of a KV that is kept as it was written, in fewer bytes than the model's numbers take.

    Parameters
    ----------
    parts : sequence of mapping of str to Tensor
        Of each layer.
    shapes : sequence of (2, kv_heads, tokens, head_dim)
        Of each layer once it is decoded.
    dtypes : sequence of torch.dtype
        The same.
    decode_into : callable
        Decodes one layer's parts into a tensor of its shape, of any dtype, on the parts' device.
    """

    def __init__(
        self,
        parts: Sequence[Parts],
        shapes: Sequence[tuple[int, ...]],
        dtypes: "Sequence[torch.dtype]",
        decode_into: Callable[[Parts, Tensor], None],
    ) -> None:
        self.parts = parts
        self.shapes = shapes
        self.dtypes = dtypes
        self._decode_into = decode_into

    def __len__(self) -> int:
        return len(self.parts)

    @overload
    def __getitem__(self, place: int) -> Tensor: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Tensor]: ...
    def __getitem__(self, place: int | slice) -> Tensor | Sequence[Tensor]:
        """Decode a layer, or several."""
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        decoded = torch.empty(self.shapes[place], dtype=self.dtypes[place])
        self.decode_into(place, decoded)
        return decoded

    def __iter__(self) -> Iterator[Tensor]:
        return (self[number] for number in range(len(self)))

    def decode_into(self, number: int, target: Tensor) -> None:
        """Decode a layer to where it is wanted, in one pass.

        Parameters
        ----------
        number : int
            Which layer.
        target : Tensor
            (2, kv_heads, tokens, head_dim) on the parts' device; it may be a view of something larger.
        """
        self._decode_into(self.parts[number], target)

    def on(self, device: "torch.device") -> "EncodedLayers":
        """The same with its few bytes on a device, where they are then decoded."""
        moved = iter(upload_views([part for parts in self.parts for part in parts.values()], device))
        parts = [{name: next(moved) for name in one} for one in self.parts]
        return EncodedLayers(parts, self.shapes, self.dtypes, self._decode_into)

    def shaped_like(self, number: int, device: "torch.device") -> Tensor:
        """A tensor without tokens that has a layer's heads, width and dtype: (2, kv_heads, 0, head_dim)."""
        two, heads, _, width = self.shapes[number]
        return torch.empty((two, heads, 0, width), dtype=self.dtypes[number], device=device)

    @property
    def nbytes(self) -> int:
        """Bytes that the parts take."""
        return sum(part.nbytes for parts in self.parts for part in parts.values())


def nbytes_of(layers: Sequence[Tensor]) -> int:
    """Bytes of memory that a KV's layers take, decoded or not."""
    return layers.nbytes if isinstance(layers, EncodedLayers) else sum(layer.nbytes for layer in layers)
