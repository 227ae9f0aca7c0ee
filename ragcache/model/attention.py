"""One attention function for every forward of ours: plain, decode, sparse queries, explicit scores.

It is registered with transformers under a name that has no mask function, so transformers builds no mask; causality
comes from the plan's slots. Where the key tensor carries no plan, the queries are the last slots.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AttentionInterface

from ragcache.errors import UnsupportedModel
from ragcache.model import kernels
from ragcache.model.plan import (
    Block,
    Chunked,
    ForwardPlan,
    Part,
    Slots,
    StopForward,
    Window,
    first_seen,
    visible,
    window_size,
)

if TYPE_CHECKING:
    from ragcache.model.batching import BatchBuffer
    from ragcache.model.buffer import KVBuffer

NAME = "ragcache"
EXPLICIT_ROWS = 64  # most rows per block of explicit probabilities
EXPLICIT_LOGITS = 1 << 22  # of a block on a CPU, (heads, rows, keys) fp32: what an answer needs beside its KV
_LEAST_ROWS = 16  # but no fewer rows: each block reads all keys and values

# Keyword arguments that say nothing about the arithmetic; any other one that carries a value changes the result.
_HARMLESS = frozenset(
    "position_ids use_cache cache output_attentions output_hidden_states cache_position is_causal return_dict "
    "past_key_values position_embeddings logits_to_keep num_items_in_batch output_router_logits".split()
)


@dataclass(frozen=True, eq=False)
class SoftmaxForm:
    """What a layer's softmax is beyond the ordinary one.

    Attributes
    ----------
    cap : float or None
        Logits are capped smoothly at this size, by `cap * tanh(logit / cap)` (Gemma 2).
    sinks : Tensor or None
        (heads,): a further logit of each head, whose probability goes to no value (gpt-oss).
    """

    cap: float | None
    sinks: Tensor | None

    def capped(self, logits: Tensor) -> Tensor:
        """Logits within the cap, in place."""
        return logits if self.cap is None else logits.div_(self.cap).tanh_().mul_(self.cap)

    def probabilities(self, logits: Tensor) -> Tensor:
        """Of keys, (heads, rows, keys); less than one in all where there are sinks."""
        if self.sinks is None:
            return logits.softmax(-1)
        sinks = self.sinks.to(logits)[:, None, None].expand(*logits.shape[:2], 1)
        return torch.cat([logits, sinks], -1).softmax(-1)[..., :-1]


_ORDINARY = SoftmaxForm(None, None)


def attention(
    module: torch.nn.Module,
    query: Tensor,  # (1, heads, rows, head_dim)
    key: Tensor,  # (1, kv_heads, keys, head_dim)
    value: Tensor,  # (1, kv_heads, keys, head_dim)
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    layer_windows: Sequence[Window] | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    kv_buffer: "KVBuffer | BatchBuffer | None" = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Sparse-query attention over slots, in the shape that transformers' `AttentionInterface` asks for.

    Raises
    ------
    UnsupportedModel
        If the model passes an argument that changes the arithmetic and is not known here (biases), or a mask.
    """
    _refuse(attention_mask, kwargs)
    layer: int = module.layer_idx  # type: ignore[assignment]
    scale = query.shape[3] ** -0.5 if scaling is None else scaling
    window = sliding_window if layer_windows is None else layer_windows[layer]  # see `ragcache.model.windows`
    form = _ORDINARY if softcap is None and s_aux is None else SoftmaxForm(softcap, s_aux)
    parts = _parts(layer, query, key, value, kv_buffer)
    plan = parts[0][3]  # several requests' forwards are one only if they end at the same layer
    if layer == plan.last:
        raise StopForward
    outputs = [
        attended(query[:, :, rows][:, :, own], key[:, :, keys], value[:, :, keys], run, layer, scale, window, form)
        for rows, key, value, plan in parts
        for own, keys, run in ([(slice(None), slice(None), plan)] if len(plan.cu_seqlens) <= 2 else plan.sequences)
    ]
    if plan.stop_after_scores and layer == plan.last_scored:
        raise StopForward
    output = outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=2)
    return output.transpose(1, 2).contiguous(), None  # (1, rows, heads, head_dim)


