"""Documents can be listed and forgotten, and what is forgotten is gone: text, vectors, KV, and KV made with it."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from conftest import byte_tokenizer, tiny_model

from ragcache import RagCache
from ragcache.errors import EmptyIndex, InvalidArgument, NoDocuments
from ragcache.index import documents as documents_module
from ragcache.index.collection import Entry
from ragcache.index.documents import Documents
from ragcache.model.reader import Reader

PAGES = {
    "bridge.md": "# The bridge\n\nThe bridge was built in 1931. It is painted green. Two brothers designed it.",
    "harbour.txt": "The harbour master counts the boats every spring. He writes the number into a blue book.",
    "notes/mill.md": "The mill grinds rye on Mondays, and nobody remembers why.",
}
SECRET = "blue book"  # of the harbour


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader(tiny_model("llama"), byte_tokenizer(), name="tiny")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in PAGES.items():
        file = tmp_path / "files" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "files"


@pytest.fixture
def rag(tmp_path: Path, reader: Reader, files: Path) -> Iterator[RagCache]:
    with RagCache.open(tmp_path / "index", model=reader, method="fusionrag") as rag:
        rag.ingest(files, methods=["fusionrag", "in-document"])
        yield rag


def names(rag: RagCache) -> list[str]:
    return [Path(one.source).name for one in rag.documents()]


def keys(rag: RagCache) -> set[str]:
    return {key for (key,) in rag.index.catalog.read("SELECT key FROM encodings")}


def assert_clean(rag: RagCache) -> None:
    """Nothing is on the disk that no document accounts for."""
    assert set(rag.index.store.list()) - {rag.index.prefix_key} == keys(rag)
    assert list(rag.index.store.quarantined()) == []
    assert rag._vectors.ids() == sorted(row.id for row in rag.index.catalog.all_chunks())


def contains(index: Path, words: str) -> list[str]:
    """Files of the index in which some words stand."""
    files = [path for path in index.rglob("*") if path.is_file()]
    return [path.name for path in files if words.encode() in path.read_bytes()]


def test_documents_are_listed_with_their_size_and_when_they_came(rag: RagCache, files: Path) -> None:
    known = rag.documents()
    assert [one.source for one in known] == [str(files / name) for name in sorted(PAGES)]
    rows = rag.index.catalog.all_chunks()
    assert sum(one.tokens for one in known) == sum(len(row.token_ids) for row in rows)
    assert sum(one.chunks for one in known) == len(rows)
    assert sum(one.bytes for one in known) == rag.stats()["bytes"]
    assert all(one.added and datetime.now(UTC) - one.added < timedelta(minutes=10) for one in known)


def test_nothing_of_a_forgotten_document_is_left_on_the_disk(rag: RagCache, files: Path) -> None:
    """What docs/security.md promises, with the index still open."""
    index = rag.index
    assert contains(index.path, SECRET) != []
    [chunk] = [row for row in index.catalog.all_chunks() if SECRET in row.text]
    own = {key for (key,) in index.catalog.read("SELECT key FROM encodings WHERE chunk = ?", chunk.id)}
    fused = {row.key for row in index.catalog.made_with(own)}
    assert fused - own, "other documents were fused with it"
    assert [one.source for one in rag.forget(files / "harbour.txt")] == [str(files / "harbour.txt")]
    assert contains(index.path, SECRET) == []
    assert not (own | fused) & set(index.store.list())
    assert chunk.id not in rag._vectors.ids()
    assert_clean(rag)
    assert all(SECRET not in one.text for one in rag.retrieve("What does the harbour master write?", top_k=9))


@pytest.mark.parametrize("step", ["Vectors.delete", "Catalog.remove_document", "Forgotten.delete"])
def test_forgetting_that_is_killed_leaves_no_vector_without_its_text_and_is_finished_later(
    rag: RagCache, files: Path, step: str, reader: Reader
) -> None:
    """Killed in another process, right after one of its steps."""
    path, [chunk] = rag.index.path, [row for row in rag.index.catalog.all_chunks() if SECRET in row.text]
    rag.close()
    script = f"""
        import os, signal
        from ragcache.index.documents import Documents
        from ragcache.retrieve.vectors import Vectors
        from ragcache.store import Catalog, Forgotten
        owner, name = {step.split(".")[0]}, {step.split(".")[1]!r}
        with Documents.opened({str(path)!r}) as documents:
            found, real = documents.find({str(files / "harbour.txt")!r}), getattr(owner, name)
            def killed(*arguments):
                real(*arguments)
                os.kill(os.getpid(), signal.SIGKILL)
            setattr(owner, name, killed)
            documents.remove(one.id for one in found)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    assert done.returncode == -signal.SIGKILL
    with RagCache.open(path, model=reader) as again:
        assert chunk.id not in again._vectors.ids()
        if step == "Vectors.delete":  # nothing else is gone yet, and it is still named to be forgotten
            assert again.forget(files / "harbour.txt")
        assert names(again) == ["bridge.md", "mill.md"]
        assert_clean(again)
    assert contains(path, SECRET) == []


