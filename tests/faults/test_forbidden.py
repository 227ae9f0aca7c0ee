"""What an account may not do is said by name, with the next step that it can take, whichever command it was."""

import errno
import os
from pathlib import Path

import pytest
from conftest import tiny_reader
from ragcache_cli.main import app
from typer.testing import CliRunner

from ragcache.errors import StorageFull
from ragcache.index.index import Index
from ragcache.index.publication import attach


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
    assert f"{noread / 'x'} cannot be looked into (Permission denied); name a folder that this account may use" in done.stderr


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for make in (lambda path: Index(path, tiny_reader()), lambda path: attach(path, "file:///bucket")):
        with pytest.raises(StorageFull, match=r"file/x cannot be made \(Not a directory\); name a folder"):
            make(tmp_path / "file" / "x")
