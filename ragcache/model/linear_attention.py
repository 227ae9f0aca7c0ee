"""Layers that carry a state instead of keys and values: linear attention (Gated DeltaNet, Mamba 2), short convolutions.

What tokens do to such a state is an affine map, S <- A S + B, whatever S was in front of them (HYPIC, 2607.01299): A is
their **transition**, B the state that they end in from zero. So a chunk is kept as A and B, and chunks follow one
another in any order. Both are found by running the layer's own code, whatever kernel it calls: from zero it ends in B,
from the identity in A + B. A short convolution in front of it sees `kernel - 1` inputs back, the **seam**: a chunk's
last ones are kept too.

The tokens of a forward may stand in several runs, with chunks between them. The layer then runs once for each.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedConfig
from transformers.cache_utils import CacheLayerMixin

from ragcache.errors import UnsupportedModel
from ragcache.model.layer_hooks import replaced_forward
from ragcache.model.plan import ForwardPlan

#: Entries of `layer_types` whose layers carry a state.
STATE_KINDS = frozenset({"linear_attention", "conv"})
_PREFIX = "state."  # of the extras that a chunk's changes are stored as


def find_state_layers(config: PreTrainedConfig) -> tuple[int, ...]:
    """The decoder layers that carry a state instead of keys and values."""
    return tuple(n for n, kind in enumerate(getattr(config, "layer_types", None) or ()) if kind in STATE_KINDS)


def find_mixers(layers: nn.ModuleList, numbers: Sequence[int]) -> dict[int, nn.Module]:
    """The part of each of those layers that carries the state.

    Raises
    ------
    UnsupportedModel
        If a layer has no part that knows the layer's number.
    """
    found = {}
    for number in numbers:
        parts = (part for part in layers[number].modules() if getattr(part, "layer_idx", None) == number)
        mixer = next((part for part in parts if part is not layers[number]), None)
        if mixer is None:
            raise UnsupportedModel(
                f"layer {number} carries a state, and none of its parts says that it is that layer's"
            )
        found[number] = mixer
    return found


@dataclass(frozen=True, eq=False)
class State:
    """A layer's state between two tokens.

    Attributes
    ----------
    memory : Tensor or None
        (1, heads, keys, values) fp32; None for a layer that is a convolution and no more.
    seam : Tensor or None
        (1, channels, inputs): as many of the convolution's last inputs as it looks back at, fewer near the beginning.
    """

    memory: Tensor | None
    seam: Tensor | None


@dataclass(frozen=True, eq=False)
class StateChange:
    """What a run of tokens does to a layer's state.

    Attributes
    ----------
    tokens : int
        How many.
    transition : Tensor or None
        (1, heads, keys, keys), what becomes of the state in front.
    end : Tensor or None
        (1, heads, keys, values), the state behind them if there was none in front.
    seam : Tensor or None
        (1, channels, inputs), the convolution's last inputs among theirs.
    """

    tokens: int
    transition: Tensor | None
    end: Tensor | None
    seam: Tensor | None

    def apply(self, state: State | None) -> State:
        """The state behind the tokens, from that in front of them."""
        memory, seam = self.end, self.seam
        if state is not None:
            if memory is not None and self.transition is not None and state.memory is not None:
                memory = torch.baddbmm(memory[0].float(), self.transition[0].float(), state.memory[0])[None]
            if seam is not None and state.seam is not None and seam.shape[-1] == self.tokens:  # fewer than it looks at
                seam = torch.cat([state.seam, seam], -1)
        return State(None if memory is None else memory.float(), seam)


def pack_changes(changes: Mapping[int, StateChange]) -> dict[str, Tensor]:
    """Changes of layers as a chunk's extras."""
    return {
        f"{_PREFIX}{layer:04d}.{name}": tensor
        for layer, change in changes.items()
        for name in ("transition", "end", "seam")
        if (tensor := getattr(change, name)) is not None
    }