def _parts(
    layer: int, query: Tensor, key: Tensor, value: Tensor, buffer: "KVBuffer | BatchBuffer | None"
) -> list[Part]:
    """Which rows see what, as the key tensor says; or the buffer, where the model has made K and V of latents."""
    parts: list[Part] | None = getattr(key, "ragcache_parts", None)
    if buffer is not None:
        parts = buffer.parts(layer, key, value)
    if parts is None:
        plan = getattr(key, "ragcache_plan", None) or _trailing(query.shape[2], key)
        parts = [(slice(None), key, value, plan)]
    return parts


def _refuse(mask: Tensor | None, kwargs: dict[str, Any]) -> None:
    unknown = sorted(name for name, value in kwargs.items() if value is not None and name not in _HARMLESS)
    if mask is not None:
        unknown.append("attention_mask")
    if unknown:
        raise UnsupportedModel(
            f"the model's attention takes {', '.join(unknown)}, which ragcache's attention does not implement"
        )


def _trailing(rows: int, key: Tensor) -> ForwardPlan:
    end = key.shape[2]
    return ForwardPlan.on(key.device, Slots(torch.arange(end - rows, end)), end)


def attended(
    query: Tensor, key: Tensor, value: Tensor, plan: ForwardPlan, layer: int, scale: float, window: Window,
    form: SoftmaxForm = _ORDINARY,
) -> Tensor:  # fmt: skip
    """Attention of rows that may all see the first key. Returns (1, heads, rows, head_dim)."""
    size = window_size(window)
    window = None if size is not None and size >= key.shape[2] else window
    if layer not in plan.scores and plan.score_mod is None and form is _ORDINARY:
        return _plain(query, key, value, plan, scale, window)
    return _explicit(query, key, value, plan, layer, scale, window, form)


def _plain(query: Tensor, key: Tensor, value: Tensor, plan: ForwardPlan, scale: float, window: Window) -> Tensor:
    """Attention that nobody looks into. Returns (1, heads, rows, head_dim of the values)."""
    rows, keys, width = query.shape[2], key.shape[2], value.shape[3]
    if width != key.shape[3]:  # fast kernels take one width
        query, key, value = (F.pad(one, (0, max(width, key.shape[3]) - one.shape[3])) for one in (query, key, value))
        return _plain(query, key, value, plan, scale, window)[..., :width]
    if rows == keys == plan.end and rows > 1 and window is None:
        return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale, enable_gqa=True)
    if rows == 1 and (one := plan.blocks(window)[0]).mask is None:
        return _single(query, key[:, :, one.keys], value[:, :, one.keys], scale)
    if rows > 1 and not isinstance(window, Chunked) and kernels.serves(query, key, blocked):
        return kernels.attend_sparse_queries(query, key, value, plan.slots, scale, window)
    return blocked(query, key, value, plan, scale, window)


def blocked(query: Tensor, key: Tensor, value: Tensor, plan: ForwardPlan, scale: float, window: Window) -> Tensor:
    """Attention over row blocks; each sees the keys up to its last row. Returns (1, heads, rows, head_dim)."""
    outputs = [
        _masked(query[:, :, block.rows], key[:, :, block.keys], value[:, :, block.keys], block, scale)
        for block in plan.blocks(window)
    ]
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=2)


def _masked(query: Tensor, key: Tensor, value: Tensor, block: Block, scale: float) -> Tensor:
    """Attention of one block of rows. Returns (1, heads, rows, head_dim)."""
    if block.common:
        return _parted(query, key, value, block, scale)
    heads, bias = query.shape[1], block.bias(query.dtype)
    key, value = _per_head(key, heads), _per_head(value, heads)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=bias, scale=scale, enable_gqa=True)


