"""The bundled reader's architecture and its initial weights."""

from collections.abc import Mapping

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

_LAYER = "model.layers."
_LOOK_BACK = {0: (1, 2, 3, 4), 1: (1, 2)}  # layer -> distances its first heads start by looking back


def new_reader(
    vocabulary: int, seed: int = 0, hidden: int = 192, layers: int = 8, inner: int = 512
) -> LlamaForCausalLM:
    """Return an untrained reader.

    Parameters
    ----------
    vocabulary : int
        Tokens.
    seed : int
        Of the weights.
    hidden, layers, inner : int
        Widths and depth.

    Returns
    -------
    LlamaForCausalLM
        fp32; the first heads of the first layers start as positional heads.
    """
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers,
        num_attention_heads=4, num_key_value_heads=2, head_dim=64, max_position_embeddings=4096,
        rope_parameters={"rope_type": "default", "rope_theta": 1e5}, tie_word_embeddings=True, attention_bias=True,
        pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    torch.manual_seed(seed)
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for name, p in model.named_parameters():
            _start(name, p, layers)
        for layer, distances in _LOOK_BACK.items():
            attention = model.model.layers[layer].self_attn
            _look_back(attention.q_proj.bias, attention.k_proj.bias, distances, config)
    return model


def _start(name: str, p: Tensor, layers: int) -> None:
    if p.ndim == 2 and "embed" not in name:
        p.normal_(0, p.shape[1] ** -0.5)
    if name.endswith("bias"):
        p.zero_()
    if name.endswith(("o_proj.weight", "down_proj.weight")):
        p.mul_((2 * layers) ** -0.5)


def _look_back(q: Tensor, k: Tensor, distances: tuple[int, ...], config: LlamaConfig) -> None:
    """Set biases so that head i scores highest `distances[i]` tokens back: sum of amp² cos(f (m - n - distance))."""
    dim = config.head_dim
    frequency = 1.0 / config.rope_parameters["rope_theta"] ** (torch.arange(0, dim, 2).float() / dim)
    amplitude = torch.where(torch.arange(dim // 2) < 10, 4.0, 0.0)
    queries, keys = q.view(-1, dim), k.view(-1, dim)
    share = queries.shape[0] // keys.shape[0]
    for head, distance in enumerate(distances):
        queries[head, : dim // 2] = amplitude * (frequency * distance).cos()
        queries[head, dim // 2 :] = -amplitude * (frequency * distance).sin()
        keys[head // share, : dim // 2] = amplitude


def shallower(state: Mapping[str, Tensor], layers: int, kept: int) -> dict[str, Tensor]:
    """Weights of a reader of `kept` layers, taken evenly from one of `layers`, the first and the last among them."""
    source = [round(i * (layers - 1) / max(1, kept - 1)) for i in range(kept)]
    out = {name: p for name, p in state.items() if not name.startswith(_LAYER)}
    for new, old in enumerate(source):
        prefix = f"{_LAYER}{old}."
        out |= {f"{_LAYER}{new}.{n.removeprefix(prefix)}": p for n, p in state.items() if n.startswith(prefix)}
    return out
