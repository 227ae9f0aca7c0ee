"""What a file is known by: one path, whatever links lead to it; and what is emptied is forgotten."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.small import Letters, write_pages

from ragcache import RagCache
from ragcache.errors import UnreadableDocument
from ragcache.model.reader import Reader


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write_pages(tmp_path / "files")


@pytest.fixture
def rag(tmp_path: Path, reader: Reader) -> Iterator[RagCache]:
    with RagCache.open(tmp_path / "index", model=reader, embedder=Letters()) as rag:
        yield rag


def names(rag: RagCache) -> list[str]:
    return [Path(one.source).name for one in rag.documents()]


def test_a_folder_given_from_elsewhere_and_by_a_link_is_one_folder(
    rag: RagCache, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(files)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    rag.ingest("../files")
    monkeypatch.chdir(tmp_path)
    for path in ("link", "files", tmp_path / "link", "link/bridge.md"):
        report = rag.ingest(path)
        assert (report.added, report.changed, report.removed) == (0, 0, 0), path
    assert names(rag) == ["bridge.md", "harbour.txt", "mill.md"]
    (files / "mill.md").unlink()
    monkeypatch.chdir(tmp_path / "work")
    assert rag.ingest("../link").removed == 1
    assert [Path(one.source).name for one in rag.forget("../link/harbour.txt")] == ["harbour.txt"]
    (files / "bridge.md").unlink()
    assert rag.ingest(tmp_path / "link").removed == 1
    assert names(rag) == ["harbour.txt"], "whose file is still there"


def test_what_an_older_version_knew_by_a_link_is_not_doubled(rag: RagCache, files: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(files)
    rag.ingest(files)
    with rag.index.catalog.transaction() as connection:  # as it wrote them
        connection.execute("DELETE FROM documents WHERE source LIKE '%mill%' OR source LIKE '%harbour%'")
    old = tmp_path / "link" / "mill.md"
    rag.index.put(str(old), "", [(old.read_text(), 0, len(old.read_text()))], {})
    report = rag.ingest(tmp_path / "link")
    assert (report.added, report.removed, report.unchanged) == (2, 1, 1)
    assert names(rag) == ["bridge.md", "harbour.txt", "mill.md"]
    assert rag.ingest(files).unchanged == 3


@pytest.mark.parametrize("path", ["files", "files/mill.md"])
def test_an_emptied_file_is_forgotten(rag: RagCache, files: Path, path: str) -> None:
    rag.ingest(files)
    (files / "mill.md").write_text(" \n")
    if path == "files":
        report = rag.ingest(files)
        assert (report.removed, report.forgotten) == (1, (str(files / "mill.md"),))
        assert "mill.md can't be read: it is empty" in report.errors[0]
    else:
        with pytest.raises(UnreadableDocument, match="it is empty"):
            rag.ingest(files / "mill.md")
    assert names(rag) == ["bridge.md", "harbour.txt"]
    assert all("rye" not in chunk.text for chunk in rag.retrieve("What does the mill grind?", top_k=9))


def test_a_file_that_is_broken_for_now_is_kept(rag: RagCache, files: Path) -> None:
    rag.ingest(files)
    (files / "mill.md").write_bytes(os.urandom(500))
    assert rag.ingest(files).removed == 0
    assert len(names(rag)) == 3


@pytest.mark.parametrize("kind", ["pipe", "device", "link out"])
def test_what_is_no_file_of_the_folder_is_named_and_holds_nothing_up(tmp_path: Path, files: Path, kind: str) -> None:
    """In a process of its own, which would hang."""
    strange = files / "strange.txt"
    if kind == "pipe":
        os.mkfifo(strange)
    else:
        strange.symlink_to("/dev/zero" if kind == "device" else __file__)
    script = (
        f"from ragcache.retrieve import find; found = find([{str(files)!r}]); print(len(found.files), found.errors)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("3 (")
    assert "strange.txt can't be read: it is a" in done.stdout
    script = f"from ragcache.retrieve.documents import load; load({str(strange)!r})"
    if kind != "link out":  # which may be named itself
        done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=60)
        assert "UnreadableDocument" in done.stderr
