"""A model made ready for training: LoRA's matrices, or all weights."""

from typing import Any

import torch
from peft import LoraConfig, get_peft_model

from ragcache.errors import InvalidArgument
from ragcache.model.loading import SMOLLM2, load_reader
from ragcache.model.reader import Reader
from ragcache_finetune import attention
from ragcache_finetune.links import NAME, add_links
from ragcache_finetune.recipes import Recipe
from ragcache_finetune.settings import Settings

_ORIGINS = {SMOLLM2: "HuggingFaceTB/SmolLM2-135M-Instruct"}
"""What the adapter's files call a model that has another name here."""


def load_base(settings: Settings) -> Reader:
    """The model to train, compatibility checked, with attention that takes any mask.

    Raises
    ------
    InvalidArgument
        If there is no such model, its layers see a window only, or pass a state from token to token.
    UnsupportedModel
        If its KV cannot be moved.
    """
    reader = load_reader(settings.model, dtype=_dtype(settings))
    windowed = getattr(reader.model.config.get_text_config(), "sliding_window", None)
    if windowed and getattr(reader.model.config.get_text_config(), "use_sliding_window", True):
        raise InvalidArgument(
            f"the model {settings.model!r} has layers that see the last {windowed} tokens only, and training with a "
            "mask of chunks knows no windows; name a model without sliding windows with --model"
        )
    others = sorted({*(getattr(reader.model.config.get_text_config(), "layer_types", None) or ())} - {"full_attention"})
    if reader.states or others:
        raise InvalidArgument(
            f"the model {settings.model!r} has layers of another kind than full attention "
            f"({', '.join(others) or 'a state passes from token to token'}), and a mask of chunks does not reach them; "
            "name a model of full attention with --model"
        )
    # With a mask and gradients, the fused kernels of a CPU fall back to something slower than plain products.
    reader.model.set_attn_implementation(attention.NAME if reader.device.type == "cpu" else "sdpa")
    reader.model.config.use_cache = False
    return reader


def computing_dtype(settings: Settings) -> torch.dtype:
    """What activations are; the weights' own type too, but where all weights are trained."""
    if settings.dtype != "auto":
        return getattr(torch, settings.dtype)  # type: ignore[no-any-return]
    return torch.bfloat16 if _multiplies_bfloat16() else torch.float32


def make_trainable(model: Any, settings: Settings, recipe: Recipe, documents: int) -> Any:
    """Add what is trained; the same seed begins with the same matrices.

    Parameters
    ----------
    model : PreTrainedModel
        From `load_base`.
    settings : Settings
        Rank, seed, and whether all weights are trained.
    recipe : Recipe
        With its link tokens.
    documents : int
        Documents that have link tokens of their own.
    """
    torch.manual_seed(settings.seed)
    if settings.gradient_checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if recipe.links:
        add_links(model, documents, recipe.links)
    if settings.full_weights:
        return model
    model.name_or_path = _ORIGINS.get(settings.base, settings.base)  # PEFT writes it down
    config = LoraConfig(
        r=settings.rank, lora_alpha=2 * settings.rank, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    made = get_peft_model(model, config)  # which freezes everything else
    if recipe.links:
        getattr(model, NAME).requires_grad_(True)
    return made


def _dtype(settings: Settings) -> str:
    """Of the weights: what is trained as a whole is kept in fp32, or its steps would be rounded away."""
    return "float32" if settings.full_weights else str(computing_dtype(settings)).removeprefix("torch.")


def _multiplies_bfloat16() -> bool:
    """Whether bfloat16 is faster here than float32; a CPU that only converts it is slower."""
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported())
    checks = (getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    return any(check() for check in checks if check)
