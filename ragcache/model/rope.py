"""RoPE found by probing, and keys moved from one position to another.

Rotations compose, R(a) R(b) = R(a + b) (RoFormer, 2104.09864), so a key made at position s serves at t after one more
rotation by t - s, whatever the layout: half-split, interleaved, partial and absent RoPE differ in which dimensions turn
together. Angles are fp64, the rotation fp32, and the stored copy is rotated once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ragcache.errors import UnsupportedModel
from ragcache.model.upload import upload

Pairing = Literal["none", "half", "interleaved"]
_ROTATED = 4096  # slots whose keys turn together: bounds their fp32 copies
PROBE_SHIFTS = (1, 37)  # and the last positions that the model allows


@dataclass(frozen=True)
class RopeLayout:
    """How one layer rotates its keys.

    Attributes
    ----------
    pairing : {"none", "half", "interleaved"}
        Which dimensions turn together: i with i + n/2 (Llama), i with i + 1 (GLM, Cohere), or none at all (NoPE).
    inv_freq : tuple of float
        Angle per position of each pair, in radians; below 0 where it turns the other way.
    offset : int
        First rotated dimension; 0 except where the last dimensions are the rotated ones.
    """

    pairing: Pairing
    inv_freq: tuple[float, ...] = ()
    offset: int = 0

    def waves(self, deltas: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine of each pair's angle after (tokens,) distances; (tokens, pairs) fp32 each."""
        distances, token = torch.unique(deltas, return_inverse=True)  # few: a chunk's tokens move together
        angles = distances.double()[:, None] * torch.tensor(self.inv_freq, dtype=torch.float64)  # (distances, pairs)
        return angles.cos().float()[token], angles.sin().float()[token]

    def without(self, rows: Tensor) -> Tensor:
        """The dimensions of rows, (…, width), that do not turn."""
        return torch.cat([rows[..., : self.offset], rows[..., self.offset + 2 * len(self.inv_freq) :]], -1)

    def turn(self, keys: Tensor, cos: Tensor, sin: Tensor) -> None:
        """Rotate keys, (kv_heads, tokens, head_dim), in place by what `waves` gave."""
        first, second = self._pairs()
        x, y = keys[..., first].float(), keys[..., second].float()  # (kv_heads, tokens, pairs)
        # In place from the second product on: of fp32 keys x and y are views, and y is no longer needed then.
        keys[..., first], keys[..., second] = (x * cos).addcmul_(y, sin, value=-1), y.mul_(cos).addcmul_(x, sin)

    def _pairs(self) -> tuple[slice, slice]:
        start, pairs = self.offset, len(self.inv_freq)
        if self.pairing == "interleaved":
            return slice(start, start + 2 * pairs, 2), slice(start + 1, start + 2 * pairs, 2)
        return slice(start, start + pairs), slice(start + pairs, start + 2 * pairs)


class KeyRotator:
    """Moves keys along positions, layer by layer, in the layouts that the probe found.

    Parameters
    ----------
    layouts : sequence of RopeLayout
        One per decoder layer.
    """

    def __init__(self, layouts: Sequence[RopeLayout]) -> None:
        self.layouts = tuple(layouts)

    def rotate(self, layers: Sequence[Tensor], deltas: Tensor) -> None:
        """Move the keys of every layer in place, each token by its own distance.

        Parameters
        ----------
        layers : sequence of Tensor
            Per layer (kv_heads, tokens, head_dim), as stored.
        deltas : Tensor
            (tokens,) int64 positions to move by, may be negative; on the CPU.
        """
        waves: dict[tuple[float, ...], tuple[Tensor, Tensor]] = {}  # layers mostly share their frequencies
        for layout, keys in zip(self.layouts, layers, strict=True):
            if layout.inv_freq not in waves:
                cos, sin = layout.waves(deltas)
                waves[layout.inv_freq] = upload(cos, keys.device), upload(sin, keys.device)
            layout.turn(keys, *waves[layout.inv_freq])

    def rotate_spans(self, keys: Callable[[int, int], Sequence[Tensor]], moved: Sequence[tuple[range, int]]) -> None:
        """Move the keys in some ranges of slots, together.

        Parameters
        ----------
        keys : callable
            `keys(start, end)` gives every layer's keys in slots `start` to `end`, to be changed in place.
        moved : sequence of (range, int)
            Slots, and how far their keys move.
        """
        first = min((slots.start for slots, _ in moved), default=0)
        end = max((slots.stop for slots, _ in moved), default=0)
        deltas = torch.zeros(end - first, dtype=torch.int64)  # (slots,): what stands between stays where it is
        for slots, delta in moved:
            deltas[slots.start - first : slots.stop - first] = delta
        for start in range(0, len(deltas), _ROTATED):
            part = deltas[start : start + _ROTATED]
            if part.any():
                self.rotate(keys(first + start, first + start + len(part)), part)