def unpack_change(extras: Mapping[str, Tensor], layer: int, tokens: int, device: torch.device) -> StateChange:
    """A layer's change among a chunk's extras.

    Raises
    ------
    UnsupportedModel
        If there is none.
    """
    parts = [extras.get(f"{_PREFIX}{layer:04d}.{name}") for name in ("transition", "end", "seam")]
    if all(part is None for part in parts):
        raise UnsupportedModel(f"a chunk's KV says nothing of the state of layer {layer}, so it cannot be placed")
    return StateChange(tokens, *(None if part is None else part.to(device, non_blocking=True) for part in parts))


def is_change(extra: str) -> bool:
    """Whether an extra is part of a state's change, which speaks of all tokens at once and cannot be cut."""
    return extra.startswith(_PREFIX)


class StateLayer(CacheLayerMixin):
    """One layer's states in a buffer: what stands in which slots, and what it does to the state.

    Its methods whose names end in `_state` are what a model's own layers call, through `KVBuffer`.
    """

    is_initialized = True
    is_sliding = False
    record_past = True  # a layer may not write into the states that it is given: they are those of a place

    def __init__(self, index: int) -> None:
        super().__init__()
        self._index = index
        self._spans: dict[int, tuple[int, State | StateChange]] = {}  # by first slot: last slot + 1
        self._now = State(None, None)

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing: a state is there once a token was read."""

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Refuse keys and values, which no such layer makes."""
        raise UnsupportedModel(f"layer {self._index} carries a state, and writes keys and values too")

    def get_seq_length(self) -> int:
        """Slots that something stands in."""
        return max((end for end, _ in self._spans.values()), default=0)

    def get_max_length(self) -> int:
        """None."""
        return -1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """As if every slot had a key."""
        return self.get_seq_length() + query_length, 0

    def get_recurrent_state(self) -> Tensor | None:
        """The state that the layer begins with."""
        return self._now.memory

    def update_recurrent_state(self, memory: Tensor) -> Tensor:
        """Take the state that the layer ends with."""
        self._now = replace(self._now, memory=memory)
        return memory

    def get_conv_state(self) -> Tensor | None:
        """Inputs of the convolution in front of the layer's tokens."""
        return self._now.seam

    def update_conv_state(self, inputs: Tensor, kernel: int) -> Tensor:
        """Take the inputs of the layer's tokens; those in front of them and theirs, (1, channels, inputs)."""
        before = self._now.seam
        whole = inputs if before is None else torch.cat([before, inputs], -1)
        self._now = replace(self._now, seam=_last(whole, kernel - 1))
        return whole

    def run(self, forward: Callable[[], Tensor], state: State | None) -> tuple[Tensor, State]:
        """What the layer makes of its tokens behind a state, and the state behind them."""
        held = state or State(None, None)
        self._now = replace(held, memory=None if held.memory is None else held.memory.clone())  # some write into it
        try:
            return forward(), self._now
        finally:
            self._now = State(None, None)

    def before(self, slot: int) -> State | None:
        """The state in front of a slot; None where nothing stands there."""
        state = None
        for start in sorted(start for start in self._spans if start < slot):
            change = self._spans[start][1]
            state = change if isinstance(change, State) else change.apply(state)
        return state

    def write(self, start: int, end: int, change: State | StateChange) -> None:
        """Say what stands in slots `start` to `end`; what stood there is forgotten.

        Raises
        ------
        UnsupportedModel
            If a part of what stands there would be left.
        """
        for first, (last, _) in list(self._spans.items()):
            if first < end and last > start:
                if not start <= first <= last <= end:
                    raise UnsupportedModel(
                        f"layer {self._index} carries a state, so tokens {start} to {end} cannot be computed anew "
                        f"within {first} to {last}",
                        "Recompute nothing, or everything: --recompute 0 or --recompute 1",
                    )
                del self._spans[first]
        before = next((first for first, (last, _) in self._spans.items() if last == start), None)
        if isinstance(change, State) and before is not None and isinstance(self._spans[before][1], State):
            start = before  # an answer grows by one token at a time, and nobody goes back
        self._spans[start] = end, change

    def change(self, start: int) -> StateChange | None:
        """What was measured of the run that begins at a slot."""
        found = self._spans[start][1]
        return found if isinstance(found, StateChange) else None

    def truncate(self, length: int) -> None:
        """Forget every slot from `length` on.

        Raises
        ------
        UnsupportedModel
            If tokens that were read together stand on both sides of it.
        """
        for first, (last, _) in list(self._spans.items()):
            if last > length:
                if first < length:
                    raise UnsupportedModel(
                        f"layer {self._index} carries a state, which cannot go back to token {length}"
                    )
                del self._spans[first]

    def copy_to(self, other: "StateLayer", end: int) -> None:
        """Have another layer know what stands in front of a slot."""
        other._spans = {start: span for start, span in self._spans.items() if span[0] <= end}


