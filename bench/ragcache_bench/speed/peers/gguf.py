"""A transformers model as a GGUF file, which llama.cpp reads."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ragcache.errors import UnsupportedModel
from ragcache.retrieve.needs import needs

Precision = Literal["f32", "bf16", "q8_0"]
_ARCHITECTURES = ("qwen2", "qwen3")  # llama's would need their query and key rows reordered


def write_gguf(model: torch.nn.Module, path: Path, precision: Precision) -> None:
    """Write weights and sizes; token ids go in and out, so the vocabulary is a number only.

    Parameters
    ----------
    model : torch.nn.Module
        A causal LM of transformers.
    path : Path
        File to write.
    precision : str
        Of the matrices; norms and biases are f32.

    Raises
    ------
    UnsupportedModel
        If the architecture is none of those whose weights lie in GGUF as they are.
    MissingExtra
        If `gguf` is not installed.
    """
    with needs("peers"):
        import gguf
    config: Any = model.config
    if config.model_type not in _ARCHITECTURES:
        raise UnsupportedModel(
            f"a {config.model_type} model cannot be written as GGUF here, only {', '.join(_ARCHITECTURES)}; "
            "compare with llama.cpp on one of these shapes"
        )
    writer = gguf.GGUFWriter(str(path), config.model_type)
    _describe(writer, config)
    kind = "ALL_F32" if precision == "f32" else f"MOSTLY_{precision.upper()}"
    writer.add_file_type(gguf.LlamaFileType[kind])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[config.model_type.upper()], config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue  # llama.cpp takes the embedding's
        data, stored = _stored(tensor, precision if tensor.ndim > 1 else "f32", gguf)
        writer.add_tensor(_renamed(name, names), data, raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _describe(writer: Any, config: Any) -> None:
    heads = config.num_attention_heads
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    writer.add_key_length(size)
    writer.add_value_length(size)
    writer.add_rope_freq_base(float(config.rope_parameters["rope_theta"]))
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("none")
    writer.add_quantization_version(2)


def _stored(tensor: Tensor, precision: Precision, gguf: Any) -> tuple[NDArray[Any], Any]:
    """A tensor's bytes as GGUF lays them out, and their type."""
    if precision == "bf16":
        raw = tensor.detach().cpu().to(torch.bfloat16).contiguous().view(torch.uint8)  # (rows, 2 * columns)
        return raw.numpy(), gguf.GGMLQuantizationType.BF16
    values = tensor.detach().cpu().float().numpy()
    if precision == "q8_0":
        kind = gguf.GGMLQuantizationType.Q8_0
        return gguf.quants.quantize(values, kind), kind
    return np.ascontiguousarray(values), gguf.GGMLQuantizationType.F32


def _renamed(name: str, names: Any) -> str:
    base, _, kind = name.rpartition(".")
    return f"{names.get_name(base)}.{kind}"