def probe(
    record: Callable[[int], Sequence[tuple[Tensor, Tensor]]],
    frequencies: Sequence[Tensor],
    *,
    limit: int,
    tolerance: float,
) -> list[RopeLayout]:
    """Find each layer's RoPE by moving two tokens and watching their keys.

    Parameters
    ----------
    record : callable
        `record(position)` forwards the same two tokens at `position` and `position + 1` and returns per layer what may
        turn, (kv_heads, 2, width), and what may not: K and V; of what stands side by side all, and nothing.
    frequencies : sequence of Tensor
        The inverse frequencies that the model's rotary modules hold.
    limit : int
        Number of positions the model may be asked for.
    tolerance : float
        Relative error allowed between the model's moved keys and ours.

    Raises
    ------
    UnsupportedModel
        If values change with position, or no layout explains the keys; the message names the layer.
    """
    base = record(0)
    shifts = [shift for shift in (*PROBE_SHIFTS, limit - 2) if 0 < shift <= limit - 2]
    moved = {shift: record(shift) for shift in shifts}
    layouts: list[RopeLayout] = []
    for layer in range(len(base)):
        seen = {shift: layers[layer] for shift, layers in moved.items()}
        layouts.append(_layout(layer, base[layer], seen, frequencies, tolerance))
    return layouts


def _layout(
    layer: int,
    base: tuple[Tensor, Tensor],
    moved: dict[int, tuple[Tensor, Tensor]],
    frequencies: Sequence[Tensor],
    tolerance: float,
) -> RopeLayout:
    keys, values = base
    if not all(bool(one.isfinite().all()) for pair in (base, *moved.values()) for one in pair):
        raise UnsupportedModel(
            f"layer {layer}: keys or values are no numbers in {keys.dtype}; load the model in another number format, "
            "by --dtype float32"
        )
    for shift, (_, value) in moved.items():
        if (error := _relative(value, values)) > tolerance + 1e-7 * shift:
            raise UnsupportedModel(
                f"layer {layer}: values change by {error:.1%} when the tokens move by {shift} positions, so its KV "
                "cannot serve at another position"
            )
    head_dim = keys.shape[-1]
    errors = {
        candidate: [_relative(_moved(keys, candidate, shift), key) - 1e-7 * shift
                    for shift, (key, _) in moved.items()]
        for candidate in _candidates(head_dim, frequencies)
    }  # fmt: skip
    best = min(errors, key=lambda candidate: max(errors[candidate]))
    if max(errors[best]) > tolerance:
        worst = list(moved)[errors[best].index(max(errors[best]))]
        raise UnsupportedModel(
            f"layer {layer}: keys moved by {worst} positions are {max(errors[best]):.1%} off every known rotary layout "
            f"(allowed: {tolerance:.1%}); its frequencies may depend on the prompt's length, or its positions may not "
            "be rotary"
        )
    return best


def _moved(keys: Tensor, layout: RopeLayout, shift: int) -> Tensor:
    exact = keys.float().clone()  # (kv_heads, tokens, head_dim)
    KeyRotator([layout]).rotate([exact], torch.full(exact.shape[1:2], shift))
    return exact


def _candidates(head_dim: int, frequencies: Sequence[Tensor]) -> list[RopeLayout]:
    layouts = [RopeLayout("none")]
    for inv_freq in (*frequencies, *(-one for one in frequencies)):  # NanoChat turns the other way
        values = tuple(inv_freq.double().tolist())
        unrotated = head_dim - 2 * len(values)
        if unrotated < 0:  # another layer's, whose heads are wider
            continue
        pairings: tuple[Pairing, ...] = ("half", "interleaved")
        layouts += [RopeLayout(pairing, values, offset) for pairing in pairings for offset in {0, unrotated}]
    return layouts


def _relative(seen: Tensor, wanted: Tensor) -> float:
    difference = (seen.float() - wanted.float()).norm()
    return float(difference / wanted.float().norm().clamp_min(1e-12))