def test_a_changed_text_leaves_nothing_of_the_old_one(rag: RagCache, files: Path) -> None:
    (files / "harbour.txt").write_text("The harbour master is retired.")
    rag.ingest(files, methods=["fusionrag", "in-document"])
    assert contains(rag.index.path, SECRET) == []
    assert_clean(rag)


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("{}/harbour.txt", ["harbour.txt"]),
        ("{}/notes", ["mill.md"]),
        ("{}/notes/", ["mill.md"]),
        ("{}", ["bridge.md", "harbour.txt", "mill.md"]),
        ("{}/*.md", ["bridge.md"]),
        ("{}/**/*.md", ["bridge.md", "mill.md"]),
        ("{}/n*", ["mill.md"]),
        ("*.md", ["bridge.md", "mill.md"]),
        ("{}/../files/bridge.md", ["bridge.md"]),
    ],
)
def test_a_path_a_folder_or_a_pattern_says_what_is_meant(
    rag: RagCache, files: Path, pattern: str, meant: list[str]
) -> None:
    found = rag._documents.find(pattern.format(files))
    assert sorted(Path(one.source).name for one in found) == meant


def test_paths_count_from_the_working_directory(rag: RagCache, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files / "notes")
    assert [Path(one.source).name for one in rag.forget("../bridge.md", "mill*")] == ["bridge.md", "mill.md"]
    assert names(rag) == ["harbour.txt"]


def test_a_bare_name_is_met_with_the_path_that_may_be_meant(rag: RagCache, files: Path) -> None:
    with pytest.raises(NoDocuments, match=rf"knows no document mill.md \(did you mean {files}/notes/mill.md\?\)"):
        rag.forget("mill.md")


