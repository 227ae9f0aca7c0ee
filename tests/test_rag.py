"""The whole way: files in, answers out, restart and change in between, on real Chroma and the real embedder."""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import byte_tokenizer, tiny_model

from ragcache import RagCache
from ragcache.errors import (
    EmptyIndex,
    IndexMismatch,
    InvalidArgument,
    MissingEncoding,
    NoDocuments,
    UnreadableDocument,
    UnusableIndex,
)
from ragcache.index.collection import Entry
from ragcache.model.decode import Sampling
from ragcache.store import Catalog

SHORT = Sampling(max_new_tokens=4)
PAGES = {
    "bridge.md": "# The bridge\n\nThe bridge was built in 1931. It is painted green. Two brothers designed it.",
    "harbour.txt": "The harbour master counts the boats every spring. He writes the number into a blue book.",
    "mill.html": "<html><title>Mill</title><body><p>The mill grinds rye on Mondays.</p></body></html>",
}


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tiny Qwen2 and Llama checkpoints on disk, with a tokenizer, as a user would have them."""
    folders = {}
    for name in ("qwen2", "llama"):
        folders[name] = tmp_path_factory.mktemp(name)
        tiny_model(name).save_pretrained(folders[name])
        byte_tokenizer().save_pretrained(folders[name])
    return folders


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    for name, text in PAGES.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def rag(tmp_path: Path, checkpoints: dict[str, Path], documents: Path) -> Iterator[RagCache]:
    with RagCache.open(tmp_path / "index", model=str(checkpoints["qwen2"]), method="fusionrag") as rag:
        rag.ingest(documents, methods=["fusionrag", "naive"])
        yield rag


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"history": [{"role": "user", "content": "hi"}]}, r"one of history= is {'role'.*give messages, Message\("),
        ({"history": [("user", "hi")]}, r"one of history= is \('user', 'hi'\)"),
        (
            {"sampling": {"max_new_tokens": 5}},
            r"sampling is {'max_new_tokens': 5}; give Sampling\(max_new_tokens=100\)",
        ),
        ({"retriever": "dense"}, r"retriever is 'dense'; give an object with retrieve.*RagCache.open\(retriever="),
    ],
)
@pytest.mark.parametrize("verb", ["ask", "stream"])
def test_what_is_no_message_sampling_or_retriever_is_refused_by_name(
    rag: RagCache, verb: str, how: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        getattr(rag, verb)("When was the bridge built?", **how)


def test_one_name_or_pattern_is_as_good_as_a_list_of_it(rag: RagCache, documents: Path) -> None:
    assert rag.ingest(documents, methods="naive", exclude="*.html").unchanged == 2
    for wrong, message in (
        ({"paths": 5}, "paths is 5; give a path"),
        ({"chunk_tokens": 100.5}, "chunk_tokens is 100.5"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            rag.ingest(**{"paths": documents, **wrong})
    assert rag.chunk_tokens != 100.5


def test_times_mean_the_same_however_a_question_is_asked(rag: RagCache, monkeypatch: pytest.MonkeyPatch) -> None:
    embed = rag.embedder.embed

    def slow(texts: Sequence[str]) -> object:
        time.sleep(0.2)
        return embed(texts)

    monkeypatch.setattr(rag.embedder, "embed", slow)
    stream = rag.stream("What colour is the bridge?", sampling=SHORT)
    for one in (rag.ask("What colour is the bridge?", sampling=SHORT).as_dict()["ms"], stream.answer.as_dict()["ms"]):
        assert one["retrieve"] >= 200
        assert one["first_token"] > 0
        assert one["total"] >= one["retrieve"] + one["first_token"]


def test_a_question_is_answered_from_cached_chunks(rag: RagCache) -> None:
    answer = rag.ask("What colour is the bridge?", top_k=3, sampling=SHORT)
    assert Path(answer.sources[0].source).name == "bridge.md"
    assert answer.sources[0].score is not None
    assert answer.sources[0].score > answer.sources[-1].score  # type: ignore[operator]
    assert {c.cache for c in answer.report.chunks} <= {"hit", "exact"}
    assert answer.report.ms.retrieve > 0
    shown = answer.as_dict()
    fields = "answer question model method recompute chunks tokens charged charged_flops ms compare"
    assert set(fields.split()) <= set(shown)
    assert set(shown["tokens"]) == {"context", "question", "reused", "recomputed", "charged"}
    stages = "retrieve match load place select prefill first_token total auxiliary harvest"
    assert set(shown["ms"]) == set(stages.split())
    assert {"id", "source", "tokens", "cache", "reason"} <= set(shown["chunks"][0])


def test_an_index_remembers_its_model_method_and_sizes(rag: RagCache, tmp_path: Path) -> None:
    before = rag.ask("What colour is the bridge?", sampling=SHORT)
    rag.close()
    with RagCache.open(tmp_path / "index", create=False) as again:
        after = again.ask("What colour is the bridge?", sampling=SHORT)
    assert (before.text, before.model, before.report.method) == (after.text, after.model, after.report.method)
    assert {c.cache for c in after.report.chunks} <= {"hit", "exact"}


def test_a_method_that_an_index_is_opened_with_holds_for_that_opening(
    rag: RagCache, tmp_path: Path, documents: Path
) -> None:
    rag.close()
    for method in ("full", "link0"):
        with RagCache.open(tmp_path / "index", method=method) as other:
            assert other.method == method
            other.ingest(documents, methods=["fusionrag"])  # which makes nothing for the method
    with RagCache.open(tmp_path / "index", create=False) as again:
        assert again.stats()["method"] == "fusionrag"
        assert again.ask("What colour is the bridge?", sampling=SHORT).report.method == "fusionrag"


@pytest.mark.parametrize("bring", ["file", "store"])
def test_an_index_answers_by_the_method_that_its_kv_was_last_made_for(
    rag: RagCache, tmp_path: Path, documents: Path, bring: str
) -> None:
    rag.close()
    with RagCache.open(tmp_path / "index", method="link0") as other:
        if bring == "file":
            (documents / "quay.txt").write_text("The quay is long, and the crane on it is blue.")
            other.ingest(documents)
        else:
            other.collection("notes").add([Entry.of("q", "The quay is long, and the crane on it is blue.", None)])
    with RagCache.open(tmp_path / "index", create=False) as again:
        answer = again.ask("What colour is the crane?", top_k=4, sampling=SHORT)
    assert answer.report.method == "link0"
    assert answer.report.cached == 4


def test_another_model_refuses_the_index(rag: RagCache, tmp_path: Path, checkpoints: dict[str, Path]) -> None:
    with pytest.raises(IndexMismatch, match=r"qwen2.*llama"):
        RagCache.open(tmp_path / "index", model=str(checkpoints["llama"]))


def test_re_ingesting_changes_only_what_changed(rag: RagCache, documents: Path) -> None:
    chunks = rag.stats()["chunks"]
    same = rag.ingest(documents)
    assert (same.unchanged, same.added, same.changed, same.removed, same.encoded) == (3, 0, 0, 0, {})
    (documents / "bridge.md").write_text("# The bridge\n\nThe bridge was repainted. It is painted purple now.")
    (documents / "mill.html").unlink()
    report = rag.ingest(documents)
    assert (report.unchanged, report.changed, report.removed) == (1, 1, 1)
    assert rag.stats()["chunks"] == chunks - 1
    found = rag.retrieve("What colour is the bridge?", top_k=3)
    assert any("purple" in chunk.text for chunk in found)
    assert not any("green" in chunk.text or "rye" in chunk.text for chunk in found)
    answer = rag.ask("What colour is the bridge?", sampling=SHORT)
    assert all(c.cache != "miss" for c in answer.report.chunks)


def test_documents_that_an_older_version_split_are_split_again(rag: RagCache, documents: Path) -> None:
    row = rag.index.catalog.document_by_source(str(documents / "bridge.md"))
    assert row is not None
    chunks = rag.index.catalog.chunks_of(row.id)
    older = {key: value for key, value in row.metadata.items() if key != "splitter"}
    rag.index.put(row.source, row.digest, [(chunk.text, chunk.start, chunk.end) for chunk in chunks], older)
    report = rag.ingest(documents)
    assert (report.unchanged, report.changed, report.encoded) == (2, 1, {})
    assert rag.ingest(documents).unchanged == 3


def test_a_new_document_with_another_method_adds_its_encoding(rag: RagCache, documents: Path) -> None:
    with pytest.raises(MissingEncoding, match="ragcache ingest --method link0"):
        rag.ask("What colour is the bridge?", method="link0", sampling=SHORT)
    report = rag.ingest(documents, methods=["link0"])
    assert report.encoded == {"sink(tokens=4)": 3}
    assert rag.ask("What colour is the bridge?", method="link0", sampling=SHORT).report.cached == 3


def test_vectors_lost_in_a_kill_are_made_again(rag: RagCache, documents: Path) -> None:
    rag._vectors.delete(rag._vectors.ids())
    with pytest.raises(EmptyIndex):
        rag.ask("What colour is the bridge?")
    rag.ingest(documents)
    assert len(rag.retrieve("What colour is the bridge?", top_k=9)) == 3


def test_a_plan_writes_nothing(tmp_path: Path, checkpoints: dict[str, Path], documents: Path) -> None:
    with RagCache.open(tmp_path / "index", model=str(checkpoints["qwen2"])) as rag:
        plan = rag.plan(documents, methods=["fusionrag", "naive"])
        assert (plan.documents, plan.chunks) == (3, 3)
        assert plan.bytes == plan.bytes_per_token * plan.tokens * 3, "alone, the base encoding and the fused encoding"
        assert plan.seconds > 0
        assert plan.break_even_questions > 0
        assert rag.stats()["chunks"] == 0
        with pytest.raises(EmptyIndex, match="ragcache ingest"):
            rag.ask("Anything?")


def test_unreadable_files_do_not_stop_the_rest(rag: RagCache, documents: Path) -> None:
    (documents / "junk.txt").write_bytes(os.urandom(4000))
    (documents / "empty.md").write_text("")
    (documents / "image.png").write_bytes(b"\x89PNG")
    report = rag.ingest(documents)
    assert len(report.errors) == 2
    assert [Path(path).name for path in report.skipped] == ["image.png"]
    assert rag.stats()["chunks"] == 3


def test_nothing_to_ingest_is_an_error(rag: RagCache, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    with pytest.raises(NoDocuments):
        rag.ingest(tmp_path / "nothing")
    (tmp_path / "nothing" / "empty.txt").write_text(" ")
    with pytest.raises(UnreadableDocument, match="empty"):
        rag.ingest(tmp_path / "nothing")


def test_bad_values_are_refused(rag: RagCache, tmp_path: Path) -> None:
    with pytest.raises(EmptyIndex, match="there is no index"):
        RagCache.open(tmp_path / "elsewhere", create=False)
    with pytest.raises(InvalidArgument, match="top_k is 0"):
        rag.ask("What?", top_k=0)
    with pytest.raises(InvalidArgument, match="blank"):
        rag.ask(" ")
    with pytest.raises(InvalidArgument, match="chunk_tokens is 1"):
        rag.ingest(tmp_path / "documents", chunk_tokens=1)
    with pytest.raises(InvalidArgument, match="embedded by"):
        RagCache.open(tmp_path / "index", embedder="another/embedder")


def test_chunks_keep_to_the_size_asked_for(rag: RagCache, documents: Path) -> None:
    rag.ingest(documents, chunk_tokens=40)
    lengths = [len(row.token_ids) for row in rag.index.catalog.all_chunks()]
    assert max(lengths) <= 40
    assert len(lengths) > 3
    assert rag.chunk_tokens == 40


def test_by_default_chunks_are_read_behind_their_own_documents(
    tmp_path: Path, checkpoints: dict[str, Path], documents: Path
) -> None:
    with RagCache.open(tmp_path / "plain", model=str(checkpoints["qwen2"])) as rag:
        rag.ingest(documents)
        answer = rag.ask("What colour is the bridge?", sampling=SHORT)
        assert (answer.report.method, rag.method) == ("auto", "auto")
        assert list(rag.stats()["encodings"]) == ["in-document(window=2048)"]
        assert {chunk.cache for chunk in answer.report.chunks} <= {"hit", "exact"}


def test_a_closed_index_says_so_and_how_it_is_opened_again(rag: RagCache, documents: Path) -> None:
    path, question = rag.index.path, "What colour is the bridge?"
    before, kept = rag.ask(question, sampling=SHORT).text, rag.collection("kept")
    rag.close()
    rag.close()
    uses = [
        lambda: rag.ask(question),
        lambda: rag.engine.complete(question),
        lambda: rag.ingest(documents),
        rag.documents,
        kept.names,
        lambda: kept.add([Entry("a", "The mill grinds rye.", "mill")]),
        lambda: rag.index.catalog.set_setting("a", 1),
        rag.index.catalog.truncate_log,
    ]
    for use in uses:
        with pytest.raises(UnusableIndex, match=rf"{path} was closed; open it again with RagCache.open\('{path}'\)"):
            use()
    with RagCache.open(path) as again:
        assert again.ask(question, sampling=SHORT).text == before


def test_a_closed_reader_of_an_index_does_not_open_it_again(rag: RagCache) -> None:
    reading = Catalog(rag.index.catalog.path, read_only=True)
    reading.close()
    rag.index.catalog.set_setting("changed", 1)  # which a reader follows
    with pytest.raises(UnusableIndex, match="was closed"):
        reading.setting("changed")
