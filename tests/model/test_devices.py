"""What a device can't do is said in one sentence, and what slows it down is switched off."""

from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import byte_tokenizer, tiny_model
from ragcache_bench.device_parity import tiny_reader
from ragcache_bench.pretend_accelerator import pretend_accelerator

from ragcache.errors import OutOfMemory, RagCacheError, UnsupportedModel
from ragcache.model.buffer import KVBuffer
from ragcache.model.reader import Reader

HERE = Path(__file__).parent
ASKED = "CUDA out of memory. Tried to allocate 1.95 GiB. GPU 0 has a total capacity of 79.10 GiB"


def fail(*_: Any, **__: Any) -> Any:
    raise torch.OutOfMemoryError(ASKED)


def test_a_model_on_several_devices_is_refused_with_their_names() -> None:
    model = tiny_model("llama")
    model.hf_device_map = {"model.layers.0": 0, "model.layers.1": 1, "lm_head": "cpu"}
    with pytest.raises(UnsupportedModel, match=r"spread over cpu, cuda:0, cuda:1.*device_map={'': 'cuda:1'}"):
        Reader(model, byte_tokenizer())
    model.hf_device_map = {"": torch.device("cpu")}
    assert Reader(model, byte_tokenizer()).device.type == "cpu"


@pytest.mark.parametrize(
    ("run", "what"),
    [
        (lambda reader: reader.stock(range(5, 12)), "full prefill of 7 tokens"),
        (lambda reader: reader.encode(range(5, 14)), "a forward of 9 tokens"),
    ],
)
def test_a_forward_without_memory_says_how_many_tokens_and_how_much_there_is(
    monkeypatch: pytest.MonkeyPatch, run: Any, what: str
) -> None:
    with pretend_accelerator(HERE):
        reader = tiny_reader(2, "cuda")
        monkeypatch.setattr(reader.model.model, "forward", fail)
        with pytest.raises(OutOfMemory) as raised:
            run(reader)
    said = str(raised.value)
    assert said.startswith(f"cuda:0 ran out of memory for {what} (1.95 GiB more were asked for; 70.0 of 80.0 GiB")
    assert "--top-k" in said
    assert isinstance(raised.value, RagCacheError)
    assert isinstance(raised.value.__cause__, torch.OutOfMemoryError)


def test_kv_without_memory_says_for_how_many_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = tiny_reader(2, "cpu")
    kv = reader.encode(range(5, 14))
    monkeypatch.setattr(KVBuffer, "place_from", fail)
    with pytest.raises(OutOfMemory, match=r"for the KV of 40 tokens \(1.95 GiB more were asked for\); ask with"):
        reader.place(reader.buffer(40), kv, 0, 0)


def test_a_model_that_does_not_fit_says_how_large_it_is(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pretend_accelerator(HERE):
        monkeypatch.setattr(torch.nn.Module, "to", fail)
        with pytest.raises(OutOfMemory, match=r"cuda ran out of memory for '.*', 0.0 GiB of weights .*--device cpu"):
            Reader.load(str(checkpoint), device="cuda")


@pytest.mark.parametrize(("device", "on"), [("cpu", True), ("cuda", False)])
def test_attention_by_cudnn_is_off_where_a_reader_is_made_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch, device: str, on: bool
) -> None:
    asked = [True]
    monkeypatch.setattr(torch.backends.cuda, "enable_cudnn_sdp", asked.append)
    with pretend_accelerator(HERE):
        tiny_reader(2, device)
    assert asked[-1] is on
