"""What one forward does beyond the ordinary: which rows it runs, where they are written, what is scored.

Slots order tokens causally and say where K and V are written; positions are what RoPE rotates by. They are two types so
that one is never taken for the other: masks are built from slots, rotations from positions.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NewType, Self

from ragcache.model.lazy import Tensor, torch
from ragcache.model.upload import upload

Slots = NewType("Slots", Tensor)  # (rows,) int64, strictly ascending
Positions = NewType("Positions", Tensor)  # (rows,) int64

#: Receives the attention probabilities of a block of rows, (heads, rows, keys) fp32.
ScoreSink = Callable[[Tensor], None]
#: Receives fresh K and V of a layer before they are written, (kv_heads, rows, head_dim) each.
UpdateSink = Callable[[int, Tensor, Tensor], None]
#: Receives the hidden states that enter a layer, (rows, width).
EnterSink = Callable[[int, Tensor], None]
#: Says before a layer which of the current rows, at these slots, go on: ascending indices, or None for all.
PruneTokens = Callable[[int, Slots], Tensor | None]
#: Shapes a layer's masked attention logits, (heads, rows, keys from slot 0 on) fp32, before the softmax.
ScoreModFunction = Callable[[int, Tensor], Tensor]

HIDDEN = "hidden"  # the extra that keeps hidden states
BLOCK = 128  # query rows per attention call: few enough to skip most of the future, enough for the kernel's full speed


@dataclass(frozen=True)
class Chunked:
    """Chunked attention (Llama 4): a row sees its own block of `size` slots, from the block's first one on."""

    size: int


#: Rows of the queries, the keys and values that they see, and their plan.
Part = tuple[slice, Tensor, Tensor, "ForwardPlan"]
#: How far back a row sees: so many slots, its own included, or to the beginning of its block; None for all the way.
Window = int | Chunked | None


class StopForward(BaseException):
    """Ends a forward early; raised and caught inside `ragcache.model` only."""


@dataclass(eq=False)
class Block:
    """Rows `rows` of the queries see keys `keys`: the first `common` of them all, the others through `mask`.

    The mask is (rows, keys - common) bool; None lets all of them through.
    """

    rows: slice
    keys: slice
    common: int
    mask: Tensor | None
    _bias: Tensor | None = field(default=None, init=False, repr=False)

    def bias(self, dtype: "torch.dtype") -> Tensor | None:
        """The mask as SDPA adds it to logits, (1, 1, rows, keys - common): made once, not in every layer."""
        if self.mask is not None and self._bias is None:
            self._bias = torch.zeros_like(self.mask, dtype=dtype).masked_fill_(~self.mask, float("-inf"))[None, None]
        return self._bias


