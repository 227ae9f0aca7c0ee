"""The table of architectures: what it says is still so, and the page says what it says."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from ragcache.errors import UnsupportedModel
from ragcache.model import attention, behaviour
from ragcache.model.attention import SoftmaxForm

ROOT = Path(__file__).parents[2]
STUDY: dict[str, Any] = runpy.run_path(str(ROOT / "bench" / "studies" / "models.py"))
TABLE: dict[str, Any] = json.loads((ROOT / "docs" / "benchmarks" / "models.json").read_text(encoding="utf-8"))
ROWS = {row["architecture"]: row for row in TABLE["rows"]}
#: One of each kind: every form of attention that is served, and every reason for a refusal.
SOME = (
    "deepseek_v3", "diffllama", "doge", "falcon", "gemma2", "gemma3_text", "gemma4_text", "gpt2", "gpt_neox_japanese",
    "gpt_oss", "hrm_text", "hunyuan_v1_dense", "llama", "llama4_text", "longcat_flash", "mimo_v2_flash", "minimax",
    "ministral3", "nanochat", "phimoe", "qwen2_moe", "qwen3_next",
)  # fmt: skip


def test_the_page_says_what_the_table_says() -> None:
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    assert STUDY["markdown"](TABLE["rows"], TABLE["meta"]) == page


def test_the_table_has_every_decoder_class_and_nothing_in_it_is_wrong_or_an_error() -> None:
    assert set(ROWS) >= set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    assert {row["verdict"] for row in TABLE["rows"]} == {"works", "refused", "not tried"}
    assert all(row["why"] for row in TABLE["rows"] if row["verdict"] != "works")
    assert all(max(row["recomputed"], row["reused"]) <= 1e-4 for row in TABLE["rows"] if row["verdict"] == "works")
    assert sum(row["verdict"] == "not tried" for row in TABLE["rows"]) <= 9


@pytest.mark.parametrize("kind", SOME)
def test_an_architecture_is_what_the_table_says(kind: str) -> None:
    row = STUDY["try_architecture"](kind, seeds=(0,))
    assert (row.verdict, row.why) == (ROWS[kind]["verdict"], ROWS[kind]["why"])


def dropped_sinks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SoftmaxForm, "probabilities", lambda form, logits: logits.softmax(-1))


def dropped_cap(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SoftmaxForm, "capped", lambda form, logits: logits)


def wider_windows(patch: pytest.MonkeyPatch) -> None:
    attended = attention.attended

    def wider(*given: Any) -> torch.Tensor:
        return attended(*given[:6], given[6] and given[6] + 1, *given[7:])

    patch.setattr(attention, "attended", wider)


MUTANTS = [("gpt_oss", dropped_sinks), ("gemma2", dropped_cap), ("qwen2_moe", wider_windows)]


@pytest.mark.parametrize(("kind", "mutate"), MUTANTS)
def test_attention_that_is_wrong_on_purpose_is_refused_when_loaded_and_seen_without_that(
    kind: str, mutate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    with pytest.raises(UnsupportedModel, match=r"its logits after 48 tokens .* are [\d.e-]+ off"):
        STUDY["_compare"](STUDY["build_reduced"](STUDY["default_config"](kind)), 0)
    monkeypatch.setattr(behaviour, "_compare", lambda *_: None)
    assert STUDY["try_architecture"](kind, seeds=(0,)).verdict == "wrong"
