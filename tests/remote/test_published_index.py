"""An index in an object store: one machine ingests, others answer; whatever the store does, no answer is wrong."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import tiny_reader
from faults.small import Letters, write_pages
from remote.conftest import Server
from vllm_ragcache.launch import server_arguments
from vllm_ragcache.served_index import ServedIndex

from ragcache import RagCache, Sampling
from ragcache.errors import (
    EmptyIndex,
    IndexFormat,
    IndexMismatch,
    InvalidArgument,
    NoDocuments,
    StorageFull,
    UnreachableStore,
    UnreadableDocument,
    UnusableIndex,
)
from ragcache.index import publication
from ragcache.index.collection import Entry
from ragcache.index.documents import Documents
from ragcache.index.publication import attach, fetch, limit_copies, local_copy
from ragcache.index.settings import settings_of, stats
from ragcache.model.reader import Reader
from ragcache.retrieve import reading
from ragcache.store import Catalog, LocalStore, RemoteStore, hold_turn, read_attachment, tiered, write_attachment

pytestmark = pytest.mark.slow

URL = "s3://bucket/notes"
QUESTION = "When was the bridge built?"


@pytest.fixture(scope="module")
def reader() -> Reader:
    return tiny_reader()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch, s3: Server) -> None:
    def make(url: str) -> RemoteStore:
        return RemoteStore(url, timeout=2.0, patience=s3.patience)

    monkeypatch.setattr(tiered, "RemoteStore", make)
    monkeypatch.setattr(publication, "RemoteStore", make)


@pytest.fixture
def opened(tmp_path: Path, reader: Reader) -> Callable[..., RagCache]:
    def opened(folder: str | Path, **how: Any) -> RagCache:
        return RagCache.open(tmp_path / folder, model=reader, embedder=Letters(), **how)

    return opened


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    return write_pages(tmp_path / "files")


@pytest.fixture
def published(s3: Server, opened: Callable[..., RagCache], pages: Path) -> Iterator[RagCache]:
    with opened("writer", remote=URL) as rag:
        rag.ingest(pages)
        yield rag


def asked(rag: RagCache) -> tuple[str, list[str]]:
    answer = rag.ask(QUESTION, sampling=Sampling(max_new_tokens=6))
    return answer.text, [chunk.cache for chunk in answer.report.chunks]


def test_another_machine_answers_from_what_one_has_ingested(
    published: RagCache, opened: Callable[..., RagCache], tmp_path: Path, s3: Server
) -> None:
    fetch(URL, tmp_path / "copy")
    with opened("copy") as copy:
        assert asked(copy) == asked(published)
        assert "miss" not in asked(copy)[1]
        kept = copy.index.store.total_bytes()
        assert kept
        s3.asked.clear()
        assert asked(copy) == asked(published)
        assert s3.asked == [], "all that it takes is here by now"
        with pytest.raises(StorageFull, match="only be read"):
            copy.ingest(tmp_path / "files")
    assert stats(tmp_path / "copy")["chunks"] == stats(tmp_path / "writer")["chunks"]
    assert stats(tmp_path / "copy")["missing_kv"] == 0


def test_what_went_before_an_error_goes_from_the_object_store_too(
    published: RagCache, opened: Callable[..., RagCache], tmp_path: Path, pages: Path
) -> None:
    first, *others = sorted(pages.iterdir())
    for page in others:
        page.unlink()
    first.write_text("")
    with pytest.raises(UnreadableDocument):
        published.ingest(pages)
    assert published.documents() == []
    fetch(URL, tmp_path / "copy")
    with opened("copy") as copy:
        assert copy.documents() == []


def published_texts(folder: Path) -> list[str]:
    """What a machine that comes now may read."""
    fetch(URL, folder)
    with closing(Catalog(folder / "catalog.sqlite", read_only=True)) as catalog:
        return sorted(text for _, text in catalog.texts())


@pytest.mark.parametrize("at_rest", [False, True], ids=["open", "at rest"])
def test_a_removal_that_could_not_be_published_is_published_when_it_is_repeated(
    published: RagCache, s3: Server, tmp_path: Path, pages: Path, at_rest: bool
) -> None:
    gone, *_ = sorted(pages.iterdir())
    text = gone.read_text().strip()
    assert any(text in one for one in published_texts(tmp_path / "before"))
    s3.fail(10_000, "503")
    with pytest.raises(UnreachableStore):
        published.forget(gone)
    s3.heal()
    if at_rest:
        with Documents.opened(tmp_path / "writer") as documents, pytest.raises(NoDocuments):
            documents.find(gone)
    else:
        with pytest.raises(NoDocuments):
            published.forget(gone)
    assert not any(text in one for one in published_texts(tmp_path / "after"))


def test_what_a_vector_store_deletes_goes_from_the_object_store_at_once_and_what_it_adds_with_the_end(
    published: RagCache, tmp_path: Path
) -> None:
    store = published.collection("letters")
    store.add([Entry("n1", "The letter of dismissal of Ada.", "ada"), Entry("n2", "Lunch is at noon.", "lunch")])
    published.close()
    assert {"The letter of dismissal of Ada.", "Lunch is at noon."} <= {*published_texts(tmp_path / "copy")}
    published.close()  # once more does nothing
    with RagCache.open(tmp_path / "writer", model=published.reader, embedder=Letters()) as rag:
        rag.collection("letters").discard(["n1"])
        left = published_texts(tmp_path / "copy")
    assert "Lunch is at noon." in left
    assert "The letter of dismissal of Ada." not in left


def test_a_copys_folder_that_is_cleared_meanwhile_costs_no_answer(
    published: RagCache, opened: Callable[..., RagCache], tmp_path: Path
) -> None:
    fetch(URL, tmp_path / "copy")
    with opened("copy") as copy:
        shutil.rmtree(tmp_path / "copy" / "kv")
        assert asked(copy) == asked(published)


def test_a_copy_that_cannot_be_written_is_refused_with_its_folder(published: RagCache, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StorageFull, match=r"copy of s3://bucket/notes cannot be written to .*XDG_CACHE_HOME"):
        fetch(URL, tmp_path / "file" / "copy")


@pytest.mark.parametrize("broken", [{}, {"files": {"": {"digest": "0"}}}, {"files": {"secret": {}}}, {"files": []}])
def test_a_snapshot_that_does_not_say_what_it_holds_is_refused(
    published: RagCache, tmp_path: Path, broken: dict[str, Any]
) -> None:
    RemoteStore(URL).put("snapshot.json", json.dumps({"format": 1, "published": 1.0, **broken}).encode())
    with pytest.raises(IndexFormat, match=r"snapshot.json at .* is damaged .*delete it there"):
        fetch(URL, tmp_path / "copy")


def test_vllm_does_not_begin_on_a_copy_whose_kv_it_would_not_fetch(published: RagCache, tmp_path: Path) -> None:
    fetch(URL, tmp_path / "copy")
    for begin in (ServedIndex, server_arguments):
        with pytest.raises(InvalidArgument, match=r"copy of s3://bucket/notes, and vLLM does not fetch"):
            begin(tmp_path / "copy")
    assert ServedIndex(tmp_path / "writer").catalog.edition()


def test_a_reader_whose_file_cannot_be_opened_again_for_a_moment_goes_on_when_it_can(
    published: RagCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch(URL, tmp_path / "copy")
    file = tmp_path / "copy" / "catalog.sqlite"
    with closing(Catalog(file, read_only=True)) as catalog:
        edition = catalog.edition()
        file.rename(tmp_path / "away")
        for _ in range(2):
            with pytest.raises(UnusableIndex, match="cannot be opened"):
                catalog.edition()
        (tmp_path / "away").rename(file)
        assert catalog.edition() == edition


def test_a_copy_follows_what_is_ingested_and_forgotten(
    published: RagCache, opened: Callable[..., RagCache], tmp_path: Path
) -> None:
    fetch(URL, tmp_path / "copy")
    with opened("copy") as copy:  # stays open meanwhile
        (tmp_path / "files" / "new.txt").write_text("The Heron barge carries gravel to Orlu.")
        published.ingest(tmp_path / "files")
        before = len(copy.documents())
        fetch(URL, tmp_path / "copy")
        assert len(copy.documents()) == before + 1
        assert any("Heron" in chunk.text for chunk in copy.retrieve("Where does the Heron barge go?", top_k=10))
        published.forget(tmp_path / "files" / "new.txt")
        fetch(URL, tmp_path / "copy")
        assert len(copy.documents()) == before
    assert len(list(RemoteStore(URL).list("snapshots/"))) <= 10, "old snapshots go"


def test_a_copy_lets_go_of_the_kv_of_removed_text(
    published: RagCache, opened: Callable[..., RagCache], pages: Path, tmp_path: Path
) -> None:
    fetch(URL, tmp_path / "copy")
    with opened("copy") as copy:
        for page in sorted(pages.iterdir()):
            copy.ask(page.read_text()[:60], top_k=10, sampling=Sampling(max_new_tokens=1))
        kept = set(LocalStore(tmp_path / "copy" / "kv").list())
    (tmp_path / "copy" / ".fetch-killed").mkdir()
    published.forget(min(pages.iterdir()))
    gone = kept - set(published.index.store.list())
    assert gone
    fetch(URL, tmp_path / "copy")
    assert set(LocalStore(tmp_path / "copy" / "kv").list()) == kept - gone
    assert not list((tmp_path / "copy").glob(".fetch-*"))


def test_vectors_are_published_while_no_other_process_writes_them(
    published: RagCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied, copy = [], reading.copy_collection

    def watched(path: Path, folder: Path) -> Path:
        with pytest.raises(TimeoutError), hold_turn(tmp_path / "writer" / "vectors.lock", 0):
            pass
        copied.append(path)
        return copy(path, folder)

    monkeypatch.setattr(reading, "copy_collection", watched)
    (tmp_path / "files" / "new.txt").write_text("The Heron barge carries gravel to Orlu.")
    published.ingest(tmp_path / "files")
    assert copied[-1:] == [tmp_path / "writer" / "vectors"]


def test_a_fetch_that_was_killed_before_it_noted_its_snapshot_is_made_again(
    published: RagCache, opened: Callable[..., RagCache], tmp_path: Path
) -> None:
    fetch(URL, tmp_path / "copy")
    known = read_attachment(tmp_path / "copy")
    assert known is not None
    write_attachment(tmp_path / "copy", replace(known, snapshot=""))
    fetch(URL, tmp_path / "copy")
    assert read_attachment(tmp_path / "copy") == known
    with opened("copy") as copy:
        assert asked(copy) == asked(published)


def test_a_copy_whose_text_is_gone_from_the_store_makes_it_anew(
    published: RagCache, opened: Callable[..., RagCache], tmp_path: Path
) -> None:
    fetch(URL, tmp_path / "copy")
    text, _ = asked(published)
    remote = RemoteStore(URL)
    for name in list(remote.list("kv/")):
        remote.delete(name)
    with opened("copy") as copy:
        answer = copy.ask(QUESTION, sampling=Sampling(max_new_tokens=6))
    assert answer.text == text
    assert {chunk.cache for chunk in answer.report.chunks} == {"miss"}
    assert all("does not have it" in chunk.reason for chunk in answer.report.chunks)


@pytest.mark.parametrize("fault", ["503", "slow", "cut"])
def test_a_store_that_fails_now_and_then_changes_no_answer(
    published: RagCache, opened: Callable[..., RagCache], tmp_path: Path, s3: Server, fault: str
) -> None:
    s3.patience = 20.0
    s3.fail(1, fault, method="GET")
    fetch(URL, tmp_path / "copy")
    s3.fail(1, fault, method="GET", part="/kv/")
    with opened("copy") as copy:
        assert asked(copy) == asked(published)


def test_a_store_that_is_down_costs_time_and_no_answer(
    published: RagCache, opened: Callable[..., RagCache], tmp_path: Path, s3: Server
) -> None:
    fetch(URL, tmp_path / "copy")
    text, _ = asked(published)
    s3.fail(10_000, "503")
    with opened("copy") as copy:
        answer = copy.ask(QUESTION, sampling=Sampling(max_new_tokens=6))
    assert answer.text == text
    assert {chunk.cache for chunk in answer.report.chunks} == {"miss"}
    assert all("could not be read" in chunk.reason for chunk in answer.report.chunks)


def test_an_ingestion_that_the_store_stops_resumes(
    s3: Server, opened: Callable[..., RagCache], pages: Path, tmp_path: Path
) -> None:
    with opened("writer", remote=URL) as rag:
        s3.fault = lambda method, path: "503" if method == "PUT" and len(s3.asked) > 4 else ""
        with pytest.raises(UnreachableStore, match="could not be written to"):
            rag.ingest(pages)
        with pytest.raises(EmptyIndex, match="--remote"):
            fetch(URL, tmp_path / "copy")
        s3.heal()
        report = rag.ingest(pages)
        encodings = rag.index.catalog.stats()["encodings"]
        assert [one["chunks"] for one in encodings.values()] == [report.chunks] * len(encodings)
        assert set(rag.index.store.list()) >= rag.index.catalog.keys()
    fetch(URL, tmp_path / "copy")
    with opened("copy") as copy:
        assert "miss" not in asked(copy)[1]


def test_an_index_that_was_local_takes_its_kv_along(
    s3: Server, opened: Callable[..., RagCache], pages: Path, tmp_path: Path
) -> None:
    with opened("writer") as rag:
        rag.ingest(pages)
        keys = rag.index.catalog.keys()
    with opened("writer", remote=URL) as rag:
        assert set(rag.index.store.list()) >= keys
        assert rag.ingest(pages).encoded == {}
        limit_copies(rag.index, 1)
    with opened("writer") as rag:  # it remembers where
        assert rag.index.store.shared
        fetch(URL, tmp_path / "copy")


def test_one_place_belongs_to_one_index(published: RagCache, opened: Callable[..., RagCache], tmp_path: Path) -> None:
    with pytest.raises(IndexMismatch, match="another index"):
        attach(tmp_path / "second", URL)
    with pytest.raises(IndexMismatch, match="is published at"):
        attach(tmp_path / "writer", "s3://bucket/elsewhere")
    with pytest.raises(IndexMismatch, match="no copy"):
        fetch(URL, tmp_path / "writer")
    fetch(URL, tmp_path / "copy")
    with pytest.raises(IndexMismatch, match="is a copy of"):
        attach(tmp_path / "copy", URL + "2")


def test_credentials_are_written_nowhere(published: RagCache, s3: Server, tmp_path: Path) -> None:
    fetch(URL, tmp_path / "copy")
    remote = RemoteStore(URL)
    stored = [one.numpy().tobytes() for name in remote.list("") if (one := remote.get(name)) is not None]
    files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert len(stored) > 5
    assert not [one for one in (*stored, *files) if b"a-secret-of-the-provider" in one or b"an-id" in one]


def test_what_is_published_is_checked_before_it_takes_a_place(published: RagCache, s3: Server, tmp_path: Path) -> None:
    remote = RemoteStore(URL)
    found = remote.get("snapshot.json")
    assert found is not None
    manifest = json.loads(found.numpy().tobytes())
    remote.put("snapshots/" + manifest["files"]["catalog.sqlite"]["digest"], b"SQLite format 3\0 but another one")
    with pytest.raises(IndexFormat, match="is not what was published"):
        fetch(URL, tmp_path / "copy")
    assert not (tmp_path / "copy" / "catalog.sqlite").exists()
    manifest["files"] = {"vectors/../../evil": manifest["files"]["secret"]}
    remote.put("snapshot.json", json.dumps(manifest).encode())
    with pytest.raises(IndexFormat, match="no file of an index"):
        fetch(URL, tmp_path / "copy")


def test_a_copy_is_never_written_to(published: RagCache, tmp_path: Path) -> None:
    fetch(URL, tmp_path / "copy")
    file = tmp_path / "copy" / "catalog.sqlite"
    before = file.read_bytes()
    catalog = Catalog(file)
    assert not catalog.writable
    catalog.close()
    settings_of(tmp_path / "copy")
    assert file.read_bytes() == before
    assert not Path(f"{file}-wal").exists()


def test_a_url_is_an_index(
    published: RagCache, s3: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: Reader
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with RagCache.open(URL, model=reader, embedder=Letters()) as copy:
        assert asked(copy) == asked(published)
    s3.fail(10_000, "503")
    with pytest.warns(UserWarning, match="answering from the copy of"):
        folder = local_copy(URL, max_bytes=10_000)
    attached = read_attachment(folder)
    assert attached is not None
    assert attached.replica
    shutil.rmtree(tmp_path / "cache")
    with pytest.raises(UnreachableStore):
        local_copy(URL)


def test_a_budget_is_kept_and_remembered(published: RagCache, opened: Callable[..., RagCache], tmp_path: Path) -> None:
    fetch(URL, tmp_path / "copy", max_bytes=20_000)
    with opened("copy") as copy:
        assert asked(copy) == asked(published)
        assert copy.index.store.total_bytes() <= 20_000
    fetch(URL, tmp_path / "copy")
    attached = read_attachment(tmp_path / "copy")
    assert attached is not None
    assert attached.max_bytes == 20_000
