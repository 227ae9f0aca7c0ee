import json
from pathlib import Path

import pytest
from ragcache_bench.records import Journal, Record

from ragcache.errors import InvalidArgument


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
    assert (again.records, again.known) == ([record("k"), record("l")], journal.known)
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
