"""A CPU-fast forward of a Hugging Face Llama or Qwen3: same parameters, bf16, hand-written backward passes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import LlamaConfig

BLOCK = 256
"""Queries that are scored together on a CPU; elsewhere all are, since many small products leave a GPU idle."""


def hidden_states(
    weights: Mapping[str, Tensor],
    config: LlamaConfig,
    ids: Tensor,
    bias: Tensor,
    positions: Tensor,
    dtype: torch.dtype = torch.bfloat16,
    depths: Sequence[int] = (),
    pairs: Mapping[str, tuple[Tensor, Tensor]] | None = None,
) -> tuple[Tensor, ...]:
    """Return what `LlamaModel` returns as `last_hidden_state`, differentiable in the fp32 `weights`.

    Parameters
    ----------
    weights : mapping of str to Tensor
        `dict(model.named_parameters())` of a `LlamaForCausalLM` or `Qwen3ForCausalLM`.
    config : LlamaConfig
        Its config; grouped query heads, default rope, attention bias optional.
    ids : Tensor
        Token ids, (B, T).
    bias : Tensor
        Additive attention mask, (B or 1, 1, T, T).
    positions : Tensor
        Rope positions, (B, T).
    dtype : torch.dtype
        Activation type; bf16 for speed, fp32 for the equality test.
    depths : sequence of int
        Also return what would be the last state after so many layers.
    pairs : mapping of str to (Tensor, Tensor), optional
        `down` (rank, in) and `up` (out, rank) by the name of a matrix that their product was added to (LoRA,
        2106.09685). They get gradients, and the matrix gets none, which saves a third of the arithmetic.

    Returns
    -------
    tuple of Tensor
        (B, T, hidden) each, those of `depths` first.
    """
    rope, blocks = _rope_table(config, positions, dtype), _visible_blocks(bias.to(dtype))
    x = F.embedding(ids, weights["model.embed_tokens.weight"]).to(dtype)  # (B, T, d)
    states = []
    for layer in range(config.num_hidden_layers):
        if layer in depths:
            states.append(x)
        w = _Layer(weights, f"model.layers.{layer}.", dtype, pairs or {})
        x = x + _attend(w, config, x, blocks, rope)
        normed = _call(_Norm, x, config.rms_norm_eps)
        up = w.linear(normed, "mlp.", ("gate", "up"), "post_attention_layernorm")
        x = x + w.linear(_call(_SwiGLU, up), "mlp.", ("down",))
    gain = weights["model.norm.weight"].to(dtype)
    return tuple(_call(_Norm, state, config.rms_norm_eps) * gain for state in (*states, x))


def _call(function: type[torch.autograd.Function], *inputs: Any) -> Tensor:
    out: Tensor = function.apply(*inputs)  # type: ignore[no-untyped-call]
    return out


class _Layer:
    """One layer's weights, fused and cast on use; the norms' gains are folded into the matrices after them."""

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        prefix: str,
        dtype: torch.dtype,
        pairs: Mapping[str, tuple[Tensor, Tensor]],
    ) -> None:
        self._weights, self._prefix, self._dtype, self._pairs = weights, prefix, dtype, pairs

    def cast(self, name: str) -> Tensor:
        return self._weights[self._prefix + name].to(self._dtype)

    def has(self, name: str) -> bool:
        return self._prefix + name in self._weights

    def linear(self, x: Tensor, block: str, parts: tuple[str, ...], norm: str = "") -> Tensor:
        """What several matrices make of `x`, one after the other in the last dimension; the gain of a norm before."""
        names = [f"{self._prefix}{block}{part}_proj" for part in parts]
        gain = self._weights[f"{self._prefix}{norm}.weight"] if norm else None
        matrices = torch.cat([self._weights[f"{name}.weight"] for name in names])
        matrix = (matrices if gain is None else matrices * gain).to(self._dtype)
        biases = [self._weights[f"{name}.bias"] for name in names if f"{name}.bias" in self._weights]
        bias = torch.cat(biases).to(self._dtype) if biases else None
        if f"{names[0]}.weight" not in self._pairs:
            return F.linear(x, matrix, bias)
        pairs = [self._pairs[f"{name}.weight"] for name in names]
        downs = [(down if gain is None else down * gain).to(self._dtype) for down, _ in pairs]
        return _call(_LowRank, x, matrix, bias, *downs, *(up.to(self._dtype) for _, up in pairs))


@dataclass(frozen=True)
class _Block:
    """Some queries, the keys that any of them may see, and the mask between these."""

    rows: slice
    columns: slice | Tensor
    bias: Tensor  # (B or 1, 1, rows, columns)

    def keys(self, x: Tensor) -> Tensor:
        """Those keys, or values, of (N, T, D)."""
        return x[:, self.columns]


def _visible_blocks(bias: Tensor) -> list[_Block]:
    """Cut a mask along the queries, and leave out keys that a block does not see: most of them, where questions branch.

    A block that sees every key up to a point takes a slice, which copies nothing.
    """
    found = []
    size = BLOCK if bias.device.type == "cpu" else bias.shape[2]
    for start in range(0, bias.shape[2], size):
        part = bias[:, :, start : start + size]
        seen = part.isfinite().any(0)[0].any(0).nonzero()[:, 0]  # (columns,)
        last = int(seen[-1]) + 1
        columns = slice(0, last) if 4 * len(seen) > 3 * last else seen
        found.append(_Block(slice(start, start + part.shape[2]), columns, part[..., columns]))
    return found


def _attend(w: _Layer, config: LlamaConfig, x: Tensor, blocks: Sequence[_Block], rope: tuple[Tensor, Tensor]) -> Tensor:
    b, t, _ = x.shape
    heads, kv, dim = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    normed = _call(_Norm, x, config.rms_norm_eps)
    y = w.linear(normed, "self_attn.", ("q", "k", "v"), "input_layernorm").view(b, t, heads + 2 * kv, dim)
    qk = _call(_Rope, _normed(w, config, y[:, :, : heads + kv]), *rope).transpose(1, 2)  # (B, H + KV, T, D)
    q = (qk[:, :heads] * dim**-0.5).reshape(b * kv, heads // kv, t, dim)
    k, v = qk[:, heads:].reshape(b * kv, t, dim), y[:, :, heads + kv :].transpose(1, 2).reshape(b * kv, t, dim)
    parts = [
        _call(_Attention, q[:, :, one.rows].reshape(b * kv, -1, dim), one.keys(k), one.keys(v), one.bias, b)
        for one in blocks
    ]
    out = torch.cat([part.view(b, heads, -1, dim) for part in parts], 2)
    out = out.transpose(1, 2).reshape(b, t, heads * dim)
    return w.linear(out, "self_attn.", ("o",))


def _normed(w: _Layer, config: LlamaConfig, qk: Tensor) -> Tensor:
    """Queries and keys, (B, T, H + KV, D), normalised where the model has norms for them (Qwen3)."""
    if not w.has("self_attn.q_norm.weight"):
        return qk
    gain = [w.cast(f"self_attn.{which}_norm.weight") for which in "qk"]
    heads = config.num_attention_heads
    gains = torch.stack([gain[0]] * heads + [gain[1]] * (qk.shape[2] - heads))  # (H + KV, D)
    return _call(_Norm, qk, config.rms_norm_eps) * gains


def _rope_table(config: LlamaConfig, positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    theta, dim = config.rope_parameters["rope_theta"], config.head_dim
    inverse = 1.0 / theta ** (torch.arange(0, dim, 2, device=positions.device).float() / dim)
    angle = positions.float()[..., None] * inverse  # (B, T, D / 2)
    return angle.cos().to(dtype)[:, :, None], angle.sin().to(dtype)[:, :, None]


class _Attention(torch.autograd.Function):
    """softmax(q k' + bias) v with the query heads of one KV head stacked along the rows."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor, batch: int) -> Tensor:
        scores = torch.bmm(q, k.mT)  # (B KV, r rows, columns)
        scores.view(batch, -1, *bias.shape[2:]).add_(bias)
        p = torch.softmax(scores, -1)
        ctx.save_for_backward(q, k, v, p)
        return torch.bmm(p, v)  # (B KV, r rows, D)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grads
        q, k, v, p = ctx.saved_tensors
        dp = torch._softmax_backward_data(torch.bmm(grad, v.mT), p, -1, p.dtype)
        return torch.bmm(dp, k), torch.bmm(dp.mT, q), torch.bmm(p.mT, grad), None, None


class _LowRank(torch.autograd.Function):
    """x W' for stacked matrices that contain products up down; the gradients are those of `x` and of the factors."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor, bias: Tensor | None, *factors: Tensor) -> Tensor:
        ctx.save_for_backward(x, matrix, *factors)
        return F.linear(x, matrix, bias)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, matrix, *factors = ctx.saved_tensors
        downs, ups = factors[: len(factors) // 2], factors[len(factors) // 2 :]
        flat, rows = x.flatten(0, -2), grads[0].flatten(0, -2)  # (B T, in), (B T, out)
        ends = [*accumulate(len(up) for up in ups)]
        parts = [rows[:, end - len(up) : end] for end, up in zip(ends, ups, strict=True)]
        to_downs = [(part @ up).mT @ flat for part, up in zip(parts, ups, strict=True)]  # (rank, in)
        to_ups = [part.mT @ (flat @ down.mT) for part, down in zip(parts, downs, strict=True)]  # (out, rank)
        return (rows @ matrix).view_as(x), None, None, *to_downs, *to_ups


class _Norm(torch.autograd.Function):
    """x / rms(x); the gain is folded into the next matrix."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, eps: float) -> Tensor:
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
        scale: Tensor = (norm.square_() / x.shape[-1] + eps).rsqrt_().to(x.dtype)
        y: Tensor = x * scale
        ctx.save_for_backward(y, scale)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (g,) = grads
        y, scale = ctx.saved_tensors
        mean = (g * y).mean(-1, keepdim=True)
        return torch.addcmul(g, y, mean, value=-1).mul_(scale), None


class _SwiGLU(torch.autograd.Function):
    """silu(gate) * up for a fused (gate, up)."""

    @staticmethod
    def forward(ctx: Any, fused: Tensor) -> Tensor:
        ctx.save_for_backward(fused)
        gate, up = fused.chunk(2, -1)
        return F.silu(gate) * up

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (d,) = grads
        (fused,) = ctx.saved_tensors
        gate, up = fused.chunk(2, -1)
        out = torch.empty_like(fused)
        d_gate, d_up = out.chunk(2, -1)
        torch.mul(d, F.silu(gate), out=d_up)
        d_gate.copy_(torch.ops.aten.silu_backward(d * up, gate))
        return out


class _Rope(torch.autograd.Function):
    """Half-split rotation of (B, T, H, D) by tables of (B, T, 1, D / 2)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _rotate(x, cos, sin)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        cos, sin = ctx.saved_tensors
        return _rotate(grads[0], cos, -sin), None, None


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    out = torch.empty_like(x)
    torch.mul(a, cos, out=out[..., :half])
    out[..., :half].addcmul_(b, sin, value=-1)
    torch.mul(b, cos, out=out[..., half:])
    out[..., half:].addcmul_(a, sin)
    return out
