"""An ingestion that is stopped early leaves an index that answers from what was made, and goes on from there."""

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import byte_tokenizer, tiny_model

from ragcache import RagCache
from ragcache.index import neighbours
from ragcache.index.collection import Entry
from ragcache.model.decode import Sampling

SHORT = Sampling(max_new_tokens=4)
QUESTION = "Which colour has house number 3?"
COUNT, RECIPE = 12, "in-document(window=2048)"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("llama")
    tiny_model("llama").save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    for n in range(COUNT):
        (folder / f"{n:02d}.txt").write_text(f"House number {n} is painted in a colour of its own, and nobody minds.")
    return folder


@pytest.fixture
def rag(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RagCache]:
    monkeypatch.setattr("ragcache.index.index.capacity", lambda _: 1)  # one chunk a batch
    with RagCache.open(tmp_path / "index", model=str(model)) as rag:
        yield rag


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of ingestions, which stands still."""
    now = [100.0]
    monkeypatch.setattr("ragcache.index.ingestion.monotonic", lambda: now[0])
    return now


@pytest.fixture
def embedded(rag: RagCache, monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> list[int]:
    """How many texts each call of the embedder was given."""
    calls: list[int] = []
    real = rag.embedder.embed
    monkeypatch.setattr(rag.embedder, "embed", lambda texts: calls.append(len(texts)) or real(texts))  # type: ignore[func-returns-value]
    return calls


def stopping(wanted: str, at: int, by: type[BaseException] = KeyboardInterrupt) -> Callable[[str, int, int], None]:
    """Interrupts a stage when it has come so far."""

    def progress(stage: str, done: int, total: int) -> None:
        if stage.startswith(wanted) and done == at:
            raise by

    return progress


def assert_answers(rag: RagCache, most: int) -> None:
    """From what has KV, and from nothing else."""
    answer = rag.ask(QUESTION, sampling=SHORT, top_k=COUNT)
    assert 0 < len(answer.report.chunks) <= most
    assert {chunk.cache for chunk in answer.report.chunks} <= {"hit", "exact"}
    assert set(rag._vectors.ids()) <= set(rag.index.catalog.encoded(RECIPE)), "no vector points at nothing"


def test_after_an_interrupt_at_the_first_batch_it_answers(rag: RagCache, documents: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        rag.ingest(documents, progress=stopping("encode", 1))
    assert_answers(rag, 1)


def test_an_interrupt_embeds_what_has_kv_and_what_is_left_is_said(rag: RagCache, documents: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        rag.ingest(documents, progress=stopping("encode", 5))
    assert rag._vectors.count() == 5
    said = f"7 of {COUNT} chunks cannot be found yet; run `ragcache ingest --index {rag.index.path}`"
    assert said in rag.ask(QUESTION, sampling=SHORT).report.notes
    assert said in rag.stats()["missing"]
    rag.ingest(documents)
    assert "cannot be found" not in " ".join([*rag.ask(QUESTION, sampling=SHORT).report.notes, *rag.stats()["missing"]])
    rag.collection("store").add([Entry("a", "The ferry leaves at noon.", "doc")])
    assert not rag.stats()["missing"], "the next question embeds what a vector store brings"
    assert not any("cannot be found" in note for note in rag.ask(QUESTION, sampling=SHORT).report.notes)


def test_a_question_counts_chunks_only_while_some_cannot_be_found(
    rag: RagCache, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rag.ingest(documents)
    assert not rag._search.notes()
    monkeypatch.setattr(rag._vectors, "count", lambda: pytest.fail("they are known to be whole"))
    assert not rag._search.notes()


def test_after_a_kill_behind_the_first_batch_it_answers_and_goes_on(
    rag: RagCache, documents: Path, model: Path, tmp_path: Path
) -> None:
    rag.close()
    script = textwrap.dedent(f"""
        import os, signal
        import ragcache.index.index
        from ragcache import RagCache
        ragcache.index.index.capacity = lambda device: 1
        def progress(stage, done, total):
            if stage.startswith("encode") and done == 2:
                os.kill(os.getpid(), signal.SIGKILL)
        RagCache.open({str(tmp_path / "index")!r}, create=False).ingest({str(documents)!r}, progress=progress)
    """)
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=False).returncode == -9
    with RagCache.open(tmp_path / "index", create=False) as again:
        assert_answers(again, 2)
        assert again.ingest(documents).encoded == {RECIPE: COUNT - 2}
        assert len(again.ask(QUESTION, sampling=SHORT, top_k=COUNT).report.chunks) == COUNT


def test_a_resumed_run_embeds_what_has_kv_first_and_nothing_twice(
    rag: RagCache, documents: Path, embedded: list[int]
) -> None:
    with pytest.raises(MemoryError):
        rag.ingest(documents, progress=stopping("encode", 5, MemoryError))
    assert embedded == [1], "the first at once, the others when there are more or after a while"
    with pytest.raises(KeyboardInterrupt):
        rag.ingest(documents, progress=stopping("encode", 0))
    assert embedded == [1, 4]
    rag.ingest(documents)
    assert sum(embedded) == COUNT
    rag.ingest(documents)
    assert sum(embedded) == COUNT


def test_while_encoding_takes_long_chunks_are_embedded_every_few_seconds(
    rag: RagCache, documents: Path, embedded: list[int], clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = rag.index.encode_batch

    def slow(*arguments: Any) -> None:
        clock[0] += 0.6
        real(*arguments)

    monkeypatch.setattr(rag.index, "encode_batch", slow)
    rag.ingest(documents)
    assert embedded == [1, 4, 4, 3]


def test_neighbours_are_found_among_all_chunks_and_so_after_all_were_embedded(
    rag: RagCache, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[int] = []
    real = neighbours.find_neighbours

    def find(embeddings: Any, keys: Sequence[str], *how: Any) -> list[list[int]]:
        searched.append(len(keys))
        return real(embeddings, keys, *how)

    monkeypatch.setattr(neighbours, "find_neighbours", find)
    with pytest.raises(KeyboardInterrupt):
        rag.ingest(documents, methods=["fusionrag"], progress=stopping("encode prefixed", 3))
    rag.ingest(documents, methods=["fusionrag"])
    assert searched == [COUNT]


def test_a_chunk_that_goes_before_it_is_embedded_is_passed_over(rag: RagCache, documents: Path) -> None:
    def removing(stage: str, done: int, total: int) -> None:
        if stage.startswith("encode") and done == COUNT:
            rag.index.remove(str(documents / "03.txt"))

    rag.ingest(documents, progress=removing)
    names: Sequence[str] = [row.id for row in rag.index.catalog.all_chunks()]
    assert sorted(rag._vectors.ids()) == sorted(names)
    assert len(names) == COUNT - 1
