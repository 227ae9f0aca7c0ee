"""Sliding windows as transformers masks them, whether or not a model's attention is told."""

from typing import Any

import pytest
import torch
from conftest import HYBRID, SIZES, byte_tokenizer
from transformers import AutoConfig, AutoModelForCausalLM, masking_utils

from ragcache.engine.engine import Engine
from ragcache.errors import UnsupportedModel
from ragcache.index.index import Index
from ragcache.model.plan import ForwardPlan, Positions, Slots
from ragcache.model.reader import Reader

WINDOW, CONTEXT = 48, 150
EXPERTS = {"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
EVERY = {"sliding_window": WINDOW}
MIXED = EVERY | {"layer_types": HYBRID}
CHOSEN = MIXED | {"use_sliding_window": True, "max_window_layers": 2}
GEMMA4 = MIXED | {
    "vocab_size_per_layer_input": 512, "hidden_size_per_layer_input": 16, "global_head_dim": 32,
    "use_bidirectional_attention": None, "num_kv_shared_layers": 0,
}  # fmt: skip
LLAMA4 = {
    "attention_chunk_size": WINDOW, "floor_scale": 1024, "intermediate_size_mlp": 96, "num_local_experts": 2,
    "layer_types": ["chunked_attention", "full_attention"] * 2, "no_rope_layers": [1, 0] * 2,
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "afmoe": MIXED | EXPERTS,
    "cohere2": MIXED,
    "cwm": MIXED,
    "exaone4": MIXED,
    "gemma2": MIXED | {"query_pre_attn_scalar": 16, "attn_logit_softcapping": 2.0},
    "gemma3_text": MIXED,
    "gemma4_text": GEMMA4,
    "gpt_oss": MIXED | EXPERTS | {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}},
    "llama4_text": LLAMA4,
    "ministral": MIXED,
    "mistral": EVERY,
    "mixtral": EVERY | EXPERTS,
    "olmo3": MIXED,
    "phi3": EVERY,
    "phimoe": EVERY | EXPERTS,
    "qwen2": CHOSEN,
    "qwen2_moe": CHOSEN | EXPERTS,
    "qwen3": CHOSEN,
    "qwen3_moe": EVERY | EXPERTS | {"use_sliding_window": True},
    "smollm3": CHOSEN,
    "starcoder2": EVERY,
}
WIDE = {"llama4_text": "attention_chunk_size"}  # what the window is called where it is no sliding one


def made(kind: str, **extra: Any) -> Any:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **{**SIZES, **extra}), dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim >= 2:
                parameter.normal_(0, 0.12)
    return model


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_context_longer_than_the_window_is_read_as_stock_attention_reads_it(kind: str) -> None:
    reader = Reader(made(kind, **KINDS[kind]), byte_tokenizer())
    ids = torch.randint(10, 250, (CONTEXT,)).tolist()
    stock, _ = reader.stock(ids)
    for cached in (0, 100):
        buffer, slots = reader.buffer(CONTEXT), Slots(torch.arange(cached, CONTEXT))
        if cached:
            reader.place(buffer, reader.encode(ids[:cached]), 0, 0)
        ours = reader.logits(ids[cached:], Positions(slots), buffer, ForwardPlan(slots, CONTEXT))
        assert (ours - stock).abs().max() <= 1e-4
    model = made(kind, **KINDS[kind] | {WIDE.get(kind, "sliding_window"): 2048})
    wide, _ = Reader(model, byte_tokenizer()).stock(ids)
    assert (wide - stock).abs().max() > 1e-2, "the window cut nothing off, so nothing was tested"


@pytest.mark.parametrize("kind", ["phimoe", "qwen2_moe"])
def test_requests_that_run_together_see_the_same_windows(kind: str, tmp_path: Any) -> None:
    reader = Reader(made(kind, **KINDS[kind]), byte_tokenizer())
    with Index(tmp_path / "index", reader) as index:
        engine = Engine(reader, index)
        asked = [
            ("Who?", [index.uncached_chunk("The harbour master is Mara. " * 6)]),
            ("When?", [index.uncached_chunk("In 1931. " * 9)]),
        ]
        ready = reader.run_batch(
            [lambda one=one: engine.prefill(*one, method="random", recompute=1.0) for one in asked]  # type: ignore[misc]
        )
        for one, found in zip(asked, ready, strict=True):
            full = engine.prefill(*one, method="full")
            assert (found.logits - full.logits).abs().max() <= 1e-4


def test_a_window_as_long_as_the_model_takes_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragcache.model.windows._look", lambda *_: pytest.fail("it was looked for"))
    Reader(made("phimoe", **KINDS["phimoe"] | {"sliding_window": SIZES["max_position_embeddings"]}), byte_tokenizer())
    Reader(made("llama"), byte_tokenizer())


def test_a_mask_that_is_neither_window_nor_chunk_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    where = "transformers.models.qwen2.modeling_qwen2.create_sliding_window_causal_mask"
    monkeypatch.setattr(where, masking_utils.create_chunked_causal_mask)
    model = made("qwen2", **CHOSEN)
    model.config.attention_chunk_size = WINDOW
    Reader(model, byte_tokenizer())

    def without_the_first(**given: Any) -> torch.Tensor:
        mask = masking_utils.create_chunked_causal_mask(**given)
        mask[..., -2] = False
        return mask

    monkeypatch.setattr(where, without_the_first)
    with pytest.raises(
        UnsupportedModel, match=r"Qwen2ForCausalLM.*layer 0 masks more than .* a sliding window or a chunk"
    ):
        Reader(model, byte_tokenizer())


def test_a_model_that_hands_nothing_down_to_its_layers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = made("phimoe", **KINDS["phimoe"])
    forward = model.model.forward

    def without(layer_windows: object = None, **given: Any) -> Any:
        return forward(**given)

    monkeypatch.setattr(model.model, "forward", without)
    with pytest.raises(UnsupportedModel, match=r"layers \[0, 1, 2, 3\] do not tell their attention how far back"):
        Reader(model, byte_tokenizer())
