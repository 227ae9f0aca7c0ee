"""What a list of architectures does not foresee is refused with the figures, by what the forward really computes."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import SIZES, byte_tokenizer, tiny_model
from torch import Tensor
from transformers import AutoConfig

from ragcache.errors import OutOfMemory, UnsupportedModel
from ragcache.model import behaviour, plan, reduced
from ragcache.model.config_check import check_config_alone
from ragcache.model.fallback import FallbackReader
from ragcache.model.reader import Reader
from ragcache.model.rope import KeyRotator

FIGURES = r"logits after \d+ tokens (recomputed in full|with a reused chunk) are [\d.e-]+ off .* \(allowed: [\d.e-]+;"


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> Iterator[None]:
    behaviour._found.clear()
    yield
    behaviour._found.clear()


def off_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every window of our attention shows one token more."""
    sound = plan._blocks

    def blocks(forward: plan.ForwardPlan, window: int | None) -> Iterator[plan.Block]:
        return sound(forward, None if window is None else window + 1)

    monkeypatch.setattr(plan, "_blocks", blocks)


def test_a_window_that_is_off_by_one_is_refused_with_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    off_by_one(monkeypatch)
    with pytest.raises(UnsupportedModel, match=FIGURES):
        Reader(tiny_model("mistral-sliding"), byte_tokenizer())
    Reader(tiny_model("llama"), byte_tokenizer())


