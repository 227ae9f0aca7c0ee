"""A reduced copy of a model: its architecture as its configuration has it, a few narrow layers, random weights.

What a model's attention computes depends on its class and configuration, not on its weights. So whether we compute the
same is asked of a copy that takes milliseconds, in fp32, whose windows are short enough for a short prompt to outgrow.
"""

import copy
from collections.abc import Hashable
from itertools import pairwise
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig

WINDOW = 12  # tokens that a sliding window, or a chunk, of a reduced copy holds
_MOST_LAYERS = 12
_MOST_WEIGHTS = 50_000_000
_SCALE = 0.12  # of random weights: larger than the usual 0.02, or attention is uniform and no mistake shows
_STRETCH = (0.5, 1.5)  # factors of scales and biases: while scales are all 1, those of rotated keys do not show
_SHIFT = 0.1  # of what is added to them: some are 0 as they are made, and stay so under any factor
_LOG_DECAY = (-4.0, -2.0)  # of random states: as they are made they forget within a few tokens, and no mistake shows
WINDOWS = ("sliding_window", "sliding_window_size", "window_size", "attention_window", "attention_chunk_size")
_DEPTHS = ("num_hidden_layers", "encoder_layers", "decoder_layers", "n_layer", "n_layers", "num_layers")
_HEADS = ("num_attention_heads", "encoder_attention_heads", "decoder_attention_heads", "n_head", "n_heads", "num_heads")
_KV_HEADS = ("num_key_value_heads", "num_kv_heads", "kv_n_heads", "num_global_key_value_heads")
#: Entries by what is left of them; one that is smaller stays as it is.
_MOST = {
    "hidden_size": 64, "n_embd": 64, "d_model": 64, "embedding_size": 64, "word_embed_proj_dim": 64,
    "intermediate_size": 96, "intermediate_size_mlp": 96, "ffn_dim": 96, "n_inner": 96, "ffn_hidden_size": 96,
    "d_ff": 96, "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32, "expert_ffn_hidden_size": 32, "moe_shared_expert_intermediate_size": 32,
    "shared_intermediate_size": 32, "head_dim": 16, "v_head_dim": 8, "global_head_dim": 32, "swa_head_dim": 16,
    "swa_v_head_dim": 8, "vocab_size": 512, "vocab_size_per_layer_input": 512, "hidden_size_per_layer_input": 16,
    "num_experts": 8, "n_routed_experts": 8, "num_local_experts": 8, "moe_num_experts": 8, "num_experts_per_tok": 2,
    "moe_topk": 2, "moe_k": 2, "top_k": 2, "num_experts_per_token": 2, "top_k_experts": 2, "n_shared_experts": 1,
    "num_shared_experts": 1, "moe_num_shared_experts": 1, "zero_expert_num": 2, "n_group": 2, "topk_group": 1,
    "first_k_dense_replace": 1, "num_dense_layers": 1, "moe_layer_start_index": 1, "kv_lora_rank": 16,
    "q_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "qk_head_dim": 16, "floor_scale": 128,
    "query_pre_attn_scalar": 16, "attn_logit_softcapping": 1, "linear_key_head_dim": 16, "linear_value_head_dim": 24,
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "mamba_chunk_size": 16,
}  # fmt: skip


def reduce_model(model: Any) -> Any:
    """A reduced copy of a model, of its own class; the same weights every time, on the CPU in fp32.

    Raises
    ------
    Exception
        Whatever the class raises for sizes that it does not take.
    """
    return build_reduced(reduce_config(model.config), type(model))


def longest_window(config: PreTrainedConfig) -> int:
    """The longest of the windows and chunks that a decoder's configuration speaks of; 0 where it speaks of none."""
    text = config.get_text_config()
    sizes = (getattr(text, name, None) for name in WINDOWS)
    return max((size for size in sizes if type(size) is int), default=0)


