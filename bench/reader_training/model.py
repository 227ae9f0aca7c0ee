"""The bundled reader's architecture and its initial weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

HEAD_DIM = 64
_LAYER = "model.layers."
_LOOK_BACK = {0: (1, 2, 3, 4), 1: (1, 2)}  # layer -> distances its first heads start by looking back


@dataclass(frozen=True)
class Shape:
    """What a reader is built like.

    Attributes
    ----------
    hidden, layers, inner : int
        Widths and depth.
    heads, kv_heads : int
        Query heads, and the keys and values they share; as many of both is multi-head attention.
    theta : float
        Base of the rotary positions.
    qk_norm : bool
        Queries and keys are normalised, as in Qwen3; else they have biases, and some heads start out looking back.
    """

    hidden: int = 192
    layers: int = 8
    inner: int = 512
    heads: int = 4
    kv_heads: int = 2
    theta: float = 1e5
    qk_norm: bool = False

    def config(self, vocabulary: int) -> LlamaConfig | Qwen3Config:
        """As `transformers` takes it."""
        shared: dict[str, Any] = {
            "vocab_size": vocabulary, "hidden_size": self.hidden, "intermediate_size": self.inner,
            "num_hidden_layers": self.layers, "num_attention_heads": self.heads, "num_key_value_heads": self.kv_heads,
            "head_dim": HEAD_DIM, "max_position_embeddings": 4096, "tie_word_embeddings": True,
            "rope_parameters": {"rope_type": "default", "rope_theta": self.theta},
            "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        }  # fmt: skip
        return Qwen3Config(**shared) if self.qk_norm else LlamaConfig(**shared, attention_bias=True)


SHAPES: dict[str, Shape] = {
    "base": Shape(),
    "heads": Shape(layers=10, inner=384, kv_heads=4, theta=1e4),
    "qwen3": Shape(hidden=224, layers=7, inner=576, heads=6, theta=1e6, qk_norm=True),
    "deep": Shape(hidden=160, layers=14, inner=416, heads=5, kv_heads=1, theta=5e5),
    "large": Shape(hidden=256, layers=10, inner=704),
}
"""Shapes by name; `base` is the first reader's."""


def new_reader(
    vocabulary: int, seed: int = 0, shape: Shape = SHAPES["base"], words: Tensor | None = None
) -> PreTrainedModel:
    """Return an untrained reader.

    Parameters
    ----------
    vocabulary : int
        Tokens.
    seed : int
        Of the weights.
    shape : Shape
        What it is built like.
    words : Tensor, optional
        What the vectors of its last tokens start as, (tokens, hidden); see `project_words`.

    Returns
    -------
    PreTrainedModel
        fp32; where queries and keys have biases, the first heads of the first layers start as positional heads.
    """
    config = shape.config(vocabulary)
    torch.manual_seed(seed)
    model = Qwen3ForCausalLM(config) if shape.qk_norm else LlamaForCausalLM(config)
    with torch.no_grad():
        for name, p in model.named_parameters():
            _start(name, p, shape.layers)
        if words is not None:
            model.get_input_embeddings().weight[-len(words) :] = words
        for layer, distances in _LOOK_BACK.items() if not shape.qk_norm else ():
            attention = model.model.layers[layer].self_attn
            _look_back(attention.q_proj.bias, attention.k_proj.bias, distances[: shape.heads], config)
    return model


def project_words(vectors: Tensor, hidden: int, spread: float = 0.06) -> Tensor:
    """Another model's token vectors in fewer dimensions: their principal components, each with the same spread.

    What words mean in general comes with them, which a few million tokens of invented notes cannot teach. As they are,
    one component is three times as large as any other, and all tokens look alike; made equal, words keep their
    neighbours. They are also what the last state is compared with: much shorter ones could not tell tokens apart.

    Parameters
    ----------
    vectors : Tensor, (tokens, width)
        Rows of its embedding.
    hidden : int
        Dimensions to keep.
    spread : float
        Standard deviation of the outcome.

    Returns
    -------
    Tensor, (tokens, hidden)
    """
    components, _, _ = torch.linalg.svd(vectors - vectors.mean(0), full_matrices=False)
    found: Tensor = components[:, :hidden]
    return found * (spread / found.std())


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
