"""What a forward costs: token-layers of reused context, and FLOPs; and what KV takes on a disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any

from ragcache.model.lazy import Tensor, torch

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

    from ragcache.model.plan import Window

#: What is taken for a page of running text.
PAGE_TOKENS = 500
#: What configurations call the number of experts of a layer, and of those, how many a token goes to.
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
_EXPERTS_PER_TOKEN = ("num_experts_per_tok", "moe_topk", "moe_k", "moe_top_k", "top_k_experts")


def kv_bytes_per_token(config: PreTrainedConfig, dtype: torch.dtype | None = None) -> int:
    """Bytes of K and V of one token over all layers, from a model's configuration: no weights are needed.

    `Reader.bytes_per_token` is the same, measured on a loaded model.

    Parameters
    ----------
    config : PreTrainedConfig
        A decoder's, say from `transformers.AutoConfig.from_pretrained(name)`.
    dtype : torch.dtype, optional
        The configuration's own by default, else bfloat16.
    """
    own = config.get_text_config()
    from ragcache.model.linear_attention import find_state_layers

    kind = dtype or getattr(own, "dtype", None) or torch.bfloat16
    if latent := getattr(own, "kv_lora_rank", None):  # MLA: one latent for all heads, and the part of K that turns
        attending = own.num_hidden_layers - len(find_state_layers(own))
        return int(attending * (latent + own.qk_rope_head_dim) * kind.itemsize)
    layers = own.num_hidden_layers - (getattr(own, "num_kv_shared_layers", 0) or 0)  # the others read theirs (Gemma 4)
    layers -= len(find_state_layers(own))
    each = list(getattr(own, "per_layer_config", None) or [own] * layers)[:layers]  # heads may differ by layer
    widths = (_kv_heads(one, layer) * (head_dim(one) + _value_dim(one)) for layer, one in enumerate(each))
    return sum(widths) * kind.itemsize


def _kv_heads(config: PreTrainedConfig, layer: int) -> int:
    heads = int(getattr(config, "num_key_value_heads", None) or config.num_attention_heads)
    if config.model_type == "mimo_v2_flash" and config.layer_types[layer] == "sliding_attention":
        return 2 * heads  # its class has it so, and no entry of the configuration says it
    return heads


def head_dim(config: PreTrainedConfig) -> int:
    """Dimensions of one attention head."""
    return int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)


def _value_dim(config: PreTrainedConfig) -> int:
    """Dimensions of one head's values, which are fewer than its keys' in MiMo-V2-Flash."""
    return int(getattr(config, "v_head_dim", None) or head_dim(config))


def tokens_to_outweigh_states(bytes_per_chunk: int, bytes_per_token: int) -> int:
    """From how many tokens on a chunk's KV takes as many bytes as the states of its layers, which have a fixed size."""
    return -(-bytes_per_chunk // bytes_per_token)


def gigabytes_per_1000_pages(bytes_per_token: float) -> float:
    """What KV of a thousand pages of `PAGE_TOKENS` tokens takes, in 10^9 bytes."""
    return bytes_per_token * PAGE_TOKENS * 1000 / 1e9


@dataclass(frozen=True)
class ModelDims:
    """The sizes that decide a decoder's FLOPs.

    A forward of n rows costs 2 x `linear` x n in each layer's matrices and 4 x `attention` per visible key and row in
    its attention (two products of heads x head_dim, a multiply and an add each); `windows` says how far back each layer
    sees, and nothing where all see everything. Of a layer's experts `linear` counts as many as a token goes to, and it
    counts no tables that are looked up. Where latents are cached (MLA), every forward makes K and V anew of those in
    front of it too, which costs 2 x `expansion` each.
    """

    layers: int
    linear: int
    attention: int
    lm_head: int
    expansion: int = 0
    windows: tuple[Window, ...] = ()

    @classmethod
    def of(cls, model: PreTrainedModel, windows: Sequence[Window] = ()) -> ModelDims:
        """Read from the model's own parameters and configuration, and the layers' windows where some have one."""
        config = model.config.get_text_config()
        head = model.get_output_embeddings()
        from ragcache.model.architecture import find_decoder
        from ragcache.model.linear_attention import find_state_layers

        decoder, used = find_decoder(model), _share_of_experts(config)
        tables = (module for module in decoder.modules() if isinstance(module, torch.nn.Embedding))
        outside = {id(p) for module in (model.get_input_embeddings(), *tables) for p in module.parameters()}
        outside |= {id(p) for p in head.parameters()} if head is not None else set()
        matrices = sum(
            _numbers(p) * (used if ".experts." in name else 1)
            for name, p in decoder.named_parameters()
            if p.ndim >= 2 and id(p) not in outside
        )
        configs = getattr(config, "per_layer_config", None) or [config]  # where layers differ, their mean
        width = sum(one.num_attention_heads * (head_dim(one) + _value_dim(one)) // 2 for one in configs) // len(configs)
        layers, expansion = int(config.num_hidden_layers), 0
        if latent := getattr(config, "kv_lora_rank", None):
            key, value, heads = config.qk_nope_head_dim, config.v_head_dim, config.num_attention_heads
            width = heads * (key + config.qk_rope_head_dim + value) // 2
            expansion = latent * heads * (key + value)
        attending = layers - len(find_state_layers(config))  # a state's own products are left out
        width, expansion = (one * attending // layers for one in (width, expansion))
        logits = config.vocab_size * config.hidden_size
        return cls(layers, int(matrices) // layers, width, logits, expansion, tuple(windows))

    def forward(self, slots: Tensor, layers: Sequence[int], *, logits: bool) -> float:
        """FLOPs of rows at `slots` through these layers, each seeing what lies in the layer's window."""
        from ragcache.model.plan import count_seen

        per_layer = 2.0 * self.linear * slots.numel()
        if self.expansion and slots.numel():
            per_layer += 2.0 * self.expansion * (int(slots[-1]) + 1 - slots.numel())
        windows = Counter(self.windows[layer] if self.windows else None for layer in layers)
        visible = sum(count * float(count_seen(slots, window).double().sum()) for window, count in windows.items())
        return len(layers) * per_layer + 4.0 * self.attention * visible + (2.0 * self.lm_head if logits else 0.0)


def _share_of_experts(config: PreTrainedConfig) -> Fraction:
    """Which share of a layer's experts a token goes to; all, where the configuration speaks of none."""
    part = getattr(config, "ffn_config", None) or config  # DBRX
    count, used = _first_of(part, _EXPERTS), _first_of(part, _EXPERTS_PER_TOKEN)
    return Fraction(used, count) if used and count else Fraction(1)


def _first_of(config: Any, names: Sequence[str]) -> int:
    """The first of these entries that a configuration has; 0 if it has none."""
    return next((int(value) for name in names if (value := getattr(config, name, None))), 0)


def _numbers(parameter: Tensor) -> int:
    """How many a parameter stands for: bitsandbytes packs two into a byte."""
    packed = getattr(parameter, "quant_state", None)
    return parameter.numel() if packed is None else prod(packed.shape)


@dataclass
class FlopCounter:
    """Adds up what one answer computed before its first token.

    Attributes
    ----------
    dims : ModelDims
        The primary model's.
    token_layers : float
        Distinct token-layers of selectable context tokens computed fresh.
    flops : float
        FLOPs of every forward.
    layer_passes : int
        Layers run, by however many rows: a layer's weights are read once for each.
    """

    dims: ModelDims
    token_layers: float = field(default=0.0, init=False)
    flops: float = field(default=0.0, init=False)
    layer_passes: int = field(default=0, init=False)

    def charge(self, slots: Tensor, layers: Sequence[int], *, selectable: int) -> None:
        """Enter rows at `slots` that went through these layers, `selectable` of them selectable context."""
        self.token_layers += selectable * len(layers)
        self.layer_passes += len(layers) if slots.numel() else 0
        self.flops += self.dims.forward(slots, layers, logits=False)

    def add_lm_head(self) -> None:
        """Enter the logits of one row."""
        self.flops += 2.0 * self.dims.lm_head
