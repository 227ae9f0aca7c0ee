"""The compatibility check: a model whose KV cannot be moved is refused by name, with the reason."""

from shlex import quote
from typing import Any

import torch
from torch import Tensor

from ragcache.errors import UnsupportedModel
from ragcache.model.linear_attention import STATE_KINDS, find_state_layers

_PLAIN_LAYERS = {"full_attention", "sliding_attention", "chunked_attention"}
_ORDINARY, _RESERVED = "the house", (5, 7)


def check_config(model: Any) -> None:
    """Refuse what the configuration already rules out.

    Raises
    ------
    UnsupportedModel
        For encoder-decoders, attention behind an indexer, recurrent layers, several streams of hidden states,
        bidirectional attention, and layers on several devices.
    """
    config = model.config.get_text_config()
    places = sorted({_place(one) for one in (getattr(model, "hf_device_map", None) or {}).values()})
    if len(places) > 1:
        _refuse(
            f"it is spread over {', '.join(places)}, and a prompt's KV stands on one device; load it onto one by "
            f"device_map={{'': '{places[-1]}'}}, or name a smaller one or a quantised one with --model"
        )
    if getattr(model.config, "is_encoder_decoder", False):
        _refuse("it is an encoder-decoder; ragcache serves decoders")
    if getattr(config, "index_topk", None):
        _refuse("an indexer chooses what its attention sees (DSA), whose own keys would have to be kept beside K and V")
    kinds = set(getattr(config, "layer_types", None) or ()) - _PLAIN_LAYERS - STATE_KINDS
    if kinds:
        _refuse(f"it has {', '.join(sorted(kinds))} layers, whose state is not a KV of the chunk's own tokens")
    if len(find_state_layers(config)) == config.num_hidden_layers:
        _refuse("none of its layers has keys and values")
    if getattr(config, "num_kv_shared_layers", 0) == config.num_hidden_layers:
        _refuse("all of its layers read the keys and values of another model")
    if getattr(config, "altup_num_inputs", 0):
        _refuse("several streams of hidden states pass through its layers (AltUp)")
    if getattr(config, "use_bidirectional_attention", None):
        _refuse("its attention is not causal")


def _place(device: Any) -> str:
    return f"cuda:{device}" if isinstance(device, int) else str(device)


def rotary_frequencies(model: Any) -> list[Tensor]:
    """The distinct inverse frequencies of the model's rotary modules, each (pairs,) fp32.

    There may be none where layers carry a state, which tells what came first: nothing is to be moved then.

    Raises
    ------
    UnsupportedModel
        If there are none: positions are learned, ALiBi or computed inside the layers.
    """
    found: dict[tuple[float, ...], Tensor] = {}
    for name, buffer in model.named_buffers():
        leaf = name.rpartition(".")[2]
        if leaf.endswith("inv_freq") and buffer.ndim == 1:  # dynamic NTK's `original` ones too: a long prompt moves it
            found[tuple(buffer.double().tolist())] = buffer.detach()
    if not found and not find_state_layers(model.config.get_text_config()):
        _refuse("it has no rotary position embedding; learned positions and ALiBi cannot be moved")
    return list(found.values())


def length_limit(model: Any) -> int:
    """Most positions that a prompt and its answer may take, the rotary scheme's own switch-over included."""
    config = model.config.get_text_config()
    limit = int(getattr(config, "max_position_embeddings", 0) or 2**31 - 1)
    rope = getattr(config, "rope_parameters", None) or {}
    schemes = [rope, *(value for value in rope.values() if isinstance(value, dict))]
    for scheme in schemes:
        # longrope changes every frequency once a forward crosses the original length, dynamic NTK at the maximum; from
        # there on Ministral 3 scales its queries by their position.
        if scheme.get("rope_type") == "longrope" or scheme.get("llama_4_scaling_beta"):
            original = scheme.get("original_max_position_embeddings") or getattr(
                config, "original_max_position_embeddings", None
            )
            limit = min(limit, int(original or limit))
    if getattr(config, "attn_temperature_tuning", False):  # Llama 4, which counts positions by its cache's length
        limit = min(limit, int(config.floor_scale) - 1)
    return limit


def probe_tokens(model: Any, tokenizer: Any) -> tuple[int, int]:
    """Two tokens of ordinary text: reserved ones are hardly trained, and rounding may drown what they say."""
    ids = list(dict.fromkeys(tokenizer(_ORDINARY, add_special_tokens=False)["input_ids"]))[:2]
    known = len(ids) == 2 and max(ids) < model.get_input_embeddings().num_embeddings
    return (ids[0], ids[1]) if known else _RESERVED


def tolerance(dtype: torch.dtype) -> float:
    """Relative error allowed for moved keys; measured: right layouts 5e-5 (fp32) and 2e-2 (bf16), wrong ones .24."""
    return 2e-3 if dtype in (torch.float32, torch.float64) else 6e-2


def logit_tolerance(dtype: torch.dtype) -> float:
    """Error allowed for logits, of the largest one's size; measured: 2e-5 (fp32), 2e-2 (bf16)."""
    return 1e-4 if dtype in (torch.float32, torch.float64) else 6e-2


def refusal(model: Any, reason: str, name: str) -> UnsupportedModel:
    """What is raised for a model whose KV cannot be moved: why, and the command by which it answers all the same."""
    return UnsupportedModel(
        f"{name} ({type(model).__name__}) cannot reuse chunk KV: {reason}",
        "To have it answer by full prefill, without reuse, run "
        f"`ragcache ingest PATH… --model {quote(name)} --method full --index DIR` into a new index",
    )


def _refuse(reason: str) -> None:
    raise UnsupportedModel(reason)
