"""KVBuffer: one request's K and V, where every token keeps its own range of slots.

The buffer is a transformers Cache, so any decoder writes into it by itself. While `writing` is active its `update`
scatters rows to their slots; without it, rows are appended. The plan travels on the key tensor that `update` returns,
which is the very object that the attention function receives; unless the model makes K and V of it anew, as it does of
latents, whose attention asks the buffer.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from ragcache.errors import UnsupportedModel
from ragcache.model.encoded import EncodedLayers, nbytes_of
from ragcache.model.linear_attention import StateLayer, is_change, pack_changes, unpack_change
from ragcache.model.plan import ForwardPlan, Part, Slots
from ragcache.model.upload import upload_views


@dataclass(frozen=True, eq=False)
class ChunkKV:
    """K and V of a run of tokens, as the model made them.

    Attributes
    ----------
    layers : sequence of Tensor
        Per layer (2, kv_heads, tokens, head_dim), K first; K carries the rotation of the positions it was made at. Or
        (1, kv_heads, tokens, width), where the two that a model caches are of different widths, side by side: latents
        (MLA), and the part of the keys that turns. Layers that carry a state are not among them.
    start : int
        RoPE position of the first token when it was made.
    token_ids : tuple of int
        The tokens.
    extras : dict of str to Tensor
        What an encoder stores beside K and V, by token; and what the tokens do to the state of layers that carry one.
    """

    layers: Sequence[Tensor]
    start: int
    token_ids: tuple[int, ...]
    extras: dict[str, Tensor]

    def __len__(self) -> int:
        return len(self.token_ids)

    def first(self, tokens: int) -> "ChunkKV":
        """The same of its first tokens only, which know nothing of those behind them, without what cannot be cut."""
        layers = tuple(layer[:, :, :tokens] for layer in self.layers)
        extras = {name: extra[:tokens] for name, extra in self.extras.items() if not is_change(name)}
        return ChunkKV(layers, self.start, self.token_ids[:tokens], extras)

    def placed(self, extras: Sequence[str]) -> "ChunkKV":
        """What is left to be known of it once its K and V stand in a buffer: tokens, and extras by name.

        Extras are copies: as views of what was loaded they would hold all of that in memory.
        """
        kept = {name: extra.clone() for name, extra in self.extras.items() if name in extras}
        return replace(self, layers=(), extras=kept)

    @property
    def state_nbytes(self) -> int:
        """Bytes of what does not grow with the tokens: the changes of states."""
        return sum(extra.nbytes for name, extra in self.extras.items() if is_change(name))

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return nbytes_of(self.layers) + sum(extra.nbytes for extra in self.extras.values())


def stack_kv(key: Tensor, value: Tensor) -> Tensor:
    """A layer as `ChunkKV` has it, of what a model caches, (1, kv_heads, tokens, head_dim) each."""
    return torch.cat([key, value], 0 if key.shape[3] == value.shape[3] else 3)


@dataclass
class _Common:
    """What a buffer's layers share. They don't know the buffer: in a ring, its memory would wait for the collector."""

    capacity: int
    plan: ForwardPlan | None = None


class _Layer(CacheLayerMixin):
    is_initialized: bool
    is_sliding = False  # sliding layers keep every slot too: the mask does the window

    def __init__(self, common: _Common, index: int) -> None:
        super().__init__()
        self._common = common
        self._index = index
        self.length = 0

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.reserve(stack_kv(key_states, value_states), self._common.capacity)

    def reserve(self, like: Tensor, end: int) -> None:
        """Make room for slots up to `end`, keeping what is there; `like` is (sides, kv_heads, tokens, width)."""
        if not self.is_initialized:
            self._hold(like, max(end, self._common.capacity))
            self.is_initialized = True
        elif end > self.keys.shape[2]:
            before = self.both
            self._hold(like, max(end, self.keys.shape[2] + self.keys.shape[2] // 2))
            self.both[..., : self.length, :] = before[..., : self.length, :]

    def _hold(self, like: Tensor, capacity: int) -> None:
        self.both = like.new_empty(len(like), 1, like.shape[1], capacity, like.shape[3])  # K, V; or both as one
        self.keys, self.values = self.both[0], self.both[-1]  # views
        self._common.capacity = max(self._common.capacity, capacity)

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        plan = self._common.plan
        if key_states.shape[1] != value_states.shape[1]:
            raise UnsupportedModel(
                f"layer {self._index}: its keys have {key_states.shape[-1]} dimensions in {key_states.shape[1]} heads, "
                f"its values {value_states.shape[-1]} in {value_states.shape[1]}, which cannot be stored together"
            )
        width, joined = key_states.shape[3], key_states.shape[3] != value_states.shape[3]
        new = [torch.cat([key_states, value_states], 3)] if joined else [key_states, value_states]
        if plan is not None and plan.on_update is not None:
            plan.on_update(self._index, new[0][0], new[-1][0])
        end = self.length + key_states.shape[2] if plan is None else max(self.length, plan.end)
        self.reserve(stack_kv(key_states[:, :, :0], value_states[:, :, :0]), end)
        for held, states in zip(self.both, new, strict=True):  # (1, kv_heads, capacity, width) each
            if plan is None:
                held[:, :, self.length : end] = states
            else:
                held.index_copy_(2, plan.slots, states)
        self.length = end
        keys, values = self.keys[:, :, :end], self.values[:, :, :end]
        if joined:
            keys, values = keys[..., :width], values[..., width:]
        keys.ragcache_plan = plan  # type: ignore[attr-defined]
        return keys, values

    def get_seq_length(self) -> int:
        return self.length

    def get_max_length(self) -> int:
        return -1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        plan = self._common.plan
        return (self.length + query_length if plan is None else max(self.length, plan.end)), 0


class KVBuffer(Cache):
    """K and V of one prompt being answered, indexed by slot.

    Parameters
    ----------
    layers : int
        Decoder layers of the model that keep anything.
    capacity : int
        Slots to allocate; grows when exceeded.
    states : sequence of int
        Those of the layers that carry a state instead of K and V.
    """

    def __init__(self, layers: int, capacity: int, states: Sequence[int] = ()) -> None:
        self._common = _Common(max(capacity, 1))
        self.states = {index: StateLayer(index) for index in states}
        super().__init__(layers=[self.states.get(index) or _Layer(self._common, index) for index in range(layers)])

    @property
    def capacity(self) -> int:
        """Slots that are allocated, or will be."""
        return self._common.capacity

    @property
    def plan(self) -> ForwardPlan | None:
        """The forward that writes now."""
        return self._common.plan

    @contextmanager
    def writing(self, plan: ForwardPlan) -> Iterator[None]:
        """Scatter what the forward inside writes to the plan's slots."""
        self._common.plan = plan
        try:
            yield
        finally:
            self._common.plan = None

    def parts(self, layer: int, key: Tensor, value: Tensor) -> list[Part] | None:
        """What rows see, where the model has made a layer's K and V anew of what is held; none while nothing writes."""
        return [(slice(None), key, value, self.plan)] if self.plan else None

    def place(self, slot: int, layers: Sequence[Tensor]) -> None:
        """Copy K and V, as they are, to the slots from `slot` on.

        Parameters
        ----------
        slot : int
            First slot.
        layers : sequence of Tensor
            As `ChunkKV.layers`, on the model's device.
        """
        for layer, part in zip(self._slotted(), layers, strict=True):
            end = slot + part.shape[2]
            layer.reserve(part, end)
            layer.both[:, 0, :, slot:end] = part
            layer.length = max(layer.length, end)

    def place_from(self, slot: int, layers: Sequence[Tensor], device: torch.device) -> None:
        """The same for KV on another device than the model's, to which it goes by one copy where it is of one file.

        What is as its file has it is decoded to its place there.
        """
        if not isinstance(layers, EncodedLayers):
            self.place(slot, upload_views(layers, device))
            return
        layers = layers.on(device)
        for number, layer in enumerate(self._slotted()):
            end = slot + layers.shapes[number][2]
            layer.reserve(layers.shaped_like(number, device), end)
            layers.decode_into(number, layer.both[:, 0, :, slot:end])
            layer.length = max(layer.length, end)

    def place_changes(self, slot: int, tokens: int, extras: Mapping[str, Tensor], device: torch.device) -> None:
        """Have the tokens in the slots from `slot` on change the states as they did where their KV was made.

        Raises
        ------
        UnsupportedModel
            If the extras do not say how.
        """
        for number, layer in self.states.items():
            layer.write(slot, slot + tokens, unpack_change(extras, number, tokens, device))

    def read_changes(self, start: int) -> dict[str, Tensor]:
        """How the run of tokens that begins at a slot changes the states, as extras, where that was measured."""
        found = {number: layer.change(start) for number, layer in self.states.items()}
        return pack_changes({number: change for number, change in found.items() if change is not None})

    def read(self, start: int, end: int) -> tuple[Tensor, ...]:
        """Copies of K and V in slots `start` to `end`: per layer (2, kv_heads, end - start, head_dim)."""
        return tuple(layer.both[:, 0, :, start:end].clone() for layer in self._slotted())

    def beginning(self, end: int, capacity: int) -> "KVBuffer":
        """A buffer of its own, with room for `capacity` slots and a copy of those filled before `end`."""
        other, filled = KVBuffer(len(self.layers), capacity, list(self.states)), min(end, self.length)
        if filled:
            other.place(0, [layer.both[:, 0, :, :filled] for layer in self._slotted()])
        for number, layer in self.states.items():
            layer.copy_to(other.states[number], end)
        return other

    def keys(self, start: int, end: int) -> list[Tensor]:
        """Every layer's keys in slots `start` to `end`, to be changed in place: (kv_heads, end - start, head_dim).

        Where keys and values stand side by side, both of them; so it is with `keys_at` and `write`.
        """
        return [layer.keys[0, :, start:end] for layer in self._slotted()]

    def keys_at(self, layer: int, slots: Slots) -> Tensor:
        """Keys that stand in `slots` of a layer, (kv_heads, rows, head_dim)."""
        found: Tensor = self.layers[layer].keys[0].index_select(1, slots)
        return found

    def write(self, layer: int, slots: Slots, key: Tensor, value: Tensor) -> None:
        """Overwrite K and V of a layer, (kv_heads, rows, head_dim) each, in `slots`, which must be filled already."""
        target = self.layers[layer]
        target.keys[0].index_copy_(1, slots, key)
        target.values[0].index_copy_(1, slots, value)

    def truncate(self, length: int) -> None:
        """Forget every slot from `length` on."""
        for layer in self._slotted():
            layer.length = min(layer.length, length)
        for state in self.states.values():
            state.truncate(length)

    @property
    def length(self) -> int:
        """Slots filled."""
        return max(layer.length for layer in self._slotted())

    def get_recurrent_state(self, layer_idx: int, state_idx: int = 0) -> Tensor | None:
        """As transformers' layers ask for it."""
        return self._state(layer_idx, state_idx).get_recurrent_state()

    def update_recurrent_state(
        self, recurrent_states: Tensor, layer_idx: int, state_idx: int = 0, **kwargs: Any
    ) -> Tensor:
        """The same, at a layer's end."""
        return self._state(layer_idx, state_idx).update_recurrent_state(recurrent_states)

    def get_conv_state(self, layer_idx: int, state_idx: int = 0) -> Tensor | None:
        """As transformers' layers ask for it."""
        return self._state(layer_idx, state_idx).get_conv_state()

    def update_conv_state(
        self, conv_states: Tensor, layer_idx: int, state_idx: int = 0, *, conv_kernel_size: int, **kwargs: Any
    ) -> Tensor:
        """The same, with the inputs of a layer's tokens."""
        return self._state(layer_idx, state_idx).update_conv_state(conv_states, conv_kernel_size)

    def _state(self, layer: int, number: int) -> StateLayer:
        if number or layer not in self.states:
            raise UnsupportedModel(f"layer {layer} carries a state number {number}, where one or none was expected")
        return self.states[layer]

    def _slotted(self) -> list[_Layer]:
        return [layer for layer in self.layers if isinstance(layer, _Layer)]