def build_reduced(config: PreTrainedConfig, kind: Any = AutoModelForCausalLM, seed: int = 0) -> Any:
    """A model of a reduced configuration with random weights.

    Raises
    ------
    ValueError
        If it would be large all the same: the configuration names its sizes in a way that is not known here.
    """
    build = kind.from_config if hasattr(kind, "from_config") else kind._from_config
    with torch.device("meta"):
        size = sum(one.numel() for one in build(copy.deepcopy(config)).parameters())
    if size > _MOST_WEIGHTS:
        raise ValueError(f"a reduced {config.model_type} has {size:,} weights")
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        model = build(copy.deepcopy(config), dtype=torch.float32)
        for name, parameter in model.named_parameters():
            if parameter.ndim >= 2:
                parameter.normal_(0, _SCALE)
            elif name.endswith("A_log"):
                parameter.uniform_(*_LOG_DECAY)
            elif not name.endswith("dt_bias"):  # as it is made it suits the decay
                stretch = torch.empty_like(parameter).uniform_(*_STRETCH)
                parameter.mul_(stretch).add_(torch.randn_like(parameter), alpha=_SHIFT)
    return model.eval()


def reduce_config(config: PreTrainedConfig) -> PreTrainedConfig:
    """The configuration of a reduced copy: few layers but one of each kind, narrow, with short windows.

    Parameters
    ----------
    config : PreTrainedConfig
        A decoder's, or one of several parts, whose text decoder is among them.
    """
    entries = config.to_dict()
    entries.pop("quantization_config", None)
    text = config.get_text_config()
    for name, part in entries.items():
        own = getattr(config, name, None) if isinstance(part, dict) else None
        if isinstance(own, PreTrainedConfig):
            (_reduce_text if own is text else _reduce_other)(part, own)
    if text is config:
        _reduce_text(entries, config)
    else:
        _reduce_tokens(entries, _MOST["vocab_size"])
    return type(config).from_dict(entries)


def _reduce_text(entries: dict[str, Any], config: PreTrainedConfig) -> None:
    """Reduce a decoder's entries in place."""
    depth = int(config.num_hidden_layers)
    kept = _representatives(entries, depth)
    for name in (name for name in _DEPTHS if name in entries):
        entries[name] = len(kept)
    if shared := entries.get("num_kv_shared_layers"):
        entries["num_kv_shared_layers"] = sum(layer >= depth - shared for layer in kept)
    for name, value in entries.items():
        entries[name] = _of_layers(value, depth, kept)
    _reduce_widths(entries)
    _reduce_heads(entries)
    _reduce_rope(entries)
    _reduce_tokens(entries, entries["vocab_size"])


def _representatives(entries: dict[str, Any], depth: int) -> list[int]:
    """Layers to keep: the first two of each kind, by everything that the configuration says of single layers."""
    shared = entries.get("num_kv_shared_layers") or 0
    kinds: dict[Hashable, list[int]] = {}
    for layer in range(depth):
        kind = (
            layer >= depth - shared,
            *(str(part) for value in entries.values() for part in _at(value, layer, depth)),
        )
        kinds.setdefault(kind, []).append(layer)
    kept = sorted(layer for layers in kinds.values() for layer in layers[:2])[:_MOST_LAYERS]
    spare = (layer for layer in range(depth) if layer not in kept)
    return sorted([*kept, *(layer for layer, _ in zip(spare, range(4 - len(kept)), strict=False))])


def _at(value: Any, layer: int, depth: int) -> list[Any]:
    """What an entry says of one layer; nothing where it speaks of all alike."""
    if _lists_layers(value, depth):
        return [layer in value]
    if isinstance(value, list | tuple) and len(value) == depth:
        return [value[layer]]
    return [value.get(_key(value, layer))] if _keyed_by_layer(value) else []


def _of_layers(value: Any, depth: int, kept: list[int]) -> Any:
    """An entry, of the layers that are kept."""
    if _lists_layers(value, depth):
        return [new for new, old in enumerate(kept) if old in value]
    if isinstance(value, list | tuple) and len(value) == depth:
        return [value[layer] for layer in kept]
    if _keyed_by_layer(value):
        return {str(new): value[key] for new, old in enumerate(kept) if (key := _key(value, old)) in value}
    return value