def _parted(query: Tensor, key: Tensor, value: Tensor, block: Block, scale: float) -> Tensor:
    """The same on a CPU, in two parts that are joined by what each holds of the softmax's sum.

    The keys that every row of the block sees take no mask, so there the heads that share keys are rows of one head:
    the kernel packs a key once for all of them, and finds rows enough for its widest tiles.
    """
    flash, common = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu, block.common
    tail, tail_sum = flash(
        query, key[:, :, common:], value[:, :, common:], attn_mask=block.bias(query.dtype), scale=scale
    )  # (1, heads, rows, head_dim), (1, heads, rows) log-sum-exp
    grouped = query.reshape(1, key.shape[1], -1, query.shape[3])  # (1, kv_heads, group * rows, head_dim)
    front, front_sum = flash(grouped, key[:, :, :common], value[:, :, :common], scale=scale)
    share = (front_sum.reshape(tail_sum.shape) - tail_sum).sigmoid_()[..., None]  # (1, heads, rows, 1) fp32
    whole: Tensor = tail.to(share.dtype).lerp(front.reshape(tail.shape).to(share.dtype), share)
    return whole.to(query.dtype)


def _single(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """One row that sees every key: the heads that share keys become rows, which in bf16 a CPU does far faster."""
    grouped = query.reshape(1, key.shape[1], -1, query.shape[3])  # (1, kv_heads, group, head_dim)
    return F.scaled_dot_product_attention(grouped, key, value, scale=scale).reshape(1, query.shape[1], 1, -1)


def _per_head(tensor: Tensor, heads: int) -> Tensor:
    """K or V repeated for every query head on CUDA, whose fast kernels take a mask or grouped heads but not both."""
    if not tensor.is_cuda:
        return tensor
    return tensor.repeat_interleave(heads // tensor.shape[1], dim=1)  # (1, heads, keys, head_dim)


def _explicit(
    query: Tensor, key: Tensor, value: Tensor, plan: ForwardPlan, layer: int, scale: float, window: Window,
    form: SoftmaxForm = _ORDINARY,
) -> Tensor:  # fmt: skip
    """The same with the softmax written out, where it is of another form, or its logits or probabilities wanted."""
    heads, kv_heads, keys = query.shape[1], key.shape[1], key.shape[2]
    sink = plan.scores.get(layer)
    every = sink is not None or plan.score_mod is not None  # whoever looks at logits is shown all keys
    if query.dtype is torch.float16:  # it ends at 65,504, which products may pass, and is coarse below
        query, key = query.float(), key.float()
    outputs, size = [], EXPLICIT_ROWS
    if key.device.type == "cpu":
        size = min(size, max(_LEAST_ROWS, EXPLICIT_LOGITS // (heads * keys)))
    for first in range(0, query.shape[2], size):
        rows, slots = query[0, :, first : first + size], plan.slots[first : first + size]  # (heads, rows, head_dim)
        host = None if plan.host_slots is None else plan.host_slots[first : first + size]
        count = rows.shape[1]
        low, seen, high = 0, 0, keys  # keys that are looked at, and how many of them all rows see, where that is known
        if host is not None:
            start, stop = int(host[0]), int(host[-1]) + 1
            low, high = (0, keys) if every else (first_seen(start, window), stop)
            seen = start if window is None else 0
        grouped = rows.reshape(kv_heads, -1, rows.shape[2])  # (kv_heads, group * rows, head_dim)
        products = grouped @ key[0, :, low:high].transpose(1, 2)  # (kv_heads, group * rows, keys)
        logits = form.capped(products.float().mul_(scale)).view(heads, count, -1)  # (heads, rows, keys)
        mask = visible(slots, low + seen, high, window, host)  # (rows, keys - seen)
        if mask is not None:
            logits[..., seen:].masked_fill_(~mask, float("-inf"))
        probabilities = form.probabilities(logits if plan.score_mod is None else plan.score_mod(layer, logits))
        if sink is not None:
            sink(probabilities)
        weights = probabilities.to(value.dtype).view(kv_heads, -1, high - low)
        outputs.append((weights @ value[0, :, low:high]).view(heads, count, -1))
    return torch.cat(outputs, dim=1)[None]


AttentionInterface.register(NAME, attention)
