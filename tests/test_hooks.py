"""What a program brings of its own: an embedder, a loaded model, a system prompt, a splitter; each is remembered."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import byte_tokenizer, tiny_model
from numpy.typing import NDArray

from ragcache import RagCache, Reader
from ragcache.errors import IndexFormat, IndexMismatch, InvalidArgument
from ragcache.index.opening import resolve
from ragcache.model.decode import Sampling
from ragcache.model.fingerprint import weights_in_memory
from ragcache.prompt import SYSTEM

SHORT = Sampling(max_new_tokens=4)
PAGES = {
    "harbour.txt": "The harbour master counts the boats.\n\nHe writes the number into a blue book every spring.",
    "mill.txt": "The mill grinds rye on Mondays.\n\nThe miller sleeps on Tuesdays.",
}


class Letters:
    """Counts letters: alike is what has the same ones."""

    def __init__(self, name: str = "letters", max_tokens: int | None = None) -> None:
        self.name, self.max_tokens = name, max_tokens

    def embed(self, texts: Sequence[str]) -> list[list[int]]:
        return [[text.lower().count(chr(letter)) for letter in range(97, 123)] for text in texts]


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    for name, text in PAGES.items():
        (folder / name).write_text(text)
    return folder


def made(path: Path, documents: Path, **hooks: Any) -> None:
    with RagCache.open(path, **{"method": "naive", "embedder": Letters(), **hooks}) as rag:
        rag.ingest(documents)


def asked(path: Path, **hooks: Any) -> Any:
    with RagCache.open(path, **hooks, create=False) as rag:
        return rag.ask("Who counts boats?", sampling=SHORT)


def test_an_embedder_of_one_s_own_finds_chunks(tmp_path: Path, documents: Path, checkpoint: Path) -> None:
    made(tmp_path / "index", documents, model=str(checkpoint))
    with RagCache.open(tmp_path / "index", embedder=Letters(), create=False) as rag:
        best = rag.retrieve("The harbour master counts the boats.", top_k=1)[0]
    assert Path(best.source).name == "harbour.txt"
    assert best.score is not None
    assert 0 < best.score <= 1 + 1e-6, "vectors of any length are compared by their angle"


def test_an_index_is_opened_with_its_own_embedder_only(tmp_path: Path, documents: Path, checkpoint: Path) -> None:
    made(tmp_path / "index", documents, model=str(checkpoint))
    with pytest.raises(InvalidArgument, match=r"embedded by letters, not other"):
        RagCache.open(tmp_path / "index", embedder=Letters("other"))
    with pytest.raises(IndexMismatch, match=r"embedded by letters, which is no model.*embedder=…"):
        RagCache.open(tmp_path / "index")
    with pytest.raises(InvalidArgument, match="list is no embedder"):
        RagCache.open(tmp_path / "new", embedder=[])  # type: ignore[arg-type]


def test_an_embedder_s_limit_bounds_the_chunks(tmp_path: Path, documents: Path, checkpoint: Path) -> None:
    class Narrow(Letters):
        def count(self, text: str) -> int:
            return len(text.split())

    made(tmp_path / "index", documents, model=str(checkpoint), embedder=Narrow(max_tokens=4))
    with RagCache.open(tmp_path / "index", embedder=Narrow(max_tokens=4)) as rag:
        assert max(len(row.text.split()) for row in rag.index.catalog.all_chunks()) == 4


def test_what_is_no_vector_for_each_text_is_refused(tmp_path: Path, documents: Path, checkpoint: Path) -> None:
    class Broken(Letters):
        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:  # type: ignore[override]
            return np.full((len(texts), 3), np.nan, dtype=np.float32)

    with pytest.raises(InvalidArgument, match="the embedder letters gave"):
        made(tmp_path / "index", documents, model=str(checkpoint), embedder=Broken())


def test_an_index_of_a_loaded_model_opens_by_name(tmp_path: Path, documents: Path, checkpoint: Path) -> None:
    made(tmp_path / "index", documents, model=tiny_model("llama"), tokenizer=byte_tokenizer())
    answer = asked(tmp_path / "index", model=str(checkpoint), embedder=Letters())
    assert {chunk.cache for chunk in answer.report.chunks} == {"hit"}
    with RagCache.open(tmp_path / "index", model=str(checkpoint), embedder=Letters()) as rag:
        rag.ingest()
    again = asked(tmp_path / "index", embedder=Letters())  # which remembers the name
    assert again.text == answer.text


def test_an_index_made_by_name_opens_with_the_loaded_model(tmp_path: Path, documents: Path, checkpoint: Path) -> None:
    made(tmp_path / "index", documents, model=str(checkpoint))
    loaded = Reader(tiny_model("llama"), byte_tokenizer(), name="loaded")
    answer = asked(tmp_path / "index", model=loaded, embedder=Letters())
    assert {chunk.cache for chunk in answer.report.chunks} == {"hit"}


def test_other_weights_dtypes_and_tokenizers_are_refused(tmp_path: Path, documents: Path, checkpoint: Path) -> None:
    import torch

    made(tmp_path / "index", documents, model=tiny_model("llama"), tokenizer=byte_tokenizer())
    changed = tiny_model("llama")
    with torch.no_grad():
        changed.model.layers[3].mlp.up_proj.weight[0, 0] += 1
    others = [
        {"model": changed, "tokenizer": byte_tokenizer()},
        {"model": tiny_model("llama"), "tokenizer": byte_tokenizer(None)},
        {"model": str(checkpoint), "dtype": "bfloat16"},
    ]
    for other in others:
        with pytest.raises(IndexMismatch, match="was made by"):
            asked(tmp_path / "index", embedder=Letters(), **other)


def test_weights_are_hashed_in_memory_only_where_the_files_do_not_tell(
    tmp_path: Path, documents: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "index", documents, model=str(checkpoint))
    hashed: list[object] = []

    def hash_weights(model: Any) -> str:
        hashed.append(model)
        return weights_in_memory(model)

    monkeypatch.setattr("ragcache.model.reader.weights_in_memory", hash_weights)
    asked(tmp_path / "index", embedder=Letters())
    assert not hashed, "a cold start hashes nothing"
    asked(tmp_path / "index", model=Reader(tiny_model("llama"), byte_tokenizer()), embedder=Letters())
    assert len(hashed) == 1


def test_a_model_that_is_gone_is_asked_for(tmp_path: Path, documents: Path) -> None:
    made(tmp_path / "index", documents, model=tiny_model("llama"), tokenizer=byte_tokenizer())
    with pytest.raises(InvalidArgument, match=r"was made by LlamaForCausalLM, and there is no model.*--model"):
        resolve(tmp_path / "index", embedder=Letters())


def test_a_model_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"LlamaForCausalLM.*tokenizer=…"):
        RagCache.open(tmp_path / "index", model=tiny_model("llama"))
    with pytest.raises(InvalidArgument, match="a tokenizer goes with a loaded model"):
        RagCache.open(tmp_path / "index", model="bundled", tokenizer=byte_tokenizer())


def test_a_system_prompt_stands_before_chunks_and_history(tmp_path: Path, documents: Path, checkpoint: Path) -> None:
    from ragcache.engine.chat import Message

    made(tmp_path / "index", documents, model=str(checkpoint), system="Answer like a pirate.")
    with RagCache.open(tmp_path / "index", embedder=Letters(), create=False) as rag:
        assert "like a pirate" in rag.index.prefix_segment.text
        assert SYSTEM not in rag.index.prefix_segment.text
        answer = rag.ask("Who?", history=[Message("user", "Hello"), Message("assistant", "Ahoy")], sampling=SHORT)
        assert rag.index.template.system == "Answer like a pirate."
    assert {chunk.cache for chunk in answer.report.chunks} == {"hit"}


def test_another_system_prompt_is_refused_by_both_names(tmp_path: Path, documents: Path, checkpoint: Path) -> None:
    made(tmp_path / "index", documents, model=str(checkpoint), system="Answer like a pirate.")
    with pytest.raises(IndexMismatch, match=r"'Answer like a pirate.', not 'Be brief.'"):
        RagCache.open(tmp_path / "index", embedder=Letters(), system="Be brief.")
    made(tmp_path / "usual", documents, model=str(checkpoint))
    with pytest.raises(IndexMismatch, match=r"not 'Be brief\.'"):
        RagCache.open(tmp_path / "usual", embedder=Letters(), system="Be brief.")
    RagCache.open(tmp_path / "usual", embedder=Letters(), system=SYSTEM).close()
    with pytest.raises(InvalidArgument, match="blank"):
        RagCache.open(tmp_path / "new", model=str(checkpoint), system=" ")


def paragraphs(text: str) -> list[str]:
    return text.split("\n\n")


class Overlapping:
    name = "overlapping"

    def split_text(self, text: str) -> list[str]:
        return [text[start : start + 40] for start in range(0, len(text), 30)]


def test_documents_are_split_as_a_program_says(tmp_path: Path, documents: Path, checkpoint: Path) -> None:
    made(tmp_path / "index", documents, model=str(checkpoint), splitter=paragraphs)
    with RagCache.open(tmp_path / "index", embedder=Letters(), splitter=paragraphs) as rag:
        texts = [row.body for row in rag.index.catalog.all_chunks()]  # below its title line
        assert sorted(texts) == sorted(part for page in PAGES.values() for part in paragraphs(page))
        assert rag.ingest(documents).unchanged == 2
        (documents / "mill.txt").write_text("word " * 200)
        rag.ingest(documents)
        assert max(len(row.token_ids) for row in rag.index.catalog.all_chunks()) <= rag.chunk_tokens


def test_pieces_may_overlap_and_know_where_they_stand(tmp_path: Path, documents: Path, checkpoint: Path) -> None:
    made(tmp_path / "index", documents, model=str(checkpoint), splitter=Overlapping())
    with RagCache.open(tmp_path / "index", embedder=Letters(), splitter=Overlapping()) as rag:
        rows = [row for row in rag.index.catalog.all_chunks() if "harbour" in rag.index.chunks([row.id])[0].source]
    page = PAGES["harbour.txt"]
    assert len(rows) == 3
    assert all(page[row.start : row.end] == row.body for row in rows)
    assert rows[1].start < rows[0].end


def test_an_index_is_ingested_into_with_its_own_splitter_only(
    tmp_path: Path, documents: Path, checkpoint: Path
) -> None:
    made(tmp_path / "index", documents, model=str(checkpoint), splitter=paragraphs)
    with pytest.raises(IndexMismatch, match=r"split by paragraphs, not by overlapping"):
        RagCache.open(tmp_path / "index", embedder=Letters(), splitter=Overlapping())
    with RagCache.open(tmp_path / "index", embedder=Letters()) as rag:
        assert rag.ask("Who counts boats?", sampling=SHORT).sources, "questions need no splitter"
        assert rag.ingest(documents).unchanged == 2
        (documents / "new.txt").write_text("The baker is new in town.")
        with pytest.raises(IndexMismatch, match=r"split by paragraphs; to ingest.*splitter=…"):
            rag.ingest(documents)
    made(tmp_path / "usual", documents, model=str(checkpoint))
    with pytest.raises(IndexMismatch, match="the built-in splitter, not by paragraphs"):
        RagCache.open(tmp_path / "usual", embedder=Letters(), splitter=paragraphs)


def test_pieces_that_a_document_does_not_hold_are_refused(tmp_path: Path, documents: Path, checkpoint: Path) -> None:
    def shout(text: str) -> list[str]:
        return [text.upper()]

    with pytest.raises(InvalidArgument, match=r"the splitter .*shout gave a piece .*word for word"):
        made(tmp_path / "index", documents, model=str(checkpoint), splitter=shout)
    with pytest.raises(InvalidArgument, match="int is no splitter"):
        RagCache.open(tmp_path / "other", model=str(checkpoint), splitter=3)  # type: ignore[arg-type]


def test_dtypes_devices_and_files_are_refused_before_anything_is_loaded(
    tmp_path: Path, documents: Path, checkpoint: Path
) -> None:
    made(tmp_path / "index", documents, model=str(checkpoint), dtype="float32")
    with pytest.raises(IndexMismatch, match="made in float32, not bfloat16"):
        resolve(tmp_path / "index", embedder=Letters(), dtype="bfloat16")
    with pytest.raises(InvalidArgument, match="no dtype is called 'float'"):
        resolve(tmp_path / "new", dtype="float")
    with pytest.raises(InvalidArgument, match="no device is called 'gpu'"):
        resolve(tmp_path / "new", device="gpu")
    (tmp_path / "file").touch()
    with pytest.raises(IndexFormat, match="is a file, but an index is a folder"):
        resolve(tmp_path / "file")
