"""Disks that fail for a moment, or that know less than POSIX: nothing good is thrown away, and an index is made."""

import errno
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from faults.small import Letters, write_pages

from ragcache import RagCache
from ragcache.errors import CorruptBlob
from ragcache.model.decode import Sampling
from ragcache.store import LocalStore, load_or_create_secret

KEY = "ab" * 32
SHORT = Sampling(max_new_tokens=2)
QUESTION = "When was the bridge built?"


def failing(real: Callable[..., Any], times: int, code: int) -> Callable[..., Any]:
    left = [times]

    def fail(*given: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] >= 0:
            raise OSError(code, os.strerror(code))
        return real(*given, **options)

    return fail


def test_a_read_that_fails_once_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(tmp_path)
    store.put_if_absent(KEY, [b"some bytes"])
    monkeypatch.setattr(os, "readv", failing(os.readv, 1, errno.EIO))
    assert bytes(store.get(KEY).numpy()) == b"some bytes"
    monkeypatch.setattr(os, "readv", failing(os.readv, 2, errno.EIO))
    with pytest.raises(CorruptBlob, match="cannot be read") as caught:
        store.get(KEY)
    assert not caught.value.read


def test_what_the_disk_does_not_give_is_a_miss_and_stays_where_it_is(
    rag: RagCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(rag.index.store.list())
    first = rag.ask(QUESTION, sampling=SHORT, top_k=3)
    rag.index.release()
    with monkeypatch.context() as patch:
        patch.setattr(os, "readv", failing(os.readv, 10**6, errno.EIO))
        failed = rag.ask(QUESTION, sampling=SHORT, top_k=3)
    assert failed.text == first.text
    assert any("cannot be read" in chunk.reason for chunk in failed.report.chunks)
    assert set(rag.index.store.list()) == before
    assert list(rag.index.store.quarantined()) == []
    rag.index.release()
    assert all(chunk.cache != "miss" for chunk in rag.ask(QUESTION, sampling=SHORT, top_k=3).report.chunks)


def test_a_blob_that_cannot_be_put_aside_is_a_miss(rag: RagCache, monkeypatch: pytest.MonkeyPatch) -> None:
    first = rag.ask(QUESTION, sampling=SHORT, top_k=3)
    rag.index.release()
    for path in rag.index.store.root.glob("??/*"):
        path.write_bytes(path.read_bytes()[:-1])
    monkeypatch.setattr(Path, "replace", failing(Path.replace, 10**6, errno.EACCES))
    again = rag.ask(QUESTION, sampling=SHORT, top_k=3)
    assert (again.text, {chunk.cache for chunk in again.report.chunks}) == (first.text, {"miss"})


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.EMLINK])
def test_without_hard_links_a_file_is_renamed(tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", failing(os.link, 10**6, code))
    store = LocalStore(tmp_path / "kv")
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda n: store.put_if_absent(KEY, [b"%d" % n * 9]), range(8)))
    assert won.count(True) == 1
    assert bytes(store.get(KEY).numpy()) == b"%d" % won.index(True) * 9
    assert [path for path in (tmp_path / "kv").rglob("*") if path.name.startswith(".tmp-")] == []
    with ThreadPoolExecutor(8) as pool:
        secrets = set(pool.map(lambda _: load_or_create_secret(tmp_path / "secret"), range(8)))
    assert len(secrets) == 1


def test_an_error_that_is_not_about_links_is_still_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(tmp_path)
    monkeypatch.setattr(os, "link", failing(os.link, 1, errno.EIO))
    with pytest.raises(OSError, match="refused a write"):
        store.put_if_absent(KEY, [b"a"])
    assert list(store.list()) == []


def test_a_folder_that_was_deleted_under_an_open_index_is_made_again(rag: RagCache) -> None:
    first = rag.ask(QUESTION, sampling=SHORT, top_k=3)
    shutil.rmtree(rag.index.store.root)
    rag.index.release()
    again = rag.ask(QUESTION, sampling=SHORT, top_k=3)
    assert again.text == first.text
    assert {chunk.cache for chunk in again.report.chunks} == {"miss"}
    rag.index.release()
    assert "miss" not in {chunk.cache for chunk in rag.ask(QUESTION, sampling=SHORT, top_k=3).report.chunks}


