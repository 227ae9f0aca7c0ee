"""What cannot be loaded is said in one sentence, with what to run next."""

import json
from pathlib import Path

import pytest
from conftest import byte_tokenizer, tiny_model

from ragcache import Reader
from ragcache.errors import InvalidArgument, MissingExtra
from ragcache.model.checkpoint import check_device, check_model


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    tiny_model("llama", num_hidden_layers=1).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("quantised", "command"),
    [
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "pip install bitsandbytes accelerate"),
        ({"quant_method": "gptq", "bits": 4}, "pip install optimum gptqmodel accelerate"),
    ],
    ids=lambda value: value.get("quant_method") if isinstance(value, dict) else "",
)
def test_a_package_for_quantised_weights_is_named(
    checkpoint: Path, quantised: dict[str, object], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for test in ("quantizer_bnb_4bit.is_bitsandbytes_available", "quantizer_gptq.is_optimum_available"):
        monkeypatch.setattr(f"transformers.quantizers.{test}", lambda *version: False)
    file = checkpoint / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "quantization_config": quantised}))
    with pytest.raises(MissingExtra) as refused:
        Reader.load(str(checkpoint), device="cpu")
    assert f"quantised by {quantised['quant_method']}" in str(refused.value)
    assert f"`{command}`" in str(refused.value)


def test_a_missing_tokenizer_is_named(checkpoint: Path) -> None:
    for file in checkpoint.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(InvalidArgument, match=r"holds no tokenizer; copy tokenizer\.json"):
        Reader.load(str(checkpoint))


@pytest.mark.parametrize("name", ["/nosuch", "./nosuch", "", "a name with spaces", "https://hub/model"])
def test_what_is_no_folder_and_no_hub_id_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match=r"is no folder; name a folder .*Qwen/.*--model"):
        check_model(name)


def test_a_file_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidArgument, match="is a file, not a folder"):
        check_model(str(tmp_path / "file"))


def test_offline_a_hub_s_model_must_be_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InvalidArgument, match=r"not on this machine.*`HF_HUB_OFFLINE=0 hf download some/model`"):
        check_model("some/model")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    check_model("some/model")  # it may be fetched
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    (tmp_path / "models--some--model" / "snapshots").mkdir(parents=True)
    check_model("some/model")


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "CPU", "meta", ""])
def test_what_can_be_no_device_is_refused(device: str) -> None:
    with pytest.raises(InvalidArgument, match="no device is called"):
        check_device(device)


def test_a_device_that_this_machine_lacks_is_refused_before_loading(checkpoint: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"has no device 'npu:7' .* leave --device out"):
        Reader.load(str(checkpoint), device="npu:7")
