"""Checkpoints that read images too are used for text: the language model's layers, positions and KV alone."""

from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import byte_tokenizer
from transformers import AutoConfig, AutoModelForImageTextToText

from ragcache.model.plan import ForwardPlan, Positions, Slots
from ragcache.model.reader import Reader
from ragcache.model.reduced import build_reduced, reduce_config

MROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [16, 24, 24]}}
KINDS: dict[str, dict[str, Any]] = {
    "qwen2_5_vl": {"text_config": MROPE},
    "mistral3": {},
    "qwen3_vl": {},
    "kimi_k25": {},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_with_a_vision_encoder_reads_text_as_it_does_in_transformers(kind: str, tmp_path: Path) -> None:
    config = reduce_config(AutoConfig.for_model(kind, **KINDS[kind]))
    build_reduced(config, AutoModelForImageTextToText).save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    reader = Reader.load(str(tmp_path), device="cpu")
    assert len(reader.rotator.layouts) == config.get_text_config().num_hidden_layers
    ids, slots = list(range(20, 60)), Slots(torch.arange(25, 40))
    with torch.no_grad():
        wanted = reader.model(torch.tensor([ids])).logits[0, -1]  # transformers makes the positions itself
    buffer = reader.buffer(40)
    reader.place(buffer, reader.encode(ids[:25]), 0, 0)
    ours = reader.logits(ids[25:], Positions(slots), buffer, ForwardPlan(slots, 40))
    assert (ours - wanted).abs().max() <= 1e-4
    assert 0 < reader.dims.linear * reader.layers < sum(p.numel() for p in reader.model.parameters())