@dataclass
class ForwardPlan:
    """One forward over some rows of a prompt, against everything the buffer holds.

    Attributes
    ----------
    slots : Slots
        Where each row stands, ascending.
    end : int
        Number of slots filled once the rows are written; rows see slots up to their own only.
    scores : dict of int to ScoreSink
        Layers whose attention probabilities are wanted.
    stop_after_scores : bool
        End the forward once the last of those layers has been scored.
    on_update : UpdateSink or None
        Sees every layer's fresh K and V before they are written.
    first : int
        Layer that the forward begins at; `hidden` enters it, and what lies below does not run.
    hidden : Tensor or None
        (rows, width), for a forward that begins above layer 0.
    on_enter : EnterSink or None
        Sees the hidden states that enter each layer.
    prune : PruneTokens or None
        Lets fewer rows go on, layer by layer; `slots` follows.
    score_mod : ScoreModFunction or None
        Shapes the attention logits of every layer.
    last : int or None
        Layer whose K and V end the forward, once they are written.
    cu_seqlens : sequence of int
        Cumulative lengths of packed sequences, from 0 to `end`; empty where there is one. No row sees a slot before its
        own sequence's, and probabilities are over its own sequence's keys.
    measure_states : bool
        Find what each run of rows does to a layer's state, too, where layers carry one.
    host_slots : Slots or None
        The slots on the CPU, so that no accelerator is waited for to know them; None where it alone knows who is left.
    """

    slots: Slots
    end: int
    scores: dict[int, ScoreSink] = field(default_factory=dict)
    stop_after_scores: bool = False
    on_update: UpdateSink | None = None
    first: int = 0
    hidden: Tensor | None = None
    on_enter: EnterSink | None = None
    prune: PruneTokens | None = None
    score_mod: ScoreModFunction | None = None
    last: int | None = None
    cu_seqlens: Sequence[int] = ()
    measure_states: bool = False
    host_slots: Slots | None = None
    _blocks: dict[Window, list[Block]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.host_slots is None and self.slots.device.type == "cpu":
            self.host_slots = self.slots

    @classmethod
    def on(cls, device: "torch.device", slots: Slots, end: int, **options: Any) -> Self:
        """A plan for rows at slots that the CPU knows, on the model's device."""
        return cls(Slots(upload(slots, device)), end, host_slots=slots, **options)

    @cached_property
    def sequences(self) -> list[tuple[slice, slice, "ForwardPlan"]]:
        """The plan taken apart at `cu_seqlens`: each sequence's rows, its keys, and what it is to itself."""
        host, parts = self.slots.cpu() if self.host_slots is None else self.host_slots, []
        edges = host.tolist()
        for start, stop in pairwise(self.cu_seqlens or (0, self.end)):
            rows = slice(bisect_left(edges, start), bisect_left(edges, stop))
            own = replace(
                self, slots=Slots(self.slots[rows] - start), host_slots=Slots(host[rows] - start), end=stop - start,
                cu_seqlens=(),
            )  # fmt: skip
            parts.append((rows, slice(start, stop), own))
        return parts

    @property
    def last_scored(self) -> int:
        """The deepest layer to be scored, -1 for none."""
        return max(self.scores, default=-1)

    @property
    def has_layer_hooks(self) -> bool:
        """Whether anything happens where a layer begins."""
        return self.first > 0 or self.on_enter is not None or self.prune is not None

    def keep(self, rows: Tensor) -> Tensor:
        """Go on with some of the current rows, whose indices may stand on the CPU; they come back on the device."""
        here, known = upload(rows, self.slots.device), rows.device.type == "cpu"
        self.host_slots = Slots(self.host_slots[rows]) if known and self.host_slots is not None else None
        self.slots = Slots(self.slots[here])
        self._blocks.clear()
        return here

    def blocks(self, window: Window) -> list[Block]:
        """Row blocks with the keys they may see, built once per forward and window."""
        if window not in self._blocks:
            self._blocks[window] = list(_blocks(self, window))
        return self._blocks[window]


def window_size(window: Window) -> int | None:
    """Slots that a row sees at the most; None for all."""
    return window.size if isinstance(window, Chunked) else window


def first_seen(slot: int, window: Window) -> int:
    """The first slot that a row at `slot` sees."""
    if isinstance(window, Chunked):
        return slot // window.size * window.size
    return 0 if window is None else max(0, slot - window + 1)


def count_seen(slots: Tensor, window: Window) -> Tensor:
    """How many slots each row sees, its own among them, (rows,)."""
    if isinstance(window, Chunked):
        return slots % window.size + 1
    return slots + 1 if window is None else (slots + 1).clamp(max=window)


def _blocks(plan: ForwardPlan, window: Window) -> Iterator[Block]:
    slots, edges = plan.slots, None if plan.host_slots is None else plan.host_slots.tolist()
    for first in range(0, len(slots), BLOCK):
        rows = slice(first, min(first + BLOCK, len(slots)))
        low, high, common = 0, plan.end, 0  # every key, through the mask: waiting to see fewer takes longer
        if edges is not None:
            low, high = first_seen(edges[first], window), min(edges[rows.stop - 1] + 1, plan.end)
            # Only a CPU gains by taking them apart; the row's own slot stays, or the rest might show nothing to it.
            common = edges[first] if slots.device.type == "cpu" and window is None else 0
        host = None if plan.host_slots is None else Slots(plan.host_slots[rows])
        mask = visible(slots[rows], low + common, high, window, host)
        yield Block(rows, slice(low, high), common if mask is not None else 0, mask)


def visible(slots: Tensor, low: int, high: int, window: Window, host: Tensor | None = None) -> Tensor | None:
    """Which keys each row may see: its own slot and earlier ones, within the sliding window.

    Parameters
    ----------
    slots : Tensor
        (rows,) slots of the queries.
    low, high : int
        Range of key slots.
    window : int, Chunked or None
        A sliding window, counted as transformers does: a row sees `window` slots, its own included. Or chunks.
    host : Tensor, optional
        The slots on the CPU, where they are known there.

    Returns
    -------
    Tensor or None
        (rows, high - low) bool; None where the CPU knows that a single row sees all of them.
    """
    known = slots if slots.device.type == "cpu" else host
    if known is not None and known.numel() == 1:
        slot = int(known[0])
        if first_seen(slot, window) <= low and high <= slot + 1:
            return None
    keys = torch.arange(low, high, device=slots.device)  # (keys,)
    mask = keys[None, :] <= slots[:, None]  # (rows, keys)
    if isinstance(window, Chunked):
        mask &= keys[None, :] >= slots[:, None] // window.size * window.size
    elif window is not None:
        mask &= keys[None, :] > slots[:, None] - window
    return mask


def layer_index(layer: int | float, layers: int) -> int:
    """A layer's index, from an index (negative from the end) or a share of the depth."""
    return min(layers - 1, int(layer * layers)) if isinstance(layer, float) else layer % layers
