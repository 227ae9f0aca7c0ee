import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ragcache_bench.records import Journal, Record

from ragcache.errors import InvalidArgument, StorageFull


def record(key: str) -> Record:
    return Record(key, "facts", "facts-0", "naive", None, 0, "Oslo", 1.0, 1.0, 0.0, 0.1, 5.0)


def test_answers_and_measurements_outlive_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "n.jsonl"
    journal = Journal(path)
    assert journal.recall(("a", "b"), lambda: [1, None]) == [1, None]
    journal.add([record("k"), record("l")])
    assert journal.recall(("ab",), lambda: 2.5) == 2.5
    path.write_text(path.read_text() + '{"key": "ha')
    again = Journal(path)
    assert again.recall(("a", "b"), lambda: pytest.fail("measured again")) == [1, None]
    assert again.known == journal.known
    assert [replace(one, session="") for one in again.records] == [record("k"), record("l")]
    assert path.read_text().count("\n") == 4


@pytest.mark.parametrize("line", ["dear diary", "[]", "3", '{"question": "Who?"}', '{"key": 3}'])
def test_other_files_are_refused_and_left_alone(tmp_path: Path, line: str) -> None:
    path = tmp_path / "n.jsonl"
    path.write_text(f"{line}\nand half a line")
    with pytest.raises(InvalidArgument, match=r"line 1 of .*n\.jsonl"):
        Journal(path)
    assert path.read_text() == f"{line}\nand half a line"


def test_answers_of_another_version_are_made_again(tmp_path: Path) -> None:
    path = tmp_path / "n.jsonl"
    path.write_text(json.dumps(vars(record("k")) | {"from_the_future": 1}) + "\n")
    assert Journal(path).known == {}


@pytest.mark.parametrize("content", ["dear diary", '{"question": "Who?"}', '{"id": "a"}\n{"id": "b"}', "[1, 2"])
def test_a_file_without_a_line_s_end_is_left_alone_unless_it_is_a_journal(tmp_path: Path, content: str) -> None:
    path = tmp_path / "lb.jsonl"
    path.write_text(content)
    with pytest.raises(InvalidArgument, match=r"line 1 of .*lb\.jsonl"):
        Journal(path)
    assert path.read_text() == content


@pytest.mark.parametrize("rest", ["{", '{"key": "0f', '{"key": "k", "task": "fac', "\0\0"])
def test_half_a_record_at_the_end_is_cut_off(tmp_path: Path, rest: str) -> None:
    path = tmp_path / "n.jsonl"
    Journal(path).add([record("k")])
    before = path.read_text()
    path.write_text(before + rest)
    assert set(Journal(path).known) == {"k"}
    assert path.read_text() == before
    if rest.startswith("{"):
        path.write_text(rest)
        assert Journal(path).known == {}
        assert path.read_text() == ""


def test_each_record_says_in_which_run_it_was_timed(tmp_path: Path) -> None:
    path = tmp_path / "n.jsonl"
    for key in ("k", "l"):
        Journal(path).add([record(key), record(f"{key} too")])
    first, alike, second, _ = Journal(path).records
    assert first.session == alike.session != second.session


def test_journals_of_versions_that_knew_no_runs_are_read(tmp_path: Path) -> None:
    path = tmp_path / "n.jsonl"
    path.write_text(json.dumps({name: value for name, value in vars(record("k")).items() if name != "session"}) + "\n")
    assert Journal(path).records == [record("k")]


FULL = """
import resource, sys
from pathlib import Path
from ragcache.errors import StorageFull
from ragcache_bench.records import Journal, Record

def record(key):
    return Record(key, "facts", "facts-0", "naive", None, 0, "Oslo", 1.0, 1.0, 0.0, 0.1, 5.0)

path = Path(sys.argv[1])
journal = Journal(path)
journal.add([record("k")])
size = path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 40, resource.RLIM_INFINITY))
for write in (lambda: journal.add([record("l")]), lambda: journal.recall(["m"], lambda: "x" * 99)):
    try:
        write()
    except StorageFull as error:
        assert isinstance(error, OSError) and "n.jsonl" in str(error)
    else:
        raise AssertionError("the disk took it")
    assert path.stat().st_size == size and list(journal.known) == ["k"]
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.add([record("o")])
"""


def test_what_a_full_disk_takes_half_of_is_taken_back_and_not_known(tmp_path: Path) -> None:
    path = tmp_path / "n.jsonl"
    ended = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert list(Journal(path).known) == ["k", "o"]


def test_a_write_that_fails_half_way_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "n.jsonl"
    journal = Journal(path)
    journal.add([record("k")])
    before, plain = path.read_bytes(), Path.open

    class Failing:
        """A file on a disk that gives up in the middle of a line."""

        def __init__(self, file: Any) -> None:
            self.file = file

        def __enter__(self) -> "Failing":
            return self

        def __exit__(self, *error: object) -> None:
            self.file.close()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

        def write(self, lines: bytes) -> int:
            self.file.write(lines[:20])
            raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda *given, **named: Failing(plain(*given, **named)))
        with pytest.raises(StorageFull, match=r"n\.jsonl \(Input/output error\)"):
            journal.add([record("l")])
    assert path.read_bytes() == before
    assert list(journal.known) == ["k"]