@contextmanager
def state_hooks(mixers: Mapping[int, nn.Module], states: Mapping[int, StateLayer], plan: ForwardPlan) -> Iterator[None]:
    """Have layers that carry a state read the rows of one forward run by run, each behind the state at its place.

    Parameters
    ----------
    mixers : mapping of int to nn.Module
        By layer, from `find_mixers`.
    states : mapping of int to StateLayer
        The buffer's.
    plan : ForwardPlan
        The forward.
    """
    with ExitStack() as undo:
        slots = plan.slots if plan.host_slots is None else plan.host_slots
        runs = find_runs(slots.tolist()) if mixers else []
        for number, mixer in mixers.items():
            by_run = partial(_run_by_run, mixer.forward, states[number], runs, plan.measure_states)
            undo.enter_context(replaced_forward(mixer, by_run))
        yield


def find_runs(slots: Sequence[int]) -> list[tuple[slice, int, int]]:
    """Rows that stand next to each other: their indices, the first slot, and the last + 1."""
    cuts = [0, *(n for n, (one, other) in enumerate(pairwise(slots), start=1) if other != one + 1), len(slots)]
    return [(slice(first, stop), slots[first], slots[stop - 1] + 1) for first, stop in pairwise(cuts)]


def _run_by_run(
    forward: Callable[..., Tensor],
    layer: StateLayer,
    runs: Sequence[tuple[slice, int, int]],
    measure: bool,
    hidden_states: Tensor,
    *args: Any,
    **kwargs: Any,
) -> Tensor:
    """A layer's output for all rows, (1, rows, width); leaves the states behind the runs in their places."""
    outputs = []
    for rows, start, end in runs:
        run = partial(layer.run, partial(forward, hidden_states[:, rows], *args, **kwargs))
        state = layer.before(start)
        output, after = run(state)
        outputs.append(output)
        layer.write(start, end, _measure(run, state, after, end - start, output.dtype) if measure else after)
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, 1)


def _measure(
    run: Callable[[State | None], tuple[Tensor, State]],
    state: State | None,
    after: State,
    tokens: int,
    dtype: torch.dtype,
) -> StateChange:
    """What tokens do to a state, by running them from zero and from the identity, behind the seam that they stand at.

    It is kept in the dtype of the model's keys and values; a layer computes in fp32.
    """
    seam = None if after.seam is None else _last(after.seam, tokens).clone()
    if after.memory is None:
        return StateChange(tokens, None, None, seam)
    if after.memory.dim() != 4:
        raise UnsupportedModel(f"its state is no matrix for each head, but {tuple(after.memory.shape[1:])}")
    front = None if state is None else state.seam
    end = after.memory if state is None else _memory(run, torch.zeros_like(after.memory), front)
    keys, values = end.shape[-2:]
    identity = torch.eye(keys, device=end.device).expand(*end.shape[:-2], -1, -1)
    parts = [
        (_memory(run, F.pad(part, (0, values - part.shape[-1])), front) - end)[..., : part.shape[-1]]
        for part in torch.split(identity, values, -1)
    ]
    return StateChange(tokens, torch.cat(parts, -1).to(dtype), end.to(dtype), seam)


def _memory(run: Callable[[State | None], tuple[Tensor, State]], memory: Tensor, seam: Tensor | None) -> Tensor:
    ended = run(State(memory, seam))[1].memory
    if ended is None:
        raise UnsupportedModel("its layers lose their state on the way")
    return ended


def _last(inputs: Tensor, count: int) -> Tensor:
    """The last columns, as many as there are."""
    return inputs[..., max(0, inputs.shape[-1] - count) :]
