"""What made a KV: one digest over weights, config, tokenizer, dtype and rotary layout."""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict
from typing import Any

import torch
import xxhash

from ragcache.model.rope import RopeLayout

# Config entries that change between library releases or machines without changing what the model computes.
_VOLATILE = ("transformers_version", "_name_or_path", "_attn_implementation", "attn_implementation", "torch_dtype")


def fingerprint(
    model: Any, tokenizer: Any, layouts: Iterable[RopeLayout], weights: str, *, ignored: Collection[str] = ()
) -> str:
    """SHA-256 over everything that decides what KV a model makes of given token ids; see `describe_model`."""
    parts = describe_model(model, tokenizer, layouts, weights, ignored=ignored)
    spelled = {**parts, "rope": [repr(RopeLayout(**layout)) for layout in parts["rope"]]}
    return hashlib.sha256(json.dumps(spelled, sort_keys=True, default=str).encode()).hexdigest()


def describe_model(
    model: Any, tokenizer: Any, layouts: Iterable[RopeLayout], weights: str, *, ignored: Collection[str] = ()
) -> dict[str, Any]:
    """Everything that decides what KV a model makes of given token ids: weights, config, tokenizer, dtype and rope.

    Parameters
    ----------
    model, tokenizer
        As loaded.
    layouts : iterable of RopeLayout
        What the probe found.
    weights : str
        From `ragcache.model.weight_files.weights_of_files` or `weights_in_memory`.
    ignored : collection of str
        Further entries of the configuration that play no part.

    Returns
    -------
    dict
        `weights`, `config`, `tokenizer`, `dtype`, and the fields of every layer's `RopeLayout` as `rope`.
    """
    left_out = {*_VOLATILE, *ignored}
    return {
        "weights": weights,
        "config": {name: value for name, value in model.config.to_dict().items() if name not in left_out},
        "tokenizer": digest_tokenizer(tokenizer),
        "dtype": str(model.dtype),
        "rope": [asdict(layout) for layout in layouts],
    }


def weights_in_memory(model: torch.nn.Module) -> str:
    """xxh3-128 over every parameter and buffer of a model that no file stands for."""
    digest = xxhash.xxh3_128()
    for name, tensor in sorted(model.state_dict().items()):
        for part, plain in _plain_parts(name, tensor.detach()):
            digest.update(part.encode())
            digest.update(plain.cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def _plain_parts(name: str, tensor: Any) -> Iterator[tuple[str, Any]]:
    """A tensor by its name; of one that is quantised (torchao) its integers and scales."""
    if not hasattr(tensor, "__tensor_flatten__"):
        yield name, tensor
        return
    names, settings = tensor.__tensor_flatten__()
    for part in names:
        yield from _plain_parts(f"{name}.{part}:{type(tensor).__name__}{settings}", getattr(tensor, part))


def digest_tokenizer(tokenizer: Any) -> str:
    """SHA-256 over a tokenizer and its chat template."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    text = backend.to_str() if backend is not None else json.dumps(tokenizer.get_vocab(), sort_keys=True)
    return hashlib.sha256(f"{text}|{tokenizer.chat_template}".encode()).hexdigest()
