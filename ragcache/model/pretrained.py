"""Checkpoints through transformers, and in one sentence why one cannot be loaded."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from ragcache.errors import InvalidArgument, MissingExtra
from ragcache.model.checkpoint import check_device, check_dtype, check_model
from ragcache.model.hub import explain_loading

if TYPE_CHECKING:
    from ragcache.model.adapter import Adapter

#: What reads a kind of quantised weights, where the package is not called as the kind is.
_PACKAGES = {
    "awq": "gptqmodel accelerate",
    "bitsandbytes": "bitsandbytes accelerate",
    "gptq": "optimum gptqmodel accelerate",
    "quanto": "optimum-quanto accelerate",
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
    """
    from transformers import AutoTokenizer

    check_dtype(dtype)
    check_model(name)
    device = _present(device)
    # from_pretrained(dtype=…) keeps the rotary buffers in fp32; model.to(dtype) would not.
    kind = dtype if dtype == "auto" else getattr(torch, dtype)
    with _explained(name, revision):
        tokenizer = AutoTokenizer.from_pretrained(name, revision=revision, trust_remote_code=False)
        model = _auto_class(name, revision).from_pretrained(
            name, dtype=kind, revision=revision, use_safetensors=True, trust_remote_code=False
        )
    if adapter:
        adapter.merge_into(model, name)
    return model.to(device), tokenizer


def _auto_class(name: str, revision: str | None) -> Any:
    """What loads a checkpoint: one that reads images too is loaded whole, and reads text alone."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
    )

    kind = AutoConfig.from_pretrained(name, revision=revision, trust_remote_code=False).model_type
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
                f"installed; run `pip install {_PACKAGES.get(kind, kind)}`, or name another model with --model"
            ) from error
        if not kind and not isinstance(error, ImportError):
            raise
        kept = MissingExtra if isinstance(error, ImportError) else InvalidArgument
        raise kept(
            f"cannot load the model {name!r}: {explain_loading(error)} Name another model with --model"
        ) from error
    except (OSError, ValueError, KeyError) as error:
        raise InvalidArgument(
            f"cannot load the model {name!r}: {explain_loading(error)} Name a hub id or a folder with --model; "
            "`ragcache doctor` checks it"
        ) from error


def _quantization(name: str, revision: str | None) -> str:
    """How a checkpoint is quantised; nothing where it is not."""
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(name, revision=revision, trust_remote_code=False).to_dict()
    except (OSError, ValueError, KeyError):
        return ""
    return str((config.get("quantization_config") or {}).get("quant_method", ""))
