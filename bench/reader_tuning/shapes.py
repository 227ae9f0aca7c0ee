"""Readers of other shapes, made of one trained model: it knows words, which no small model learns here in hours.

A change of shape costs a model some of what it knew; tuning afterwards brings it back. The weights keep a common
origin, so these readers are less unlike than their shapes.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

_LAYER = "model.layers."


@dataclass(frozen=True)
class Shape:
    """What is changed; nothing, where a field is left alone.

    Attributes
    ----------
    layers : tuple of range
        Which of the model's layers remain, in this order; some may come twice.
    multi_head : bool
        Every query head gets keys and values of its own, which begin as copies of those it shared.
    theta : float, optional
        Base of the rotary positions.
    qk_norm : bool
        Queries and keys are normalised and scaled back to their mean size, as in Qwen3 (2505.09388).
    """

    layers: tuple[range, ...] = ()
    multi_head: bool = False
    theta: float | None = None
    qk_norm: bool = False


SHAPES: dict[str, Shape] = {
    "same": Shape(),
    "heads": Shape(multi_head=True),
    "rope": Shape(theta=1e4),
    "qwen3": Shape(qk_norm=True),
    "shallow": Shape(layers=(range(10), range(11, 14), range(15, 26), range(27, 30))),
    "deep": Shape(layers=(range(20), range(10, 30))),
}
"""Shapes of a model of 30 layers, by name. `shallow` lacks three that seemed to be missed least, by the loss of five
contexts; layers of the middle repeated make a deeper model (2312.15166)."""


def reshape(model: LlamaForCausalLM, shape: Shape, sample: Sequence[Tensor]) -> PreTrainedModel:
    """Make a model of another shape.

    Parameters
    ----------
    model : LlamaForCausalLM
        Left as it is.
    shape : Shape
        What is changed.
    sample : sequence of Tensor
        Token ids, (1, T) each, by which the size of queries and keys is measured.

    Returns
    -------
    PreTrainedModel
        A Llama, or a Qwen3, of the same dtype.
    """
    if shape == Shape():  # of whatever class: a reader in any shape is tuned further in the same
        return deepcopy(model)
    state = {name: weight.detach().clone() for name, weight in model.state_dict().items()}
    settings = model.config.to_dict()
    if shape.qk_norm:
        state |= _norms(model, sample)
    if shape.multi_head:
        state = dict(_own_keys(state, model.config))
        settings["num_key_value_heads"] = model.config.num_attention_heads
    if shape.theta:
        settings["rope_parameters"] = {"rope_type": "default", "rope_theta": shape.theta}
    if shape.layers:
        kept = [layer for part in shape.layers for layer in part]
        state = dict(_layers(state, kept))
        settings["num_hidden_layers"] = len(kept)
    made = _empty(settings, shape.qk_norm).to(model.dtype)
    made.load_state_dict(state)
    made.tie_weights()
    return made


def _empty(settings: Mapping[str, Any], qk_norm: bool) -> PreTrainedModel:
    if not qk_norm:
        return LlamaForCausalLM(LlamaConfig.from_dict(dict(settings)))
    others = ("model_type", "architectures", "pretraining_tp", "mlp_bias")
    config = Qwen3Config(**{name: value for name, value in settings.items() if name not in others})
    return Qwen3ForCausalLM(config)


def _layers(state: Mapping[str, Tensor], kept: Sequence[int]) -> Iterable[tuple[str, Tensor]]:
    for name, weight in state.items():
        if not name.startswith(_LAYER):
            yield name, weight
            continue
        number, _, rest = name.removeprefix(_LAYER).partition(".")
        for place, layer in enumerate(kept):
            if int(number) == layer:
                yield f"{_LAYER}{place}.{rest}", weight.clone()


def _own_keys(state: Mapping[str, Tensor], config: LlamaConfig) -> Iterable[tuple[str, Tensor]]:
    share = config.num_attention_heads // config.num_key_value_heads
    for name, weight in state.items():
        if ".k_proj." in name or ".v_proj." in name:  # (KV D, hidden), or (KV D,) of a bias
            heads = weight.view(config.num_key_value_heads, config.head_dim, *weight.shape[1:])
            yield name, heads.repeat_interleave(share, 0).flatten(0, 1)
        else:
            yield name, weight


@torch.inference_mode()
def _norms(model: LlamaForCausalLM, sample: Sequence[Tensor]) -> dict[str, Tensor]:
    """Gains of the norms, (D,) each: the root of the mean square that queries or keys of a layer had."""
    squares: dict[str, list[Tensor]] = {}

    def measure(name: str) -> Any:
        return lambda _module, _inputs, out: squares.setdefault(name, []).append(out.float().square().mean())

    modules = [(name, one) for name, one in model.named_modules() if name.endswith(("q_proj", "k_proj"))]
    hooks = [module.register_forward_hook(measure(name)) for name, module in modules]
    for ids in sample:
        model(ids)
    for hook in hooks:
        hook.remove()
    width = model.config.head_dim
    return {
        name.replace("_proj", "_norm") + ".weight": torch.full((width,), torch.stack(found).mean().sqrt().item())
        for name, found in squares.items()
    }
