"""Checkpoints through transformers, and in one sentence why one cannot be loaded."""

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from ragcache.errors import InvalidArgument, MissingExtra
from ragcache.model.checkpoint import TOKENIZERS, check_device, check_dtype, check_model, gguf_file
from ragcache.model.hub import explain_loading
from ragcache.model.memory import SMALLER_MODEL, explain_out_of_memory

if TYPE_CHECKING:
    from ragcache.model.adapter import Adapter

#: What reads a kind of quantised weights, where the package is not called as the kind is.
_PACKAGES = {
    "awq": "gptqmodel accelerate",
    "bitsandbytes": "bitsandbytes accelerate",
    "gptq": "optimum gptqmodel accelerate",
    "quanto": "optimum-quanto accelerate",
    "torchao": "torchao accelerate",
}


def load_pretrained(
    name: str, *, dtype: str, device: str | None, revision: str | None, adapter: "Adapter | None" = None
) -> tuple[Any, Any]:
    """Load a model, on its device, and its tokenizer.

    Parameters
    ----------
    name, dtype, device, revision
        As in `Reader.load`.
    adapter : Adapter, optional
        Merged into the weights, before they go to the device.

    Raises
    ------
    InvalidArgument
        If there is no such model, dtype or device.
    UnusableAdapter
        If the adapter does not fit the model.
    MissingExtra
        If a package is not installed that the model needs, as quantised ones do.
    OutOfMemory
        If the device has no room for it.
    """
    from transformers import AutoTokenizer

    check_dtype(dtype)
    check_model(name)
    device = _present(device)
    # from_pretrained(dtype=…) keeps the rotary buffers in fp32; model.to(dtype) would not.
    kind = dtype if dtype == "auto" else getattr(torch, dtype)
    source = _source(name, revision)
    with _explained(name, revision):
        tokenizer = AutoTokenizer.from_pretrained(**_tokenizer_source(name, source))
        model = auto_class(load_config(name, revision)).from_pretrained(**source, dtype=kind, use_safetensors=True)
    if "gguf_file" in source:  # whose name stands there, while its tensors are ordinary ones now
        model.config.__dict__.pop("quantization_config", None)
    if adapter:
        adapter.merge_into(model, name)
    size = sum(weight.nbytes for weight in model.parameters()) / 2**30
    with explain_out_of_memory(torch.device(device), f"{name!r}, {size:.1f} GiB of weights", SMALLER_MODEL):
        return model.to(device), tokenizer


def _source(name: str, revision: str | None) -> dict[str, Any]:
    """Where transformers finds a checkpoint; a model's own code is never run."""
    file = gguf_file(name)
    place = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name} if file else {
        "pretrained_model_name_or_path": name, "revision": revision
    }  # fmt: skip
    return {**place, "trust_remote_code": False}


def _tokenizer_source(name: str, source: Mapping[str, Any]) -> dict[str, Any]:
    """The same for its tokenizer: that beside a GGUF file, if there is one, is nearer to the model's than its own."""
    file = gguf_file(name)
    beside = file is not None and any((file.parent / one).is_file() for one in TOKENIZERS)
    return {key: value for key, value in source.items() if not (beside and key == "gguf_file")}


def load_config(name: str, revision: str | None = None) -> Any:
    """A checkpoint's configuration, and nothing else of it.

    Raises
    ------
    InvalidArgument
        If there is none of that name.
    """
    from transformers import AutoConfig

    with _explained(name, revision):
        return AutoConfig.from_pretrained(**_source(name, revision))


def auto_class(config: Any) -> Any:
    """What loads a checkpoint: one that reads images too is loaded whole, and reads text alone."""
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
    )

    kind = config.model_type
    visual = kind in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES and kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return AutoModelForImageTextToText if visual else AutoModelForCausalLM


def _present(device: str | None) -> str:
    """The device to load onto, if this machine has it."""
    check_device(device)
    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InvalidArgument(
            f"this machine has no device {device!r} that torch can use ({explain_loading(error)}); leave --device out, "
            "or name another, such as cpu"
        ) from error
    return device


@contextmanager
def _explained(name: str, revision: str | None) -> Iterator[None]:
    try:
        yield
    except (ImportError, RuntimeError) as error:
        kind = _quantization(name, revision)
        if isinstance(error, ImportError) and kind:
            raise MissingExtra(
                f"cannot load the model {name!r}: it is quantised by {kind}, and a package that reads it is not "
                f"installed; run `pip install {packages_for(kind)}`, or name another model with --model"
            ) from error
        if not kind and not isinstance(error, ImportError):
            raise
        kept = MissingExtra if isinstance(error, ImportError) else InvalidArgument
        raise kept(
            f"cannot load the model {name!r}: {explain_loading(error)} Name another model with --model"
        ) from error
    except (OSError, ValueError, KeyError, struct.error) as error:  # the last of a GGUF file that is cut short
        raise InvalidArgument(
            f"cannot load the model {name!r}: {explain_loading(error)} Name a hub id or a folder with --model; "
            "`ragcache doctor` checks it"
        ) from error


def quantization(config: Any) -> str:
    """How a checkpoint is quantised, by its configuration; nothing where it is not."""
    return str((config.to_dict().get("quantization_config") or {}).get("quant_method", ""))


def packages_for(kind: str) -> str:
    """What `pip install` needs to be told for weights of a kind of quantisation."""
    return _PACKAGES.get(kind, kind)


def _quantization(name: str, revision: str | None) -> str:
    from transformers import AutoConfig

    try:
        return quantization(AutoConfig.from_pretrained(**_source(name, revision)))
    except (OSError, ValueError, KeyError):
        return ""
