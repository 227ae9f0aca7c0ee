"""RoPE found by probing, and keys moved from one position to another.

Rotations compose, R(a) R(b) = R(a + b) (RoFormer, 2104.09864), so a key made at position s serves at t after one more
rotation by t - s. For a chunk that distance is one number, hence one small matrix per layer kind: half-split,
interleaved, partial and absent RoPE are the same product. Angles are fp64, the product fp32, and the stored copy is
rotated once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ragcache.errors import UnsupportedModel

Pairing = Literal["none", "half", "interleaved"]
PROBE_SHIFTS = (1, 37)  # and the last positions that the model allows
_CACHED_MATRICES = 512


@dataclass(frozen=True)
class RopeLayout:
    """How one layer rotates its keys.

    Attributes
    ----------
    pairing : {"none", "half", "interleaved"}
        Which dimensions turn together: i with i + n/2 (Llama), i with i + 1 (GLM, Cohere), or none at all (NoPE).
    inv_freq : tuple of float
        Angle per position of each pair, in radians.
    offset : int
        First rotated dimension; 0 except where the last dimensions are the rotated ones.
    """

    pairing: Pairing
    inv_freq: tuple[float, ...] = ()
    offset: int = 0

    def matrix(self, head_dim: int, delta: int) -> Tensor:
        """R(delta) such that `key @ R(delta)` moves a key by `delta` positions; (head_dim, head_dim) fp32."""
        rotation = torch.eye(head_dim, dtype=torch.float64)
        if self.pairing == "none" or delta == 0:
            return rotation.float()
        angles = torch.tensor(self.inv_freq, dtype=torch.float64) * delta  # (pairs,)
        first, second = self._pairs()
        cos, sin = angles.cos(), angles.sin()
        rotation[first, first] = rotation[second, second] = cos
        rotation[first, second], rotation[second, first] = sin, -sin
        return rotation.float()

    def _pairs(self) -> tuple[Tensor, Tensor]:
        pairs = len(self.inv_freq)
        if self.pairing == "half":
            return torch.arange(pairs) + self.offset, torch.arange(pairs) + self.offset + pairs
        return torch.arange(pairs) * 2 + self.offset, torch.arange(pairs) * 2 + self.offset + 1


class KeyRotator:
    """Moves keys along positions, layer by layer, in the layouts that the probe found.

    Parameters
    ----------
    layouts : sequence of RopeLayout
        One per decoder layer.
    """

    def __init__(self, layouts: Sequence[RopeLayout]) -> None:
        self.layouts = tuple(layouts)
        self._matrices: dict[tuple[RopeLayout, int, int, torch.device], Tensor] = {}

    def rotate(self, keys: Tensor, layer: int, delta: int) -> Tensor:
        """Keys of one layer, moved by `delta` positions.

        Parameters
        ----------
        keys : Tensor
            (kv_heads, tokens, head_dim), as stored.
        layer : int
            Decoder layer.
        delta : int
            Positions to move by, may be negative.

        Returns
        -------
        Tensor
            (kv_heads, tokens, head_dim) in the dtype of `keys`.
        """
        layout = self.layouts[layer]
        if delta == 0 or layout.pairing == "none":
            return keys
        matrix = self._matrix(layout, keys.shape[-1], delta, keys.device)
        return _matmul_fp32(keys, matrix).to(keys.dtype)

    def _matrix(self, layout: RopeLayout, head_dim: int, delta: int, device: torch.device) -> Tensor:
        name = (layout, head_dim, delta, device)
        matrix = self._matrices.get(name)
        if matrix is None:
            if len(self._matrices) >= _CACHED_MATRICES:
                self._matrices.clear()
            matrix = self._matrices[name] = layout.matrix(head_dim, delta).to(device)
        return matrix


def _matmul_fp32(keys: Tensor, matrix: Tensor) -> Tensor:
    """Full fp32 product: TF32 would cost the rotation three digits."""
    if keys.is_cuda and torch.backends.cuda.matmul.allow_tf32:
        return (keys.double() @ matrix.double()).float()
    return keys.float() @ matrix


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
        `record(position)` forwards the same two tokens at `position` and `position + 1` and returns K and V per layer,
        (kv_heads, 2, head_dim) each.
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
    for shift, (_, value) in moved.items():
        if (error := _relative(value, values)) > tolerance + 1e-7 * shift:
            raise UnsupportedModel(
                f"layer {layer}: values change by {error:.1%} when the tokens move by {shift} positions, so its KV "
                "cannot serve at another position"
            )
    head_dim = keys.shape[-1]
    errors = {
        candidate: [_relative(keys.float() @ candidate.matrix(head_dim, shift).to(keys.device), key) - 1e-7 * shift
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


def _candidates(head_dim: int, frequencies: Sequence[Tensor]) -> list[RopeLayout]:
    layouts = [RopeLayout("none")]
    for inv_freq in frequencies:
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