#: What makes root obey the permissions of files as everybody else does.
_POWERLESS = (
    ["setpriv", "--inh-caps=-dac_override,-dac_read_search", "--bounding-set=-dac_override,-dac_read_search"]
    if os.geteuid() == 0
    else []
)
_NEEDS_SETPRIV = pytest.mark.skipif(
    bool(_POWERLESS) and shutil.which("setpriv") is None, reason="root may write anywhere"
)
ASKING = """
    import sys
    from pathlib import Path
    from faults.small import Letters
    from ragcache import RagCache
    from ragcache.index.documents import Documents
    from ragcache.model.decode import Sampling
    path = Path(sys.argv[1])
    with RagCache.open(path, embedder=Letters(), create=False) as rag:
        for number in range(2):
            answer = rag.ask("When was the bridge built?", sampling=Sampling(max_new_tokens=2), top_k=3)
            print(answer.text.encode(), [chunk.cache for chunk in answer.report.chunks], len(rag.documents()))
            rag.index.release()
        if sys.argv[2:]:
            sys.stdin.readline() if sys.argv[2] == "wait" else None
            print(len(rag.ask("What does the crane lift?", top_k=9, sampling=Sampling(max_new_tokens=2)).sources))
        print(rag.stats()["chunks"], rag.index.writable)
    with Documents.opened(path) as documents:
        print(len(documents.known()))
"""


@pytest.fixture
def public(tmp_path: Path, checkpoint: Path) -> Path:
    """A folder with a model in it."""
    shutil.copytree(checkpoint, tmp_path / "model")
    return tmp_path


def asked_by_another(index: Path, *how: str) -> "subprocess.Popen[str]":
    """A process of an account that may read everything and write nothing."""
    paths = [str(Path(__file__).parents[1]), *sys.path]
    return subprocess.Popen(
        [*_POWERLESS, sys.executable, "-W", "ignore", "-c", textwrap.dedent(ASKING), str(index), *how],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "RAGCACHE_CALIBRATE": "0"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def allow_reading(index: Path) -> None:
    for path in [index, *index.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


@pytest.mark.slow
@_NEEDS_SETPRIV
def test_an_account_that_may_only_read_asks(public: Path) -> None:
    index = public / "index"
    with RagCache.open(index, model=str(public / "model"), embedder=Letters()) as rag:
        rag.ingest(write_pages(public / "files"))
        text = rag.ask(QUESTION, sampling=SHORT, top_k=3).text
    allow_reading(index)
    before = {path: path.stat().st_mtime_ns for path in index.rglob("*")}
    asking = asked_by_another(index)
    said, errors = asking.communicate(timeout=120)
    assert asking.returncode == 0, errors
    lines = said.splitlines()
    assert lines[0] == lines[1] == f"{text.encode()} ['exact', 'hit', 'hit'] 3", said
    assert lines[2:] == ["3 False", "3"]
    assert {path: path.stat().st_mtime_ns for path in index.rglob("*")} == before


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="takes an account that may write to what others may only read")
@_NEEDS_SETPRIV
def test_a_reader_sees_what_the_writing_account_ingests_meanwhile(public: Path) -> None:
    index = public / "index"
    with RagCache.open(index, model=str(public / "model"), embedder=Letters()) as rag:
        rag.ingest(write_pages(public / "files"))
    allow_reading(index)
    asking = asked_by_another(index, "wait")
    assert asking.stdout is not None
    assert asking.stdin is not None
    first = [asking.stdout.readline(), asking.stdout.readline()]
    assert all("'miss'" not in line and line for line in first), (first, asking.communicate())
    with RagCache.open(index, model=str(public / "model"), embedder=Letters()) as rag:
        (public / "files" / "crane.md").write_text("The crane lifts stones.")
        rag.ingest(public / "files")
        said, errors = asking.communicate("\n", timeout=120)
    assert asking.returncode == 0, errors
    assert said.splitlines() == ["4", "4 False", "4"]
