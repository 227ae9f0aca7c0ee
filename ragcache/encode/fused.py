"""Each chunk behind other chunks' KV, those most like it or those before it: FusionRAG's neighbour fusion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from ragcache.encode.prefixed import Prefixed
from ragcache.encode.protocol import BaseEncoder, Encoder, EncodingContext, LeftContext
from ragcache.errors import InvalidArgument
from ragcache.model.lazy import Tensor, torch
from ragcache.prompt import Segment

if TYPE_CHECKING:
    from ragcache.model.buffer import ChunkKV
    from ragcache.model.reader import Reader
    from ragcache.model.rope import RopeLayout

By = Literal["similarity", "structure", "both"]
VALUE_SHIFT = "value_shift"
_STITCHED = "stitched"


@dataclass(frozen=True)
class Fused(BaseEncoder):
    """Similarity-guided preprocessing, FusionRAG (2601.12904) section 3.1.

    The base encoding prefills every chunk behind the system prefix. The fused encoding prefills it again behind the
    prefix and the base KV of its `neighbours` most similar chunks, re-rotated to contiguous positions, and replaces its
    KV by the result.
    Chunks that are retrieved together have then seen each other. Neighbours are looked for when the KV is made: once
    others have come, `ragcache refresh` makes it anew behind those of today.

    Beside K and V it stores `value_shift`, (tokens,) fp32: how far each token's values moved from the base encoding (A)
    to the fused encoding (B). Of token t it is the mean over layers of ||V_B[t] - V_A[t]||^2 / mean over the chunk's
    tokens of ||V_A||^2, norms over all kv heads and dims.

    Attributes
    ----------
    neighbours : int
        How many (paper: 10; 5 is about as good, 15 worse); fewer where the model's length has no room for more, which
        both kinds of neighbours share.
    by : {"similarity", "structure", "both"}
        The most similar chunks, most similar first (paper); those before the chunk in its own document, nearest last;
        or half of them by structure, right in front of the chunk, and behind the prefix similar ones that are not among
        those, as many as are lacking.

    Raises
    ------
    InvalidArgument
        If `by` is something else.
    """

    neighbours: int = 10
    by: By = "similarity"
    extras: ClassVar[tuple[str, ...]] = (VALUE_SHIFT,)

    def __post_init__(self) -> None:
        if self.by not in get_args(By):
            raise InvalidArgument(f"chunks can't be fused by {self.by!r}; take one of {', '.join(get_args(By))}")

    @property
    def recipe(self) -> str:
        """Name and fields; the paper's has the name it had before there were others."""
        others = "" if self.by == "similarity" else f", by={self.by}"
        return f"fused(neighbours={self.neighbours}{others})"

    @property
    def base_encoding(self) -> Encoder:  # type: ignore[override]
        """Each chunk alone behind the system prefix."""
        return Prefixed()

    def left(self, chunk: str, context: EncodingContext) -> LeftContext | None:
        """Prefix and neighbours' base KV; None while one of those, or the chunk itself, lacks its own."""
        own = context.load(chunk, Prefixed().recipe)
        neighbours = None if own is None else self._fused_with(chunk, context, context.room - _length(own))
        if own is None or neighbours is None:
            return None
        prefix = context.prefix()
        # Stitched neighbours are never what a full prefill would have had there, even when they stand there later.
        stitched = (_STITCHED,) if neighbours else ()
        return LeftContext(
            prefix.kvs + tuple(kv for left in neighbours for kv in left.kvs),
            prefix.keys + stitched + tuple(key for left in neighbours for key in left.keys),
            f"{prefix.words} + {len(neighbours)} neighbours",
            own.kvs[0],
        )

    def encode(self, reader: Reader, todo: Sequence[tuple[Segment, LeftContext]]) -> list[ChunkKV]:
        """Fuse several chunks, each compared with its own base KV."""
        made = zip(super().encode(reader, todo), (left.own for _, left in todo), strict=True)
        turning = reader.rotator.layouts
        return [
            kv if own is None else replace(kv, extras={**kv.extras, VALUE_SHIFT: value_shift(own, kv, turning)})
            for kv, own in made
        ]

    def _fused_with(self, chunk: str, context: EncodingContext, room: int) -> list[LeftContext] | None:
        """What stands in front of a chunk, in order; None while one of them lacks its base KV.

        What stands before the chunk in its document comes first, then similar ones, the most similar first, as many as
        fit: positions beyond the model's length would be rotated as no prompt is.
        """
        half = {"similarity": 0, "structure": self.neighbours, "both": (self.neighbours + 1) // 2}[self.by]
        names = [one.chunk or "" for one in context.preceding(chunk)[-half:]] if half else []
        before = _loaded(names, context, room)
        if before is None or self.by == "structure":
            return before
        found = (one for one in context.neighbours(chunk, self.neighbours) if one not in names)
        similar = _loaded(islice(found, self.neighbours - len(names)), context, room - sum(map(_length, before)))
        return None if similar is None else [*similar, *before]


def _loaded(chunks: Iterable[str], context: EncodingContext, room: int) -> list[LeftContext] | None:
    """The base KV of as many chunks, from the first on, as fit into `room` tokens; None while one lacks it."""
    parts: list[LeftContext] = []
    for chunk in chunks:
        left = context.load(chunk, Prefixed().recipe)
        if left is None:
            return None
        room -= _length(left)
        if room < 0:
            break
        parts.append(left)
    return parts


def _length(left: LeftContext) -> int:
    """Tokens."""
    return sum(map(len, left.kvs))


def value_shift(before: ChunkKV, after: ChunkKV, layouts: Sequence[RopeLayout]) -> Tensor:
    """How far each token's values moved between two KVs of one chunk, (tokens,) fp32; see `Fused`.

    Where keys and values stand side by side it is what does not turn that is compared: of MLA the latents.
    """
    shifts = []
    for old, new, layout in zip(before.layers, after.layers, layouts, strict=True):
        # (kv_heads, tokens, head_dim) each
        was, now = (one[1] if len(one) == 2 else layout.without(one[0]) for one in (old, new))
        was = was.to(now.device, torch.float32)
        size = was.square().sum((0, 2)).mean()
        moved = (now.float() - was).square().sum((0, 2))  # (tokens,)
        shifts.append(moved / size.clamp_min(torch.finfo(torch.float32).tiny))
    return torch.stack(shifts).mean(0)
