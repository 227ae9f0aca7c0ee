"""What an account may not do is said by name, with the next step that it can take, whichever command it was."""

import errno
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from conftest import tiny_reader
from ragcache_cli.main import app
from typer.testing import CliRunner

from ragcache import RagCache
from ragcache.errors import StorageFull, UnusableIndex
from ragcache.index.archive import export_index
from ragcache.index.index import Index
from ragcache.index.publication import attach
from ragcache.retrieve.vectors import Vectors, guard
from ragcache.store import Catalog, LocalStore


@pytest.fixture
def noread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that this account may not look into, whoever runs the tests."""
    folder, stat = tmp_path / "noread", os.stat

    def refuse(path: object, *how: object, **named: object) -> os.stat_result:
        if str(path).startswith(f"{folder}{os.sep}"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, *how, **named)  # type: ignore[arg-type, call-overload, no-any-return]

    folder.mkdir()
    monkeypatch.setattr(os, "stat", refuse)
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ["ask", "Who?"],
        ["ingest", "."],
        ["documents", "list"],
        ["documents", "remove", "mill.md", "--yes"],
        ["store", "stats"],
        ["store", "verify"],
        ["store", "gc"],
        ["store", "export", "new.tar"],
        ["store", "move", "new"],
        ["store", "import", "."],
    ],
    ids=" ".join,
)
def test_an_index_that_this_account_may_not_look_into_is_named(noread: Path, command: list[str]) -> None:
    done = CliRunner().invoke(app, [*command, "--index", str(noread / "x")])
    assert done.exit_code == 2, done.exception
    assert (
        f"{noread / 'x'} cannot be looked into (Permission denied); name a folder that this account may use"
        in done.stderr
    )


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for make in (lambda path: Index(path, tiny_reader()), lambda path: attach(path, "file:///bucket")):
        with pytest.raises(StorageFull, match=r"file/x cannot be made \(Not a directory\); name a folder"):
            make(tmp_path / "file" / "x")


def test_who_may_only_read_an_index_removes_nothing_of_it(rag: RagCache, monkeypatch: pytest.MonkeyPatch) -> None:
    rag.close()
    path = rag.index.path
    monkeypatch.setattr("ragcache.store.database.is_writable", lambda path: False)
    for command in (["documents", "remove", "*.md", "--yes"], ["store", "gc"]):
        done = CliRunner().invoke(app, [*command, "--index", str(path)])
        assert done.exit_code == 2, done.exception
        assert "may only be read by this account; repeat the command as the one that ingests" in done.stderr
    with closing(Vectors(path / "vectors", "chunks")) as vectors:
        assert vectors.count() == 3


SPACE, ACCOUNT, REPAIR = "free some space", "repeat the command as the account that ingests", "repair it"


def refusing(code: int) -> Callable[..., None]:
    def refuse(*given: object, **named: object) -> None:
        raise OSError(code, os.strerror(code))

    return refuse


@pytest.mark.parametrize(
    ("code", "step"),
    [
        (errno.ENOSPC, SPACE),
        (errno.EDQUOT, SPACE),
        (errno.EACCES, ACCOUNT),
        (errno.EPERM, ACCOUNT),
        (errno.EROFS, ACCOUNT),
        (errno.EIO, REPAIR),
    ],
)
def test_why_the_system_refused_decides_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, step: str
) -> None:
    catalog, store = Catalog(tmp_path / "catalog.sqlite"), LocalStore(tmp_path / "kv")
    with closing(catalog), monkeypatch.context() as patch:
        patch.setattr("tempfile.mkdtemp", refusing(code))
        with pytest.raises(StorageFull, match=step):
            export_index(tmp_path, tmp_path / "x.tar")
        patch.setattr(os, "open", refusing(code))
        with pytest.raises(StorageFull, match=step):
            catalog.set_setting("n", 1)
        patch.setattr(store, "_make_shard", refusing(code))
        with pytest.raises(StorageFull, match=step):
            store.put_if_absent("a" * 64, [b"x"])
        with pytest.raises(StorageFull, match=step), guard(tmp_path):
            refusing(code)()


@pytest.mark.parametrize(("code", "step"), [(13, SPACE), (8, ACCOUNT), (1544, ACCOUNT), (10, REPAIR), (1546, REPAIR)])
def test_why_sqlite_refused_decides_the_next_step(tmp_path: Path, code: int, step: str) -> None:
    with pytest.raises(StorageFull, match=step), guard(tmp_path):
        raise ValueError(f"error returned from database: (code: {code}) it refused")


def test_a_catalogue_that_turned_read_only_is_no_full_disk(tmp_path: Path) -> None:
    with closing(Catalog(tmp_path / "catalog.sqlite")) as catalog:
        catalog.read("PRAGMA query_only = ON")
        with pytest.raises(StorageFull, match=ACCOUNT):
            catalog.set_setting("n", 1)


def test_a_catalogue_that_may_not_be_read_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Catalog(tmp_path / "catalog.sqlite").close()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(UnusableIndex, match=rf"Permission denied\); {ACCOUNT}"):
        Catalog(tmp_path / "catalog.sqlite")
