"""Low-rank adapters (LoRA, 2106.09685) in PEFT's files, added to a model's matrices once and for all."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"
PREFIX = "base_model.model."
_DOWN, _UP = ".lora_A.weight", ".lora_B.weight"


@torch.no_grad()
def merge_adapter(model: Any, folder: Path) -> None:
    """Add an adapter's products to a model's matrices: `weight += alpha / r * B A`.

    Parameters
    ----------
    model : PreTrainedModel
        The model that the adapter was trained on.
    folder : Path
        Holds `adapter_config.json` and `adapter_model.safetensors`, as PEFT writes them; one rank for all matrices.
    """
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    tensors = load_file(folder / WEIGHTS)
    scale = config["lora_alpha"] / config["r"]
    for name in (name for name in tensors if name.endswith(_DOWN)):
        module = name.removesuffix(_DOWN)
        weight = model.get_parameter(module.removeprefix(PREFIX) + ".weight")  # (out, in)
        product = tensors[module + _UP].float() @ tensors[name].float()  # (out, r) @ (r, in)
        weight += (scale * product).to(weight)
