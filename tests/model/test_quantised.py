"""Quantised weights: their KV is reused like any other's, is exact at r = 1, and is nobody else's."""

import importlib.util
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import byte_tokenizer, tiny_model, write_adapter
from staged import QUESTION, make
from torch import nn
from torch.testing._internal.two_tensor import TwoTensor
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

from ragcache.errors import IndexMismatch, UnusableAdapter
from ragcache.index.index import Index
from ragcache.model.fingerprint import weights_in_memory
from ragcache.model.reader import Reader

KINDS = ("torchao int8", "bitsandbytes int8", "bitsandbytes nf4")


def settings(kind: str) -> Any:
    """How transformers is told to quantise."""
    package, _, form = kind.partition(" ")
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}")
    if package == "torchao":
        from torchao.quantization import Int8WeightOnlyConfig
        from transformers import TorchAoConfig

        return TorchAoConfig(Int8WeightOnlyConfig())
    if form == "int8":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float32)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint whose widths are what 4-bit kernels take."""
    folder = tmp_path_factory.mktemp("plain")
    tiny_model("llama", intermediate_size=128).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(params=KINDS)
def quantised(request: pytest.FixtureRequest, plain: Path, tmp_path: Path) -> Path:
    """A checkpoint of quantised weights, as a user would have one."""
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # it says of every product what dtype it takes
    how = settings(request.param)
    model = AutoModelForCausalLM.from_pretrained(
        plain, quantization_config=how, dtype=torch.float32, device_map={"": "cpu"}
    )
    model.save_pretrained(tmp_path / "quantised")
    byte_tokenizer().save_pretrained(tmp_path / "quantised")
    return tmp_path / "quantised"


def test_a_quantised_checkpoint_reuses_kv_of_its_own_and_is_exact_at_one(
    quantised: Path, plain: Path, tmp_path: Path
) -> None:
    reader, other = Reader.load(str(quantised), device="cpu"), Reader.load(str(plain), device="cpu")
    assert type(reader.model.model.layers[0].self_attn.q_proj.weight) is not nn.Parameter, "quantised weights"
    assert reader.dims == other.dims, "weights count by what they stand for"
    engine, chunks = make(tmp_path, reader, "naive")
    full = engine.prefill(QUESTION, chunks, method="full")
    ours = engine.prefill(QUESTION, chunks[::-1], method="naive")
    assert [chunk.cache for chunk in ours.report.chunks] == ["hit"] * len(chunks)
    exact = engine.prefill(QUESTION, chunks, method="random", recompute=1.0)
    assert (exact.logits - full.logits).abs().max() <= 1e-4
    theirs = other.stock(full.prompt.token_ids)[0]
    assert (full.logits - theirs).abs().max() > 1e-2, "or the weights are not quantised"
    engine.index.close()
    assert len({one.fingerprint for one in (reader, other)} | {reader.fingerprint_in_memory}) == 3
    with pytest.raises(IndexMismatch, match=r"not by .*plain"):
        Index(tmp_path / "index", other)


def test_an_adapter_is_not_merged_into_quantised_weights(quantised: Path, plain: Path, tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "adapter", AutoModelForCausalLM.from_pretrained(plain))
    with pytest.raises(UnusableAdapter, match=r"is (quantised|a Linear)"):
        Reader.load(str(quantised), device="cpu", adapter=adapter)


def test_in_memory_integers_and_scales_are_what_is_hashed() -> None:
    def digest(first: float, second: float) -> str:
        layer = nn.Linear(2, 2, bias=False)
        parts = torch.full((2, 2), first), torch.full((2, 2), second)
        layer.weight = nn.Parameter(TwoTensor(*parts), requires_grad=False)
        return weights_in_memory(layer)

    assert digest(1, 2) == digest(1, 2)
    assert len({digest(1, 2), digest(2, 1), digest(1, 3)}) == 3