def _lists_layers(value: Any, depth: int) -> bool:
    """Whether it is a list of layers' numbers."""
    return (
        isinstance(value, list | tuple)
        and len(value) > 1
        and all(type(one) is int and 0 <= one < depth for one in value)
        and all(one < other for one, other in pairwise(value))
    )


def _keyed_by_layer(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and all(isinstance(v, dict) for v in value.values())
        and all(str(key).isdigit() for key in value)
    )


def _key(value: dict[Any, Any], layer: int) -> Any:
    return next((key for key in value if int(key) == layer), None)


def _reduce_widths(entries: dict[str, Any]) -> None:
    whole = dict(entries)
    for name, value in whole.items():
        if name in _MOST and type(value) in (int, float):
            entries[name] = type(value)(min(value, _MOST[name]))
        elif name in _MOST and isinstance(value, list | tuple):
            entries[name] = [min(one, _MOST[name]) for one in value]
        elif name == "head_dim" and value is None and "num_attention_heads" in whole:
            entries[name] = _MOST[name]  # some classes leave it open, and do not fill it in
        elif name in WINDOWS and type(value) is int and value > 0:
            entries[name] = min(value, WINDOW)
        elif _keyed_by_layer(value):
            for part in value.values():  # what is wider there than elsewhere stays so
                part |= {
                    one: min(size, _MOST[one] * (2 if size > (whole.get(one) or size) else 1))
                    for one, size in part.items()
                    if one in _MOST and type(size) is int
                }
    if whole.get("qk_rope_head_dim") is not None and whole.get("head_dim") == whole["qk_rope_head_dim"]:
        entries["head_dim"] = entries["qk_rope_head_dim"]  # of MLA, the part that turns


def _reduce_heads(entries: dict[str, Any]) -> None:
    """Four heads; as many of keys and values, two, or one, as there were."""
    heads = next((entries[name] for name in _HEADS if isinstance(entries.get(name), int)), 4)
    for name, value in entries.items():
        if name in _HEADS and isinstance(value, int):
            entries[name] = 4
        elif name in _KV_HEADS and isinstance(value, int):
            entries[name] = 4 if value == heads else min(value, 2)
        elif _keyed_by_layer(value):
            for part in value.values():
                _reduce_heads(part)


def _reduce_rope(entries: dict[str, Any]) -> None:
    """Lists with an entry for each rotated pair become shorter with the heads."""
    rope = entries.get("rope_parameters") or {}
    width = entries.get("head_dim") or 16
    for scheme in (rope, *(part for part in rope.values() if isinstance(part, dict))):
        pairs = int(width * (scheme.get("partial_rotary_factor") or 1)) // 2
        for name in ("short_factor", "long_factor"):
            if scheme.get(name):
                scheme[name] = list(scheme[name])[:pairs]
        if section := scheme.get("mrope_section"):
            shares = [max(1, one * pairs // sum(section)) for one in section]
            scheme["mrope_section"] = [*shares[:-1], pairs - sum(shares[:-1])]


def _reduce_tokens(entries: dict[str, Any], vocabulary: int) -> None:
    """Special tokens that a smaller vocabulary does not have become its last one."""
    for name, value in entries.items():
        if name.endswith(("_token_id", "_token_index", "_token_ids")):
            entries[name] = _within(value, vocabulary)


def _within(value: Any, vocabulary: int) -> Any:
    if isinstance(value, list | tuple):
        return [_within(one, vocabulary) for one in value]
    return min(value, vocabulary - 1) if isinstance(value, int) else value


def _reduce_other(entries: dict[str, Any], config: PreTrainedConfig) -> None:
    """Reduce the entries of a part that no text passes, such as a vision encoder."""
    for name, value in entries.items():
        if name in (*_DEPTHS, "depth") and type(value) is int:
            entries[name] = 1
        elif name.endswith("_indexes") and isinstance(value, list):
            entries[name] = [0]
        elif name in ("embed_dim", "out_hidden_size", "projection_dim", "output_dim"):
            entries[name] = 64
        else:
            part = getattr(config, name, None) if isinstance(value, dict) else None
            if isinstance(part, PreTrainedConfig):
                _reduce_other(value, part)
    _reduce_widths(entries)
    _reduce_heads(entries)
