"""An index remembers its adapter, and answers under no other."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import byte_tokenizer, tiny_model, write_adapter
from ragcache_cli.main import app
from test_house import Letters
from typer.testing import CliRunner

from ragcache.engine.answer import Answer
from ragcache.errors import IndexMismatch, InvalidArgument, UnusableAdapter
from ragcache.index.binding import bind_model
from ragcache.index.opening import resolve
from ragcache.index.settings import stats
from ragcache.model.adapter import merge_adapter
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.rag import RagCache


@pytest.fixture(autouse=True)
def _own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "tide.txt").write_text("The Tide project is led by Mara Voss. It is based in Kelmar.")
    return tmp_path / "documents"


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    return write_adapter(tmp_path / "adapter", tiny_model("llama"))


@pytest.fixture
def index(tmp_path: Path, documents: Path, checkpoint: Path, adapter: Path) -> Path:
    """Made by the checkpoint with the adapter."""
    with opened(tmp_path / "index", model=str(checkpoint), adapter=adapter) as rag:
        rag.ingest(documents)
    return tmp_path / "index"


@pytest.fixture
def merged(tmp_path: Path, adapter: Path) -> Path:
    """The same model with the adapter merged beforehand, as a folder."""
    model = tiny_model("llama")
    merge_adapter(model, adapter)
    model.save_pretrained(tmp_path / "merged")
    byte_tokenizer().save_pretrained(tmp_path / "merged")
    return tmp_path / "merged"


def opened(index: Path, **how: Any) -> RagCache:
    return RagCache.open(index, embedder=Letters(), **how)


def asked(index: Path, **how: Any) -> Answer:
    with opened(index, **how) as rag:
        return rag.ask("Who leads Tide?", sampling=Sampling(max_new_tokens=4))


def is_cached(answer: Answer) -> bool:
    states = {chunk.cache for chunk in answer.report.chunks}
    return bool(states) and states <= {"hit", "exact"}


def test_an_index_remembers_its_adapter_and_answers_say_it(index: Path, adapter: Path, checkpoint: Path) -> None:
    answer = asked(index)
    assert is_cached(answer)
    assert (answer.model, answer.adapter) == (str(checkpoint), str(adapter))
    assert answer.as_dict()["adapter"] == stats(index)["adapter"] == str(adapter)
    assert is_cached(asked(index, model=str(checkpoint)))  # the index's own model brings its adapter
    assert is_cached(asked(index, adapter=adapter))


def test_a_model_merged_beforehand_uses_the_same_kv_and_answers_the_same(index: Path, merged: Path) -> None:
    with opened(index) as rag:
        key = bind_model(rag.index.catalog, rag.reader, index)
    first = asked(index)
    again = asked(index, model=str(merged))
    assert is_cached(again)
    assert (again.text, again.adapter) == (first.text, "")
    assert resolve(index, embedder=Letters()).known["name"] != str(merged)
    with opened(index, model=str(merged)) as rag:
        rag.ingest()
    with opened(index) as rag:  # which by now remembers the merged folder
        assert (rag.reader.name, rag.reader.adapter) == (str(merged), "")
        assert bind_model(rag.index.catalog, rag.reader, index) == key
    assert stats(index)["adapter"] == ""


def test_an_index_of_the_merged_model_opens_by_base_and_adapter(
    tmp_path: Path, documents: Path, merged: Path, checkpoint: Path, adapter: Path
) -> None:
    with opened(tmp_path / "other", model=str(merged)) as rag:
        rag.ingest(documents)
    assert is_cached(asked(tmp_path / "other", model=str(checkpoint), adapter=adapter))


def test_another_adapter_or_none_is_another_model(
    index: Path, tmp_path: Path, documents: Path, checkpoint: Path, adapter: Path
) -> None:
    other = write_adapter(tmp_path / "other", tiny_model("llama"), seed=2)
    with pytest.raises(IndexMismatch, match=rf"was made by .* with the adapter {adapter} .*with the adapter {other}"):
        asked(index, adapter=other)
    with pytest.raises(IndexMismatch, match=rf"with the adapter {adapter} .*, not by {checkpoint} \("):
        asked(index, model=Reader.load(str(checkpoint)))
    with opened(tmp_path / "plain", model=str(checkpoint)) as rag:
        rag.ingest(documents)
    with pytest.raises(IndexMismatch, match=rf"was made by {checkpoint} \(.*with the adapter {adapter}"):
        asked(tmp_path / "plain", adapter=adapter)
    assert is_cached(asked(tmp_path / "plain"))  # a refusal leaves what the index remembers


def test_an_adapter_changed_in_place_is_noticed(index: Path, adapter: Path) -> None:
    write_adapter(adapter, tiny_model("llama"), seed=2)
    with pytest.raises(IndexMismatch, match="was made by"):
        asked(index)


def test_an_adapter_that_went_elsewhere_is_named_anew(index: Path, adapter: Path, tmp_path: Path) -> None:
    shutil.move(adapter, tmp_path / "moved")
    with pytest.raises(UnusableAdapter, match=rf"made by .* with the adapter {adapter}.*lies elsewhere now.*--adapter"):
        asked(index)
    assert is_cached(asked(index, adapter=tmp_path / "moved"))
    assert stats(index)["adapter"] == str(adapter), "a question changes nothing"
    with opened(index, adapter=tmp_path / "moved") as rag:
        rag.ingest()
    assert is_cached(asked(index))


def test_an_adapter_does_not_go_into_a_loaded_model(tmp_path: Path, adapter: Path) -> None:
    model = Reader(tiny_model("llama"), byte_tokenizer(), name="mine")
    with pytest.raises(InvalidArgument, match=rf"{adapter}.*into mine, which is loaded already.*Reader\.load"):
        opened(tmp_path / "new", model=model, adapter=adapter)
    assert not (tmp_path / "new").exists()


def test_a_reader_that_was_loaded_with_an_adapter_makes_the_same_index(
    index: Path, checkpoint: Path, adapter: Path
) -> None:
    reader = Reader.load(str(checkpoint), adapter=adapter)
    assert is_cached(asked(index, model=reader))
    assert is_cached(asked(index))


def test_the_bundled_model_takes_only_an_adapter_that_fits_it(tmp_path: Path, adapter: Path) -> None:
    with pytest.raises(UnusableAdapter, match=r"does not fit .*reader.*trained on their/base"):
        opened(tmp_path / "new", model="bundled", adapter=adapter)


def test_a_new_index_needs_the_adapters_model(tmp_path: Path, adapter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAGCACHE_MODEL")
    with pytest.raises(InvalidArgument, match=r"trained on their/base.*name the adapter's model with --model"):
        opened(tmp_path / "new", adapter=adapter)


def test_commands_take_an_adapter_and_show_it(tmp_path: Path, documents: Path, checkpoint: Path, adapter: Path) -> None:
    def run(*words: object) -> Any:
        return CliRunner().invoke(app, [str(word) for word in words])

    index = tmp_path / "index"
    done = run("ingest", documents, "--index", index, "--model", checkpoint, "--adapter", adapter)
    assert done.exit_code == 0, done.output
    assert "says that it was trained on their/base" in done.stderr
    done = run("ask", "Who leads Tide?", "--index", index, "--max-new-tokens", 2, "--json")
    assert json.loads(done.stdout)["adapter"] == str(adapter)
    assert f"with the adapter {adapter}" in run("store", "stats", "--index", index).stdout
    done = run("ask", "Who leads Tide?", "--index", index, "--adapter", tmp_path)
    assert done.exit_code == 2
    assert "holds no adapter_config.json" in done.stderr
