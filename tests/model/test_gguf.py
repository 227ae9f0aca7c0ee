"""GGUF files: read through transformers, known by what they hold, and refused in one sentence."""

from pathlib import Path

import pytest
import torch
from conftest import byte_tokenizer, tiny_model
from staged import QUESTION, make

from ragcache.errors import InvalidArgument, MissingExtra
from ragcache.model import smollm2
from ragcache.model.checkpoint import check_model
from ragcache.model.config_check import check_config_alone
from ragcache.model.reader import Reader

pytest.importorskip("gguf")
from ragcache_bench.speed.peers.gguf import write_gguf


@pytest.fixture(autouse=True)
def _own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Qwen 2 in 8 bits, its tokenizer beside it."""
    folder = tmp_path_factory.mktemp("gguf")
    write_gguf(tiny_model("qwen2"), folder / "tiny [Q8_0].gguf", "q8_0")
    byte_tokenizer().save_pretrained(folder)
    return folder / "tiny [Q8_0].gguf"


def test_a_gguf_file_is_a_model_like_any_other(file: Path, tmp_path: Path) -> None:
    reader = Reader.load(str(file), device="cpu", dtype="float32")
    assert type(reader.model).__name__ == "Qwen2ForCausalLM"
    wanted, made = tiny_model("qwen2").model.layers[1].mlp.down_proj.weight, reader.model.model.layers[1].mlp.down_proj
    assert 0 < (made.weight - wanted).abs().max() <= wanted.abs().max() / 127, "as 8 bits have it"
    engine, chunks = make(tmp_path, reader, "naive")
    full = engine.prefill(QUESTION, chunks, method="full")
    exact = engine.prefill(QUESTION, chunks, method="random", recompute=1.0)
    assert (exact.logits - full.logits).abs().max() <= 1e-4
    assert engine.prefill(QUESTION, chunks[::-1], method="naive").report.cached == len(chunks)
    engine.index.close()


def test_the_fingerprint_is_the_file_s(file: Path, tmp_path: Path) -> None:
    byte_tokenizer().save_pretrained(tmp_path)
    copy = tmp_path / "other name.gguf"
    content = bytearray(file.read_bytes())
    copy.write_bytes(content)
    own = Reader.load(str(file), device="cpu").fingerprint
    assert Reader.load(str(copy), device="cpu").fingerprint == own
    content[-3] ^= 1  # of the last matrix
    copy.write_bytes(content)
    assert Reader.load(str(copy), device="cpu").fingerprint != own


def test_its_configuration_alone_says_whether_it_works(file: Path) -> None:
    check = check_config_alone(str(file))
    assert (check.architecture, check.limit) == ("Qwen2ForCausalLM", 2048)


def test_what_is_no_gguf_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "model.gguf"
    with pytest.raises(InvalidArgument, match="is no folder; name a folder"):
        check_model(str(file))
    file.write_bytes(b"PK\3\4")
    with pytest.raises(InvalidArgument, match=r"begins with b'PK\\x03\\x04', not with b'GGUF'; fetch it again"):
        check_model(str(file))
    file.write_bytes(b"GGUF")
    with pytest.raises(InvalidArgument, match=r"cannot load the model .*model\.gguf"):
        Reader.load(str(file), device="cpu")
    monkeypatch.setattr(smollm2.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"package gguf reads GGUF files, .*ragcache-kv\[gguf\]"):
        check_model(str(file))


def test_the_model_s_dtype_is_taken_as_asked(file: Path) -> None:
    reader = Reader.load(str(file), device="cpu", dtype="bfloat16")
    assert reader.model.dtype == torch.bfloat16
