"""Readers on disk: a model's folder, or an adapter of the tuned SmolLM2."""

from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from ragcache import bundled
from ragcache.model import smollm2
from ragcache.model.adapter import merge_adapter
from ragcache.model.adapter_config import CONFIG


def load_reader(folder: Path) -> tuple[AutoModelForCausalLM, AutoTokenizer]:
    """A model in bf16, and its tokenizer; of an adapter's folder, the tuned SmolLM2 with it."""
    adapted = (folder / CONFIG).exists()
    base = smollm2.prepare_checkpoint(bundled.adapter_path()) if adapted else folder
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.bfloat16)
    if adapted:
        merge_adapter(model, folder)
    return model, AutoTokenizer.from_pretrained(base)
