"""Axis A: in which left context was a chunk's KV made?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ragcache.prompt import Segment

if TYPE_CHECKING:
    from ragcache.model.buffer import ChunkKV
    from ragcache.model.prefill_context import PrefillContext
    from ragcache.model.reader import Reader


@dataclass(frozen=True, eq=False)
class LeftContext:
    """What stands before a chunk while its KV is made.

    Attributes
    ----------
    kvs : tuple of ChunkKV
        In order; moved to contiguous positions from 0.
    keys : tuple of str
        What each of them is known by. Together with the chunk's tokens they identify the KV that comes out.
    words : str
        For reports.
    own : ChunkKV or None
        The chunk's own KV of the encoding that this one builds on, for what is stored about the difference.
    about : dict or None
        What the catalogue is to note of the KV, anything that JSON can hold.
    """

    kvs: tuple[ChunkKV, ...] = ()
    keys: tuple[str, ...] = ()
    words: str = "nothing"
    own: ChunkKV | None = None
    about: dict[str, Any] | None = None


class EncodingContext(Protocol):
    """What an encoder may look up while it makes a chunk's KV.

    Attributes
    ----------
    room : int
        Tokens that the model takes behind the system prefix, the chunk's own among them.
    """

    @property
    def room(self) -> int:
        """Tokens that the model takes behind the system prefix."""

    def prefix(self) -> LeftContext:
        """The system prefix."""

    def neighbours(self, chunk: str, count: int) -> Sequence[str]:
        """Ids of the most similar other chunks, most similar first."""

    def preceding(self, chunk: str) -> Sequence[Segment]:
        """What stands before a chunk in its own document, in reading order, as much of its end as the model takes.

        Empty for a document's first chunk and for one of no document. An encoding whose maker asks this is forgotten
        for every chunk that comes to stand behind something else.
        """

    def load(self, chunk: str, recipe: str) -> LeftContext | None:
        """A chunk's stored KV as part of a left context; None where it has none."""


class Encoder(Protocol):
    """Makes a chunk's KV, once, behind a left context of its choice.

    Attributes
    ----------
    extras : tuple of str
        Tensors stored beside K and V.
    discarded_tokens : int
        Tokens that are prefilled for every chunk and thrown away.
    """

    @property
    def recipe(self) -> str:
        """Name and fields: part of the key of every KV that this encoder makes."""

    @property
    def extras(self) -> tuple[str, ...]:
        """Tensors stored beside K and V."""

    @property
    def discarded_tokens(self) -> int:
        """Tokens that are prefilled for every chunk and thrown away."""

    @property
    def base_encoding(self) -> Encoder | None:
        """The encoding that must be stored first, and serves until this one is."""

    @property
    def exact_only(self) -> bool:
        """Whether its KV is used only where exactly its left context stands in front."""

    def left(self, chunk: str, context: EncodingContext) -> LeftContext | None:
        """The left context for a chunk; None where what it takes is not there (yet)."""

    def encode(self, reader: Reader, todo: Sequence[tuple[Segment, LeftContext]]) -> list[ChunkKV]:
        """Prefill chunks, each behind its own left context; few enough for one forward."""


class BaseEncoder:
    """An encoder whose KV is used at any place, after a plain prefill behind its left context."""

    extras: ClassVar[tuple[str, ...]] = ()
    discarded_tokens: ClassVar[int] = 0
    base_encoding: ClassVar[Encoder | None] = None
    exact_only: ClassVar[bool] = False

    def encode(self, reader: Reader, todo: Sequence[tuple[Segment, LeftContext]]) -> list[ChunkKV]:
        """Prefill chunks, each behind its own left context, in one forward."""
        return reader.encode_all([(chunk.token_ids, left.kvs) for chunk, left in todo])


class PromptEncoder(BaseEncoder):
    """An encoder that makes nothing ahead: its KV is taken from prompts that were answered, as they stood there.

    A chunk that has none, or none that may serve, is prefilled in the prompt.
    """

    recipe: ClassVar[str]

    def left(self, chunk: str, context: EncodingContext) -> None:
        """None, always: before a prompt is answered there is nothing to take a chunk from."""

    def renews(self, about: dict[str, Any], ahead: Sequence[str]) -> bool:
        """Whether a chunk is taken once more though it was served, inexactly, by a KV of which this is noted.

        Parameters
        ----------
        about : dict
            As `harvest` gave it.
        ahead : sequence of str
            Ids of the chunks in front.
        """
        return False

    def harvest(self, p: PrefillContext, chunks: Sequence[int]) -> list[tuple[ChunkKV, dict[str, Any]]]:
        """The KV of chunks of a prompt that was answered, each with what is to be noted of it; work is charged.

        Parameters
        ----------
        p : PrefillContext
            Its buffer is left as it is.
        chunks : sequence of int
            Segments, one behind the other; what stands in front of the first is exact.
        """
        raise NotImplementedError


def follows_others(encoder: Encoder) -> bool:
    """Whether a chunk's KV is made behind chunks of any document, and used where they do not stand in front of it."""
    return not encoder.exact_only and (encoder.base_encoding is not None or isinstance(encoder, PromptEncoder))
