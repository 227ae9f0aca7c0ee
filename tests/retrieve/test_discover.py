"""Finding files: what is read, what patterns leave out, and what is named because it cannot be read."""

import os
import socket
import sys
from pathlib import Path

import pytest

from ragcache.errors import InvalidArgument, NoDocuments, UnreadableDocument, UnsupportedDocument
from ragcache.retrieve import Found, find, gone


def grow(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return root


def names(found: Found, root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in found.files]


def test_supported_files_of_folders_are_found_once_and_sorted(tmp_path: Path) -> None:
    grow(tmp_path, "b.md", "sub/a.TXT", "sub/deep/c.htm", "skip.png")
    found = find([tmp_path, tmp_path / "b.md", str(tmp_path / "sub" / ".." / "b.md")])
    assert names(found, tmp_path) == ["b.md", "sub/a.TXT", "sub/deep/c.htm"]
    assert found.skipped == (str(tmp_path / "skip.png"),)
    assert found.ignored == found.errors == ()


def test_relative_and_absolute_names_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grow(tmp_path, "a.txt")
    monkeypatch.chdir(tmp_path)
    assert find(["a.txt"]) == find([tmp_path]) == find(["."])


def test_a_named_file_of_another_type_is_refused_with_the_supported_ones(tmp_path: Path) -> None:
    grow(tmp_path, "x.png")
    with pytest.raises(UnsupportedDocument, match=r"x\.png.*\.txt, \.md.*\.pdf, \.docx"):
        find([tmp_path / "x.png"])


def test_no_document_and_no_such_path_are_errors_that_name_the_path(tmp_path: Path) -> None:
    grow(tmp_path, "x.png", "node_modules/a.md")
    with pytest.raises(NoDocuments, match=rf"{tmp_path.name}.*patterns leave out 1 entries.*node_modules"):
        find([tmp_path])
    with pytest.raises(NoDocuments, match=r"no .*gone"):
        find([tmp_path / "gone"])
    with pytest.raises(NoDocuments, match="no path"):
        find([])


def test_hidden_entries_and_what_tools_leave_behind_are_ignored_and_named(tmp_path: Path) -> None:
    left = [".git/x.md", ".venv/lib/x.py", "web/node_modules/y/r.md", "src/__pycache__/z.py", ".hidden.txt", "~$a.docx"]
    found = find([grow(tmp_path, "a.md", "web/app.min.js", *left)])
    assert names(found, tmp_path) == ["a.md"]
    expected = [".git/", ".venv/", "web/node_modules/", "src/__pycache__/", ".hidden.txt", "~$a.docx", "web/app.min.js"]
    assert sorted(found.ignored) == sorted(f"{tmp_path}/{name}" for name in expected)


def test_patterns_of_one_s_own_leave_out_and_take_back_in(tmp_path: Path) -> None:
    grow(tmp_path, "a.md", "old/b.md", "deep/old/c.md", "x.log.txt", ".github/how.md", "drafts/d.md", "drafts/keep.md")
    found = find([tmp_path], exclude=["/old", "*.log.*", "!.github/", "drafts/*", "!keep.md"])
    assert names(found, tmp_path) == [".github/how.md", "a.md", "deep/old/c.md", "drafts/keep.md"]


def test_ignore_files_hold_below_their_folder_and_the_inner_one_overrules_the_outer(tmp_path: Path) -> None:
    grow(tmp_path, "a.md", "gen/b.md", "sub/gen/c.md", "sub/d.md", "sub/e.md", "f.md", "other/d.md")
    (tmp_path / ".gitignore").write_text("# made by a tool\ngen/\nf.md\n!\n")  # git passes over the last line, too
    (tmp_path / "sub" / ".gitignore").write_text("!gen/\n/d.md\n")
    (tmp_path / ".ragcacheignore").write_text("!f.md\n")
    assert names(find([tmp_path]), tmp_path) == ["a.md", "f.md", "other/d.md", "sub/e.md", "sub/gen/c.md"]
    everything = ["a.md", "f.md", "gen/b.md", "other/d.md", "sub/d.md", "sub/e.md", "sub/gen/c.md"]
    assert names(find([tmp_path], ignore_files=False), tmp_path) == everything


def test_an_option_overrules_an_ignore_file(tmp_path: Path) -> None:
    grow(tmp_path, "a.md", "b.md")
    (tmp_path / ".gitignore").write_text("a.md\n")
    assert names(find([tmp_path], exclude=["!a.md", "b.md"]), tmp_path) == ["a.md"]


def test_what_was_named_itself_is_read_whatever_patterns_say(tmp_path: Path) -> None:
    grow(tmp_path, "a.md", "build/b.md", ".hidden.txt")
    (tmp_path / ".gitignore").write_text("a.md\nbuild/\n")
    found = find([tmp_path, tmp_path / "a.md", tmp_path / "build", tmp_path / ".hidden.txt"], exclude=["*.txt"])
    assert names(found, tmp_path) == [".hidden.txt", "a.md", "build/b.md"]
    assert found.ignored == (str(tmp_path / ".gitignore"),)


def test_a_pattern_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"'!' is no pattern"):
        find([grow(tmp_path, "a.md")], exclude=["*.log", "!"])


