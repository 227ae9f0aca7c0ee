"""Another encoding, with the hidden states that enter one of its layers stored beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragcache.encode.alone import Alone
from ragcache.encode.protocol import Encoder, EncodingContext, LeftContext
from ragcache.model.plan import HIDDEN, layer_index
from ragcache.prompt import Segment

if TYPE_CHECKING:
    from ragcache.model.buffer import ChunkKV
    from ragcache.model.reader import Reader


@dataclass(frozen=True)
class Activations:
    """DroidSpeak's E-cache (2411.02820) for chunks: a forward over reused tokens can begin at a middle layer.

    One state of the model's width a token: beside the K and V of all layers little (Llama-3.1-8B: 8 against 128 KB).

    Attributes
    ----------
    of : Encoder
        Makes K and V, and in the same forward the states. One that builds on its own KV (`InDocument`) looks for it
        under its own name, and must be stored without states too.
    layer : int or float
        The layer that they enter, or its share of the depth; that of the schedule that begins there.
    """

    of: Encoder = field(default_factory=Alone)
    layer: int | float = 0.5

    @property
    def recipe(self) -> str:
        """Name and fields."""
        return f"activations({self.of.recipe}, layer={self.layer})"

    @property
    def extras(self) -> tuple[str, ...]:
        """What the encoding stores itself, and the states."""
        return (*self.of.extras, HIDDEN)

    @property
    def discarded_tokens(self) -> int:
        """As the encoding's."""
        return self.of.discarded_tokens

    @property
    def base_encoding(self) -> Encoder | None:
        """What the encoding builds on."""
        return self.of.base_encoding

    @property
    def exact_only(self) -> bool:
        """As the encoding's."""
        return self.of.exact_only

    def left(self, chunk: str, context: EncodingContext) -> LeftContext | None:
        """The encoding's left context."""
        return self.of.left(chunk, context)

    def encode(self, reader: Reader, todo: Sequence[tuple[Segment, LeftContext]]) -> list[ChunkKV]:
        """K, V and states, in one forward."""
        return self.of.encode(reader.keeping(layer_index(self.layer, reader.restartable)), todo)
