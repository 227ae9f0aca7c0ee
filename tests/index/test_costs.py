"""What KV takes is computed from a configuration, is what a model really makes, and is what the pages say."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import ARCHITECTURES
from transformers import AutoConfig, AutoModelForCausalLM

from ragcache.model.cost import PAGE_TOKENS, ModelDims, gigabytes_per_1000_pages, kv_bytes_per_token
from ragcache.model.plan import Chunked
from ragcache.model.reader import Reader, ReducedReader
from ragcache.model.reduced import build_reduced, reduce_config

PAGE = Path(__file__).parents[2] / "docs" / "costs.md"
#: What the checkpoints' own config.json say.
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "Qwen/Qwen2.5-0.5B-Instruct": (
        "qwen2",
        {"hidden_size": 896, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2},
    ),
    "Qwen/Qwen2.5-7B-Instruct": (
        "qwen2",
        {"hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4},
    ),
    "meta-llama/Llama-3.1-8B-Instruct": (
        "llama",
        {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8},
    ),
}


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_the_configuration_says_what_a_loaded_model_makes(architecture: str, readers: Callable[[str], Reader]) -> None:
    reader = readers(architecture)
    assert kv_bytes_per_token(reader.model.config, torch.float32) == reader.bytes_per_token


def test_it_knows_values_that_are_narrower_than_keys_and_sliding_layers_that_have_more_heads() -> None:
    model = build_reduced(reduce_config(AutoConfig.for_model("mimo_v2_flash", head_dim=16, v_head_dim=12)))
    assert len(set(model.config.layer_types)) == 2
    assert model.config.v_head_dim < model.config.head_dim
    reader = ReducedReader(model, lambda text, **_: {"input_ids": [5, 7]})
    assert kv_bytes_per_token(model.config, torch.float32) == reader.bytes_per_token


def test_without_another_dtype_the_configuration_s_own_counts() -> None:
    kind, dims = CONFIGS["Qwen/Qwen2.5-0.5B-Instruct"]
    assert kv_bytes_per_token(AutoConfig.for_model(kind, **dims)) == 12288
    assert kv_bytes_per_token(AutoConfig.for_model(kind, **dims, dtype="float32")) == 2 * 12288


@pytest.mark.parametrize("name", CONFIGS)
def test_the_page_says_what_the_function_gives(name: str) -> None:
    kind, dims = CONFIGS[name]
    config = AutoConfig.for_model(kind, **dims, dtype="bfloat16")
    nbytes = kv_bytes_per_token(config)
    head = config.hidden_size // config.num_attention_heads
    row = (config.num_hidden_layers, config.num_key_value_heads, head, f"{nbytes:,}")
    cells = [name, *map(str, row), f"{gigabytes_per_1000_pages(nbytes):.1f}"]
    assert f"| {' | '.join(cells)} |" in PAGE.read_text()


def test_the_page_names_every_model_that_is_checked_and_the_length_of_a_page() -> None:
    text = PAGE.read_text()
    assert set(re.findall(r"^\| (\S+/\S+) \|", text, re.MULTILINE)) == set(CONFIGS)
    assert f"{PAGE_TOKENS} tokens" in text


def test_the_page_s_example_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    kind, dims = CONFIGS["Qwen/Qwen2.5-7B-Instruct"]
    config = AutoConfig.for_model(kind, **dims, dtype="bfloat16")
    monkeypatch.setattr(AutoConfig, "from_pretrained", lambda name: config)
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(example, {})
    assert capsys.readouterr().out == "57344 28.672\n"


HIDDEN, LAYERS, HEADS, WIDE, USED = 32, 3, 4, 8, 2
COMMON = {
    "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": HEADS,
    "head_dim": WIDE, "vocab_size": 100, "num_experts_per_tok": USED, "intermediate_size": 48,
    "moe_intermediate_size": 16,
}  # fmt: skip
ATTENTION = 4 * HIDDEN * HEADS * WIDE
LATENT = {"q_lora_rank": 12, "kv_lora_rank": 10, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4, "v_head_dim": 8}
LATENT_ATTENTION = (
    HIDDEN * 12 + 12 * HEADS * (6 + 4) + HIDDEN * (10 + 4) + 10 * HEADS * (6 + 8) + HEADS * 8 * HIDDEN
)  # fmt: skip


@pytest.mark.parametrize("experts", [4, 16])
@pytest.mark.parametrize(
    ("kind", "count", "own", "linear"),
    [
        ("qwen3_moe", "num_experts", {}, ATTENTION + USED * 3 * HIDDEN * 16),
        ("mixtral", "num_local_experts", {}, ATTENTION + USED * 3 * HIDDEN * 48),
        (
            "deepseek_v3",
            "n_routed_experts",
            {**LATENT, "n_group": 1, "topk_group": 1, "n_shared_experts": 1, "first_k_dense_replace": 0},
            LATENT_ATTENTION + (USED + 1) * 3 * HIDDEN * 16,
        ),
    ],
)
def test_of_a_layer_s_experts_those_count_that_a_token_goes_to(
    kind: str, count: str, own: dict[str, Any], linear: int, experts: int
) -> None:
    config = AutoConfig.for_model(kind, **COMMON, **own, **{count: experts})
    with torch.device("meta"):
        dims = ModelDims.of(AutoModelForCausalLM.from_config(config))
    assert dims.linear == linear + HIDDEN * experts  # and the router


def test_tables_that_are_looked_up_cost_nothing() -> None:
    def linear(**own: Any) -> int:
        config = AutoConfig.for_model("gemma4_text", num_hidden_layers=4, hidden_size=32, intermediate_size=48, **own)
        with torch.device("meta"):
            return ModelDims.of(AutoModelForCausalLM.from_config(config)).linear

    assert linear(vocab_size_per_layer_input=512) == linear(vocab_size_per_layer_input=4096)


def test_a_layer_costs_what_its_rows_see() -> None:
    slots = torch.tensor([0, 3, 9, 10])
    dims = ModelDims(layers=6, linear=0, attention=1, lm_head=0, windows=(None, 4, 4, 4, Chunked(8), Chunked(8)))
    seen = {None: 1 + 4 + 10 + 11, 4: 1 + 4 + 4 + 4, 8: 1 + 4 + 2 + 3}
    assert dims.forward(slots, range(6), logits=False) == 4 * (seen[None] + 3 * seen[4] + 2 * seen[8])
    assert dims.forward(slots, [3, 5], logits=False) == 4 * (seen[4] + seen[8])
    assert replace(dims, windows=()).forward(slots, range(6), logits=False) == 4 * 6 * seen[None]


@pytest.mark.parametrize(
    ("architecture", "windows"),
    [("gemma3", (48, None) * 2), ("mistral-sliding", (48,) * 4), ("llama", ()), ("lfm2", ())],
)
def test_a_model_s_windows_are_counted(
    architecture: str, windows: tuple[int | None, ...], readers: Callable[[str], Reader]
) -> None:
    assert readers(architecture).dims.windows == windows
