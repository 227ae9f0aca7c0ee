"""What cannot be served is refused by name with the reason, when loaded; what can is served up to its limit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from conftest import HYBRID, SIZES, byte_tokenizer, tiny_model, tiny_reader
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

from ragcache.engine.engine import Engine
from ragcache.errors import InvalidArgument, PromptTooLong, UnsupportedModel
from ragcache.index.index import Index
from ragcache.model import compatibility, rope
from ragcache.model.plan import ForwardPlan, Positions, Slots
from ragcache.model.reader import Reader

MLA = {"kv_lora_rank": 16, "q_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 16}
EXPERTS = {"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
PER_LAYER = {"vocab_size_per_layer_input": 512, "hidden_size_per_layer_input": 16, "layer_types": HYBRID}
GEMMA4 = PER_LAYER | {"sliding_window": 48, "global_head_dim": 32, "use_bidirectional_attention": None}
T5 = {"d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "gpt2": ({}, "no rotary position embedding; learned positions"),
    "bloom": ({"n_head": 4, "n_layer": 2}, "no rotary position embedding; .*ALiBi"),
    "deepseek_v32": (MLA, r"an indexer chooses what its attention sees \(DSA\)"),
    "falcon_h1": ({"mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 16}, "hybrid layers"),
    "mamba": ({"state_size": 8}, "none of its layers has keys and values"),
    "gemma3n_text": (PER_LAYER | {"laurel_rank": 8, "num_kv_shared_layers": 2}, "several streams of hidden states"),
    "gpt_neox_japanese": ({}, r"layers \[0, 1, 2, 3\] do not run attention through transformers' attention interface"),
}
DYNAMIC = {
    "max_position_embeddings": 512,
    "rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0},
}
LONGROPE = {
    "max_position_embeddings": 2048,
    "original_max_position_embeddings": 512,
    "rope_parameters": {
        "rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 8, "long_factor": [4.0] * 8,
    },
}  # fmt: skip


def built(kind: str, extra: dict[str, Any], auto: Any = AutoModelForCausalLM) -> Any:
    torch.manual_seed(0)
    return auto.from_config(AutoConfig.for_model(kind, **{**SIZES, **extra}))


@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_unsupported_architectures_are_refused_by_name_with_the_reason(kind: str) -> None:
    extra, reason = REFUSED[kind]
    model = built(kind, extra)
    with pytest.raises(UnsupportedModel, match=reason) as refused:
        Reader(model, byte_tokenizer(), name=f"made-{kind}")
    assert type(model).__name__ in str(refused.value)
    assert "--method full" in str(refused.value)


def test_encoder_decoders_are_refused() -> None:
    with pytest.raises(UnsupportedModel, match=r"T5ForConditionalGeneration.*encoder-decoder"):
        Reader(built("t5", T5, AutoModelForSeq2SeqLM), byte_tokenizer())


def test_a_layer_that_bypasses_the_attention_interface_is_refused() -> None:
    model = tiny_model("llama")
    own = model.model.layers[2].self_attn

    def forward(hidden_states: torch.Tensor, **given: Any) -> tuple[torch.Tensor, None]:
        split = (1, hidden_states.shape[1], -1, own.head_dim)
        q, k, v = (p(hidden_states).view(split).transpose(1, 2) for p in (own.q_proj, own.k_proj, own.v_proj))
        k, v = (given.get("cache") or given["past_key_values"]).update(k, v, own.layer_idx)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return own.o_proj(mixed.transpose(1, 2).flatten(2)), None

    own.forward = forward
    with pytest.raises(UnsupportedModel, match=r"layers \[2\] do not run attention"):
        Reader(model, byte_tokenizer())


@pytest.mark.parametrize(
    ("kind", "extra"),
    [
        ("mixtral", EXPERTS),
        ("qwen3_moe", EXPERTS),
        ("gemma4_text", GEMMA4 | {"num_kv_shared_layers": 0}),
        ("gemma4_text", GEMMA4 | {"num_kv_shared_layers": 2}),
        ("cohere2", {}),
    ],
)
def test_experts_and_heads_of_two_widths_are_served(kind: str, extra: dict[str, Any]) -> None:
    reader = Reader(built(kind, extra), byte_tokenizer())
    ids, rest = list(range(10, 70)), list(range(90, 110))
    stock, _ = reader.stock(ids + rest)
    buffer, slots = reader.buffer(80), Slots(torch.arange(60, 80))
    reader.place(buffer, reader.encode(ids), 0, 0)
    ours = reader.logits(rest, Positions(slots), buffer, ForwardPlan(slots, 80))
    assert (ours - stock).abs().max() <= 1e-4


@pytest.mark.parametrize(("name", "changes"), [("llama", DYNAMIC), ("phi3", LONGROPE)])
def test_length_dependent_rope_is_exact_up_to_its_limit_and_refused_beyond(
    name: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    reader = tiny_reader(name, **changes)
    assert reader.limit == 512
    with Index(tmp_path / "index", reader) as index:
        engine = Engine(reader, index)
        room = reader.limit - len(
            index.template.prompt([index.uncached_chunk("x").segment], "Who?")
        )  # one token for the answer
        fits = [index.uncached_chunk("x" * room)]
        full = engine.prefill("Who?", fits, method="full")
        ours = engine.prefill("Who?", fits, method="random", recompute=1.0)
        assert len(ours.prompt) + 1 == reader.limit
        assert (ours.logits - full.logits).abs().max() <= 1e-4
        for method in ("full", "random"):
            with pytest.raises(PromptTooLong, match=r"512 tokens and the answer may take 1, but tiny-.* takes 512"):
                engine.prefill("Who?", [index.uncached_chunk("x" * (room + 1))], method=method)


@pytest.mark.parametrize(("name", "changes"), [("llama", DYNAMIC), ("phi3", LONGROPE)])
def test_the_probe_itself_sees_frequencies_change_beyond_the_limit(name: str, changes: dict[str, Any]) -> None:
    reader = tiny_reader(name, **changes)
    with pytest.raises(UnsupportedModel, match="frequencies may depend on the prompt's length"):
        rope.probe(reader._record, compatibility.rotary_frequencies(reader.model), limit=600, tolerance=2e-3)


def test_a_model_handed_over_after_a_long_prompt_is_probed_all_the_same() -> None:
    model = tiny_model("llama", **DYNAMIC)
    with torch.no_grad():
        model(torch.ones(1, 700, dtype=torch.long))
    reader = Reader(model, byte_tokenizer())
    assert [layout.pairing for layout in reader.rotator.layouts] == ["half"] * 4
    assert reader.rotator.layouts[0].inv_freq == pytest.approx(tiny_reader("llama").rotator.layouts[0].inv_freq)


def saved(folder: Path, *, pickled: bool = False) -> Path:
    model = tiny_model("llama", num_hidden_layers=1)
    model.save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    if pickled:
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return folder


def test_a_folder_without_config_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"cannot load the model '.*empty'.*--model"):
        Reader.load(str(tmp_path / "empty"))
    (saved(tmp_path / "half") / "config.json").unlink()
    with pytest.raises(InvalidArgument, match=r"cannot load the model '.*half'"):
        Reader.load(str(tmp_path / "half"))


def test_pickled_weights_are_never_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = saved(tmp_path / "pickled", pickled=True)
    loads: list[object] = []
    monkeypatch.setattr(torch, "load", lambda *a, **k: loads.append(a))
    with pytest.raises(InvalidArgument, match="safetensors"):
        Reader.load(str(folder))
    assert not loads


@pytest.mark.parametrize("dtype", ["float99", "nn", "int8", ""])
def test_an_unknown_dtype_is_named(dtype: str) -> None:
    with pytest.raises(InvalidArgument, match=f"no dtype is called '{dtype}'; use auto, float32, bfloat16 or float16"):
        Reader.load("anywhere", dtype=dtype)


def test_a_saved_folder_loads_in_the_asked_dtype_with_fp32_frequencies(
    tmp_path: Path, readers: Callable[[str], Reader]
) -> None:
    reader = Reader.load(str(saved(tmp_path / "model")), dtype="bfloat16", device="cpu")
    assert reader.model.dtype == torch.bfloat16
    assert {f.dtype for f in compatibility.rotary_frequencies(reader.model)} == {torch.float32}
    assert reader.rotator.layouts[0] == readers("llama").rotator.layouts[0]


def test_the_probe_reads_ordinary_tokens_where_the_tokenizer_has_two(reader: Reader) -> None:
    found = compatibility.probe_tokens(reader.model, reader.tokenizer)
    assert reader.tokenizer.decode(found) == "th"
    assert not set(found) & set(reader.tokenizer.all_special_ids)
    assert compatibility.probe_tokens(reader.model, lambda text, **_: {"input_ids": [3, 3]}) == (5, 7)
    assert compatibility.probe_tokens(reader.model, lambda text, **_: {"input_ids": [3, 10**6]}) == (5, 7)
