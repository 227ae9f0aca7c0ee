"""What made a KV: one digest over weights, config, tokenizer, dtype and rotary layout."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
import xxhash

from ragcache.model.rope import RopeLayout

# Config entries that change between library releases or machines without changing what the model computes.
_VOLATILE = ("transformers_version", "_name_or_path", "_attn_implementation", "attn_implementation", "torch_dtype")


def fingerprint(model: Any, tokenizer: Any, layouts: Iterable[RopeLayout], weights: str) -> str:
    """SHA-256 over everything that decides what KV a model makes of given token ids.

    Parameters
    ----------
    model, tokenizer
        As loaded.
    layouts : iterable of RopeLayout
        What the probe found.
    weights : str
        From `weights_of_files` or `weights_in_memory`.
    """
    config = {name: value for name, value in model.config.to_dict().items() if name not in _VOLATILE}
    parts = {
        "weights": weights,
        "config": config,
        "tokenizer": _tokenizer_digest(tokenizer),
        "dtype": str(model.dtype),
        "rope": [repr(layout) for layout in layouts],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def weights_of_files(folder: Path) -> str:
    """SHA-256 over the weight files of a checkpoint, remembered by path, size and modification time."""
    memory = _memory_path()
    known: dict[str, str] = _read_json(memory)
    digests = []
    for file in sorted(folder.glob("*.safetensors")):
        status = file.stat()
        name = f"{file.resolve()}|{status.st_size}|{status.st_mtime_ns}"
        if name not in known:
            with file.open("rb") as stream:
                known[name] = hashlib.file_digest(stream, "sha256").hexdigest()
        digests.append(known[name])
    _write_json(memory, known)
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def weights_in_memory(model: torch.nn.Module) -> str:
    """xxh3-128 over every parameter and buffer of a model that no file stands for."""
    digest = xxhash.xxh3_128()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def _tokenizer_digest(tokenizer: Any) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    text = backend.to_str() if backend is not None else json.dumps(tokenizer.get_vocab(), sort_keys=True)
    return hashlib.sha256(f"{text}|{tokenizer.chat_template}".encode()).hexdigest()


def _memory_path() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ragcache" / "weights.json"


def _read_json(path: Path) -> dict[str, str]:
    try:
        known = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _write_json(path: Path, known: dict[str, str]) -> None:
    """Remember the digests; a home that cannot be written to only costs the next start its memory."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(known))
        temporary.replace(path)
    except OSError:
        return
