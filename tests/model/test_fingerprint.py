"""A reader's identity: the same for the same KV, in any process and folder, and never for another."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import CHAT, LLAMA3, byte_tokenizer, tiny_model, tiny_reader
from tokenizers import AddedToken

from ragcache.model.fingerprint import fingerprint
from ragcache.model.reader import Reader
from ragcache.model.weight_files import weights_of_files

SMALL: dict[str, Any] = {"num_hidden_layers": 2}


@pytest.fixture(autouse=True)
def _own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def renamed_token() -> Any:
    tokenizer = byte_tokenizer()
    tokenizer.add_tokens([AddedToken("<extra>")])
    return tokenizer


def nudged() -> Any:
    model = tiny_model("llama", **SMALL)
    with torch.no_grad():
        model.model.layers[1].mlp.down_proj.weight[0, 0] += 1e-3
    return model


CHANGES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "one weight": lambda: (nudged(), byte_tokenizer()),
    "dtype": lambda: (tiny_model("llama", dtype=torch.bfloat16, **SMALL), byte_tokenizer()),
    "a token": lambda: (tiny_model("llama", **SMALL), renamed_token()),
    "chat template": lambda: (tiny_model("llama", **SMALL), byte_tokenizer(CHAT + " ")),
    "no chat template": lambda: (tiny_model("llama", **SMALL), byte_tokenizer(None)),
    "rope theta": lambda: (
        tiny_model("llama", rope_parameters={"rope_type": "default", "rope_theta": 2e4}, **SMALL),
        byte_tokenizer(),
    ),
    "rope type": lambda: (tiny_model("llama", rope_parameters=LLAMA3, **SMALL), byte_tokenizer()),
    "norm epsilon": lambda: (tiny_model("llama", rms_norm_eps=1e-3, **SMALL), byte_tokenizer()),
}


def test_the_fingerprint_changes_with_everything_that_makes_a_kv() -> None:
    prints = {"unchanged": tiny_reader("llama", **SMALL).fingerprint}
    prints |= {name: Reader(*made(), name="x").fingerprint for name, made in CHANGES.items()}
    assert len(set(prints.values())) == len(prints), prints


def test_the_fingerprint_is_of_the_content_not_of_name_or_attention() -> None:
    model = tiny_model("llama", **SMALL)
    model.set_attn_implementation("eager")
    assert Reader(model, byte_tokenizer(), name="other").fingerprint == tiny_reader("llama", **SMALL).fingerprint


def test_the_fingerprint_is_the_same_in_another_process(tmp_path: Path) -> None:
    program = "from conftest import tiny_reader; print(tiny_reader('gemma3').fingerprint)"
    path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"  # another than here, where it is drawn unless given
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    assert done.stdout.split()[-1] == tiny_reader("gemma3").fingerprint


def test_a_folder_has_one_fingerprint_wherever_it_lies_until_its_weights_change(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    tiny_model("llama", **SMALL).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    first = Reader.load(str(folder), device="cpu").fingerprint
    remembered = json.loads((tmp_path / "cache" / "ragcache" / "weights.json").read_text())
    assert len(remembered) == 1
    assert Reader.load(str(folder), device="cpu").fingerprint == first
    moved = shutil.copytree(folder, tmp_path / "elsewhere")
    assert Reader.load(str(moved), device="cpu").fingerprint == first
    nudged().save_pretrained(folder)
    assert Reader.load(str(folder), device="cpu").fingerprint != first
    assert Reader.load(str(moved), device="cpu").fingerprint == first


def exchange(file: Path, other: Path, how: str) -> None:
    """Put another file of the same size in a file's place, with the same time of modification."""
    before = file.stat()
    assert other.stat().st_size == before.st_size
    if how == "renamed":
        file.unlink()
        shutil.copy(other, file)
    else:
        file.write_bytes(other.read_bytes())
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("how", ["in place", "renamed", "on an image"])
def test_weights_exchanged_under_the_same_size_and_time_are_noticed(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "on an image":  # which reports the same for both
        monkeypatch.setattr("ragcache.model.weight_files._status", lambda file: (1, 2, 3))
    folder, other = tmp_path / "model", tmp_path / "other"
    tiny_model("llama", **SMALL).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    changed = tiny_model("llama", **SMALL)
    with torch.no_grad():  # a single matrix of many
        changed.model.layers[1].mlp.down_proj.weight *= 1.01
    changed.save_pretrained(other)
    first = Reader.load(str(folder), device="cpu").fingerprint
    exchange(folder / "model.safetensors", other / "model.safetensors", how)
    assert Reader.load(str(folder), device="cpu").fingerprint != first


def test_files_of_a_hubs_cache_are_known_by_their_name_until_they_are_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, blobs = tmp_path / "plain", tmp_path / "hub" / "blobs"
    tiny_model("llama", **SMALL).save_pretrained(plain)
    expected = weights_of_files(plain)
    snapshot = tmp_path / "hub" / "snapshots" / "a"
    for folder in (blobs, snapshot):
        folder.mkdir(parents=True)
    content = (plain / "model.safetensors").read_bytes()
    blob = blobs / hashlib.sha256(content).hexdigest()
    blob.write_bytes(content)
    (snapshot / "model.safetensors").symlink_to(blob)
    with monkeypatch.context() as patch:
        patch.setattr("hashlib.file_digest", lambda *_: pytest.fail("it was hashed"))
        assert [weights_of_files(snapshot) for _ in range(2)] == [expected] * 2
    blob.write_bytes(content[:-1] + b"x")
    assert weights_of_files(snapshot) != expected


def test_what_an_older_version_remembered_by_size_and_time_alone_is_not_believed(tmp_path: Path) -> None:
    folder, memory = tmp_path / "model", tmp_path / "cache" / "ragcache" / "weights.json"
    tiny_model("llama", **SMALL).save_pretrained(folder)
    expected = weights_of_files(folder)
    file = folder / "model.safetensors"
    known = {f"{file}|{file.stat().st_size}|{file.stat().st_mtime_ns}": "0" * 64}
    memory.write_text(json.dumps(known))
    assert weights_of_files(folder) == expected
    assert list(json.loads(memory.read_text())) == [str(file)]


def test_one_folder_in_two_dtypes_is_two_readers(tmp_path: Path) -> None:
    tiny_model("llama", **SMALL).save_pretrained(tmp_path / "model")
    byte_tokenizer().save_pretrained(tmp_path / "model")
    load = {dtype: Reader.load(str(tmp_path / "model"), dtype=dtype, device="cpu") for dtype in ("float32", "bfloat16")}
    assert load["float32"].fingerprint != load["bfloat16"].fingerprint
    assert load["float32"].fingerprint == Reader.load(str(tmp_path / "model"), device="cpu").fingerprint


def test_a_model_that_is_cast_once_it_is_loaded_is_another_reader() -> None:
    model, weights = tiny_model("llama", **SMALL), "of these files"
    before = fingerprint(model, byte_tokenizer(), [], weights)
    model.to(torch.bfloat16)  # its configuration does not say so
    assert fingerprint(model, byte_tokenizer(), [], weights) != before


@pytest.mark.parametrize("damage", ["not json", "[]", None])
def test_a_lost_or_damaged_memory_of_digests_costs_only_time(tmp_path: Path, damage: str | None) -> None:
    folder = tmp_path / "model"
    tiny_model("llama", **SMALL).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    first = Reader.load(str(folder), device="cpu").fingerprint
    memory = tmp_path / "cache" / "ragcache" / "weights.json"
    memory.unlink()
    if damage is None:
        memory.mkdir()  # cannot be read or replaced
    else:
        memory.write_text(damage)
    assert Reader.load(str(folder), device="cpu").fingerprint == first