def test_pipes_sockets_and_broken_links_are_named_and_stop_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(tmp_path, "a.md")
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "gone.md").symlink_to("nowhere")
    (tmp_path / "round.md").symlink_to("round.md")
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.txt")
        found = find([tmp_path])
    assert names(found, tmp_path) == ["a.md"]
    assert [Path(error.partition(" can't be read: ")[0]).name for error in found.errors] == [
        "gone.md", "pipe.txt", "round.md", "socket.txt"
    ]  # fmt: skip
    assert "it is a pipe" in found.errors[1]
    assert "leads nowhere" in found.errors[0]


def test_a_pipe_or_device_that_was_named_itself_is_unreadable(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    for path in (tmp_path / "pipe.txt", Path("/dev/null")):
        with pytest.raises(UnreadableDocument, match=r"it is a (pipe|device), not a file"):
            find([path])


def test_links_within_a_folder_are_followed_once_and_others_are_named(tmp_path: Path) -> None:
    grow(tmp_path, "docs/a.md", "docs/.kept/c.md", "elsewhere/b.md")
    (tmp_path / "docs" / "b.md").symlink_to(tmp_path / "elsewhere" / "b.md")
    (tmp_path / "docs" / "again.md").symlink_to("a.md")
    (tmp_path / "docs" / "c.md").symlink_to(".kept/c.md")
    (tmp_path / "docs" / "loop").symlink_to(tmp_path / "docs")
    found = find([tmp_path / "docs"])
    assert names(found, tmp_path) == ["docs/a.md", "docs/c.md"]
    assert len(found.errors) == 2
    assert "b.md can't be read: it is a link that leads out of the folder; name its file itself" in found.errors[0]
    assert "loop can't be read: it is a link to a folder" in found.errors[1]
    assert find([tmp_path / "docs"], exclude=["loop", "b.md"]).errors == ()


def test_a_folder_that_a_link_leads_to_is_that_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grow(tmp_path, "docs/a.md", "docs/deep/b.md")
    (tmp_path / "root").symlink_to(tmp_path / "docs")
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "way").symlink_to(tmp_path / "docs" / "deep")
    wanted = ["docs/a.md", "docs/deep/b.md"]
    assert names(find([tmp_path / "root"]), tmp_path) == wanted
    assert names(find([tmp_path / "root", tmp_path / "docs", tmp_path / "root" / "a.md"]), tmp_path) == wanted
    assert names(find([tmp_path / "far" / "way" / ".."]), tmp_path) == wanted, "as the system has it"
    monkeypatch.chdir(tmp_path / "root" / "deep")
    assert names(find([".."]), tmp_path) == wanted


def test_a_folder_that_may_not_be_listed_is_named_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(tmp_path, "a.md", "locked/b.md", "z.md")
    scandir = os.scandir

    def refuse(path: str) -> object:  # as the system does to everybody but root
        if os.path.basename(path) == "locked":
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = find([tmp_path])
    assert names(found, tmp_path) == ["a.md", "z.md"]
    assert found.errors == (f"{tmp_path}/locked can't be read: Permission denied; repair it or leave it out.",)
    with pytest.raises(UnreadableDocument, match="locked can't be read: Permission denied"):
        find([tmp_path / "locked"])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse to make such a name")
def test_a_name_that_is_not_utf_8_is_named_in_a_way_that_can_be_printed(tmp_path: Path) -> None:
    grow(tmp_path, "a.md")
    with open(os.fsencode(tmp_path) + b"/\xff.md", "w") as file:
        file.write("x")
    found = find([tmp_path])
    assert names(found, tmp_path) == ["a.md"]
    assert [error.encode() for error in found.errors]
    assert "its name is not valid UTF-8" in found.errors[0]
    with pytest.raises(UnreadableDocument, match="its name is not valid UTF-8"):
        find([os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md")])


def test_an_index_below_the_folder_is_no_document(tmp_path: Path) -> None:
    grow(tmp_path, "a.md", "index/catalog.sqlite", "index/secret", "index/vectors/x.json")
    found = find([tmp_path])
    assert names(found, tmp_path) == ["a.md"]
    assert found.ignored == (f"{tmp_path}/index/",)
    assert found.skipped == ()


def test_folders_are_resolved_once_however_many_files_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("kept", "lost"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "lost")
    known = [str(tmp_path / folder / f"{number}.md") for folder in ("kept", "lost") for number in range(100)]
    resolved, real = list[str](), os.path.realpath
    monkeypatch.setattr("os.path.realpath", lambda path, **how: resolved.append(str(path)) or real(path, **how))
    assert gone(known, [tmp_path / "kept" / "7.md"]) == [known[7]]
    assert len(resolved) < 10
    assert gone(known, [tmp_path / "link"]) == known[100:]