@pytest.mark.parametrize("name", ["report[1].md", "notes (v2)*.md"])
def test_the_path_of_a_known_file_means_that_file_only(
    rag: RagCache, files: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    for other in ("report1.md", "notes (v2) old.md", name):
        Path(other).write_text(f"This is the page {other}.")
    rag.ingest(files)
    for path in (name, files / name):
        assert [Path(one.source).name for one in rag._documents.find(path)] == [name]


def test_many_names_are_looked_up_in_one_pass(rag: RagCache, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(path: str | Path) -> str:
        calls.append(str(path))
        return real(path)

    calls, real = list[str](), documents_module.place_of
    monkeypatch.setattr(documents_module, "place_of", resolve)
    assert len(rag._documents.find(*(files / name for name in PAGES))) == 3
    assert len(calls) == 3, "each path is resolved once, not once for every document"


@pytest.mark.parametrize("pattern", ["nowhere.md", "*.rst", "harbour", "[bh]*.md"])
def test_what_means_no_document_is_an_error_and_nothing_is_removed(rag: RagCache, pattern: str) -> None:
    with pytest.raises(NoDocuments, match=r"knows no document.*`ragcache documents list --index"):
        rag.forget("*", pattern)
    assert len(rag.documents()) == 3


@pytest.mark.parametrize("blank", ["", " "])
def test_a_blank_path_is_refused_and_does_not_mean_the_working_directory(
    rag: RagCache, files: Path, blank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    calls = (rag.ingest, rag.plan, lambda path: rag.forget("*", path), lambda path: RagCache.open(path))
    for call in calls:
        with pytest.raises(InvalidArgument, match="a path is blank"):
            call(blank)
    assert len(rag.documents()) == 3
    assert sorted(str(path.relative_to(files)) for path in files.rglob("*.*")) == sorted(PAGES)


def test_an_index_is_read_and_cleaned_without_its_model(rag: RagCache, files: Path) -> None:
    path = rag.index.path
    before = rag.documents()
    rag.close()
    with Documents.opened(path) as documents:
        assert documents.known() == before
        others = documents.remove(one.id for one in documents.find(files / "harbour.txt"))
        assert others == 2, "the fused encoding of both others was made with it"
    assert contains(path, SECRET) == []
    with RagCache.open(path, model=rag.reader) as again:
        assert names(again) == ["bridge.md", "mill.md"]
        assert_clean(again)
        (files / "harbour.txt").unlink()
        report = again.ingest(files, methods=["fusionrag", "in-document"])
        assert report.encoded == {"fused(neighbours=10)": 2}, "and nothing else"
    with pytest.raises(EmptyIndex, match="ragcache ingest"), Documents.opened(path / "elsewhere"):
        pass


@pytest.mark.parametrize("how", ["emptied", "gone", "one file of it", "seen from elsewhere"])
def test_what_is_gone_from_a_path_is_forgotten_even_if_nothing_is_left(
    rag: RagCache, files: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path: str | Path = files
    for name in PAGES:
        (files / name).unlink()
    if how == "gone":
        (files / "notes").rmdir()
        files.rmdir()
    if how == "one file of it":
        path = files / "harbour.txt"
    if how == "seen from elsewhere":
        monkeypatch.chdir(files / "notes")
        path = ".."
    report = rag.ingest(path)
    removed = 1 if how == "one file of it" else 3
    assert (report.removed, len(report.forgotten), report.added) == (removed, removed, 0)
    assert len(rag.documents()) == 3 - removed
    assert contains(rag.index.path, SECRET) == []
    assert_clean(rag)
    with pytest.raises(NoDocuments):  # it knows nothing of it any more
        rag.ingest(path)


def test_a_path_that_was_never_known_is_still_an_error(rag: RagCache, files: Path, tmp_path: Path) -> None:
    (files / "harbour.txt").unlink()
    for paths in ([tmp_path / "typo"], [files / "harbour.txt", tmp_path / "typo"]):
        with pytest.raises(NoDocuments, match="typo"):
            rag.ingest(paths)
    assert len(rag.documents()) == 3


def test_what_cannot_be_seen_is_not_taken_for_gone(rag: RagCache, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.stat

    def refusing(path: object, *rest: object, **options: object) -> os.stat_result:
        if str(path).endswith("mill.md"):
            raise PermissionError(13, "Permission denied")
        return real(path, *rest, **options)  # type: ignore[arg-type, call-overload]

    monkeypatch.setattr("ragcache.retrieve.vanished.os.stat", refusing)
    (files / "notes" / "mill.md").rename(files / "gone")
    assert rag.ingest(files / "bridge.md", prune=True).removed == 0
    assert len(rag.documents()) == 3


def test_a_file_that_cannot_be_read_does_not_keep_those_that_are_gone(rag: RagCache, files: Path) -> None:
    for name in PAGES:
        (files / name).unlink()
    (files / "broken.md").write_text("")
    with pytest.raises(Exception, match="empty"):
        rag.ingest(files)
    assert rag.documents() == []


def test_a_renamed_folder_leaves_one_copy_and_keeps_its_kv(
    rag: RagCache, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = files.rename(files.parent / "renamed")
    rag.collection("store", methods=["in-document"]).add([Entry("a", "The ferry leaves at noon.", "doc")])
    before = keys(rag)
    encoded: list[int] = []
    encode = Reader.encode_all

    def counting(self: Reader, todo: list) -> list:  # type: ignore[type-arg]
        encoded.append(len(todo))
        return encode(self, todo)

    monkeypatch.setattr(Reader, "encode_all", counting)
    assert rag.ingest(other, methods=["in-document"]).removed == 0
    assert len(rag.documents()) == 7
    report = rag.ingest(other, methods=["in-document"], prune=True)
    assert (report.added, report.removed, encoded) == (0, 3, [])
    assert sorted(report.forgotten) == [str(files / name) for name in sorted(PAGES)]
    assert {one.collection for one in rag.documents() if not one.source.startswith(str(other))} == {"store"}
    assert keys(rag) <= before
    assert_clean_but_for_collections(rag)


def assert_clean_but_for_collections(rag: RagCache) -> None:
    """A vector store's chunks get their vectors when a question is asked."""
    rag.retrieve("Who?")
    assert_clean(rag)


def test_a_rename_in_one_step_computes_nothing_anew(
    rag: RagCache, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = files.rename(files.parent / "renamed")
    monkeypatch.setattr(Reader, "encode_all", lambda *_: pytest.fail("something was computed"))
    report = rag.ingest(other, methods=["in-document"], prune=True)
    assert (report.added, report.removed) == (3, 3)
    assert report.encoded == {"in-document(window=2048)": 3}
    assert_clean(rag)


def test_a_vector_stores_documents_are_forgotten_with_all_of_it_only(rag: RagCache) -> None:
    rag.collection("store").add([Entry("a", "The ferry leaves at noon.", "doc")])
    rag.retrieve("When does the ferry leave?")
    with pytest.raises(NoDocuments, match=r"part of the vector store 'store'.*--collection store"):
        rag.forget("doc")
    with pytest.raises(NoDocuments, match="those it knows: store"):
        rag._documents.of_collection("another")
    found = rag._documents.of_collection("store")
    assert [(one.source, one.collection) for one in found] == [("doc", "store")]
    rag._documents.remove(one.id for one in found)
    assert contains(rag.index.path, "ferry leaves") == []
    assert rag.collection("store").names() == []
    assert len(rag.documents()) == 3
    assert_clean(rag)