def test_a_large_model_reads_few_tokens_and_has_a_reduced_copy_outgrow_its_windows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[tuple[str, int]] = []
    compare = behaviour._compare
    monkeypatch.setattr(behaviour, "_CHEAP", 0)

    def noted(reader: Reader, tokens: int) -> None:
        read.append((reader.name, tokens))
        compare(reader, tokens)

    monkeypatch.setattr(behaviour, "_compare", noted)
    for _ in range(2):  # the second time the copy is remembered
        Reader(tiny_model("mistral-sliding"), byte_tokenizer(), name="large")
    copy = ("MistralForCausalLM", reduced.WINDOW + behaviour._BEYOND)
    assert read == [("large", 8), copy, ("large", 8)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_reduced_copy_finds_what_few_tokens_and_a_narrow_dtype_hide(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    off_by_one(monkeypatch)
    monkeypatch.setattr(behaviour, "_CHEAP", 0)
    for _ in range(2):
        with pytest.raises(UnsupportedModel, match=f"made-mistral .*{FIGURES}"):
            Reader(tiny_model("mistral-sliding", dtype=dtype), byte_tokenizer(), name="made-mistral")
    reader = FallbackReader(tiny_model("mistral-sliding", dtype=dtype), byte_tokenizer())
    assert re.search(FIGURES, reader.refused)


def test_a_chunk_whose_keys_stay_where_they_were_made_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reader, "_probe", lambda self: [object()] * self.layers)
    monkeypatch.setattr(KeyRotator, "rotate", lambda *_: None)
    with pytest.raises(UnsupportedModel, match=r"after 36 tokens with a reused chunk are [\d.]+ off"):
        Reader(tiny_model("llama"), byte_tokenizer())


@pytest.mark.parametrize(("share", "passes"), [(0.03, True), (0.12, False)])
def test_in_bf16_a_sixteenth_of_the_largest_logit_is_allowed(
    share: float, passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(tiny_model("llama", dtype=torch.bfloat16), byte_tokenizer())

    def shifted(reader: Reader, ids: list[int], reused: int) -> Tensor:
        stock, _ = reader.stock(ids)
        return stock + share * stock.abs().max()

    monkeypatch.setattr(behaviour, "_read", shifted)
    if passes:
        behaviour.compare_whole(reader)
        return
    with pytest.raises(UnsupportedModel, match="after 36 tokens"):
        behaviour.compare_whole(reader)


def test_what_the_model_s_own_rounding_moves_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(tiny_model("llama"), byte_tokenizer())
    stock = reader.stock
    noisy = iter([0.0, 0.0, 0.4])  # the prompt at once, its first half, and the rest

    def rounded(ids: list[int], cache: Any = None) -> tuple[Tensor, Any]:
        logits, cache = stock(ids, cache)
        return logits + next(noisy, 0.0), cache

    monkeypatch.setattr(reader, "stock", rounded)
    read = behaviour._read
    monkeypatch.setattr(behaviour, "_read", lambda *given: read(*given) + 0.7)
    behaviour.compare_whole(reader)
    with pytest.raises(UnsupportedModel, match="after 36 tokens"):
        behaviour.compare_whole(reader)


def test_logits_that_are_no_numbers_pass_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(tiny_model("llama"), byte_tokenizer())
    monkeypatch.setattr(behaviour, "_read", lambda *_: torch.full((512,), torch.nan))
    with pytest.raises(UnsupportedModel, match="are inf off"):
        behaviour.compare_whole(reader)


def test_a_class_that_takes_no_small_sizes_reads_the_whole_prompt_on_its_own_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    off_by_one(monkeypatch)
    monkeypatch.setattr(behaviour, "_CHEAP", 0)
    monkeypatch.setattr(reduced, "_MOST_WEIGHTS", 10)
    with pytest.raises(UnsupportedModel, match="after 84 tokens"):
        Reader(tiny_model("mistral-sliding"), byte_tokenizer())


def test_a_model_whose_own_code_fails_is_refused_by_name_and_out_of_memory_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(error: Exception) -> Any:
        def forward(*_: Any, **__: Any) -> Any:
            raise error

        return forward

    model = tiny_model("llama")
    monkeypatch.setattr(model.model, "forward", fail(TypeError("no mask\nfurther lines")))
    with pytest.raises(UnsupportedModel, match=r"its own code fails .* \(TypeError: no mask\)\. To have it answer"):
        Reader(model, byte_tokenizer())
    monkeypatch.setattr(model.model, "forward", fail(torch.OutOfMemoryError("full")))
    with pytest.raises(OutOfMemory):
        Reader(model, byte_tokenizer())


# -- reduced copies --------------------------------------------------------------------------------------------------
def test_a_reduced_copy_has_two_layers_of_each_kind_in_their_order() -> None:
    kinds = ["sliding_attention"] * 5 + ["full_attention"]
    config = AutoConfig.for_model("gemma3_text", num_hidden_layers=18, layer_types=kinds * 3, sliding_window=512)
    small = reduced.reduce_config(config)
    assert small.layer_types == ["sliding_attention"] * 2 + ["full_attention"] * 2
    assert (small.num_hidden_layers, small.sliding_window, small.num_attention_heads) == (4, reduced.WINDOW, 4)
    assert config.num_hidden_layers == 18, "the model's own configuration stays as it is"


def test_lists_and_tables_of_layers_are_cut_with_them() -> None:
    llama4 = reduced.reduce_config(AutoConfig.for_model("llama4_text"))
    assert llama4.no_rope_layers == [1, 1, 0, 0]
    assert llama4.layer_types == ["chunked_attention"] * 2 + ["full_attention"] * 2
    assert llama4.moe_layers == [0, 1, 2, 3]
    gemma4 = reduced.reduce_config(AutoConfig.for_model("gemma4_text", num_hidden_layers=12, num_kv_shared_layers=6))
    assert gemma4.num_kv_shared_layers == 3  # of a full layer there is one in each half, and the last is full
    assert [gemma4.per_layer_config[layer].head_dim for layer in range(gemma4.num_hidden_layers)] == [
        16 if kind == "sliding_attention" else 32 for kind in gemma4.layer_types
    ]


def test_the_same_weights_are_made_every_time_and_nobody_s_random_numbers_are_taken() -> None:
    config = reduced.reduce_config(AutoConfig.for_model("qwen2", **{**SIZES, "hidden_size": 256}))
    torch.manual_seed(3)
    wanted = torch.rand(2)
    torch.manual_seed(3)
    one, other = reduced.build_reduced(config), reduced.build_reduced(config)
    assert torch.equal(torch.rand(2), wanted)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert one.config.hidden_size == 64
    assert {parameter.dtype for parameter in one.parameters()} == {torch.float32}


def test_scales_of_a_reduced_copy_differ_from_dimension_to_dimension() -> None:
    config = reduced.reduce_config(AutoConfig.for_model("qwen3", **SIZES))
    scales = [one for name, one in reduced.build_reduced(config).named_parameters() if name.endswith("norm.weight")]
    assert scales
    assert all(one.std() > 0.2 for one in scales)


def test_keys_that_are_scaled_behind_their_rotation_are_refused_by_the_configuration_alone(tmp_path: Path) -> None:
    config = AutoConfig.for_model("hunyuan_v1_dense", **{**SIZES, "head_dim": 16})
    config.architectures = ["HunYuanDenseV1ForCausalLM"]
    config.save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModel, match="off every known rotary layout"):
        check_config_alone(str(tmp_path))


def test_windows_and_chunks_are_looked_for_in_the_text_model() -> None:
    gemma3 = AutoConfig.for_model("gemma3", text_config={"sliding_window": 77})
    assert reduced.longest_window(gemma3) == 77
    assert reduced.longest_window(AutoConfig.for_model("llama")) == 0
