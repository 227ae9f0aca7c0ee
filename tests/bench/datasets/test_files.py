"""Broken files: the error names file, place and what was expected, whatever is wrong."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from public_formats import FILES, hotpot, pairs, retrieved, squad
from ragcache_bench.datasets import DATASETS, load
from ragcache_bench.tasks import Example

from ragcache.errors import InvalidArgument

Put = Callable[..., Path]
JSON = [name for name in FILES if "json" in name]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield (*path, key)
        yield from places(value[key], (*path, key))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    if new is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return value


def read_or_named(of: str, file: Path) -> list[Example]:
    """Read a file, or have its name in the error."""
    try:
        return load(of, file, chunks=3)
    except InvalidArgument as error:
        if str(file) not in str(error):
            raise
        return []


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_whatever_is_missing_or_of_another_kind_is_an_invalid_argument(put: Put, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(JSON))
    of, text = FILES[name]
    rows = [json.loads(text)] if name.endswith(".json") else [json.loads(line) for line in text.splitlines()]
    path = data.draw(st.sampled_from(list(places(rows))[1 if name.endswith(".json") else 0 :]))
    new = data.draw(st.sampled_from([None, 7, "", True, [], {}, [[]], "x", ["x"]]))
    file = put(name, "\n".join(json.dumps(row) for row in changed(rows, path, new)))
    examples = read_or_named(of, file)
    assert all(example.question and example.chunks for example in examples)
    assert of.startswith("conteb") or all(example.answers for example in examples)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(list(FILES)), st.floats(0, 1))
def test_a_file_that_was_cut_short_is_read_as_far_as_it_is_whole_or_refused(put: Put, name: str, share: float) -> None:
    of, text = FILES[name]
    file = put(name, text[: int(share * len(text))])
    read_or_named(of, file)


@pytest.mark.parametrize(
    ("of", "rows", "says"),
    [
        ("hotpotqa", [{**hotpot()[0], "context": []}], "record 1, context: expected at least one passage"),
        ("hotpotqa", [{**hotpot()[0], "context": [["a", "b", "c"]]}], "record 1, context[0]: expected a list of two"),
        ("hotpotqa", [{**hotpot()[0], "answer": 3}], "record 1, answer: expected a text, found 3"),
        ("nq-open", [retrieved()[0], {"question": "q", "answers": ["a"]}], "record 2: expected an object with 'ctxs'"),
        ("nq-open", [{**retrieved()[0], "answers": []}], "record 1, answers: expected something that is not blank"),
        ("kv-retrieval", [{**pairs()[0], "value": "other"}], "record 1: expected the pair of 'key-07' and 'other'"),
        ("musique", [{"id": "m"}], "record 1: expected an object with 'question'"),
    ],
)
def test_a_record_of_another_form_is_named_with_what_was_expected(put: Put, of: str, rows: Any, says: str) -> None:
    if of == "musique":
        rows[0]["paragraphs"] = [{"title": "a", "paragraph_text": "b"}]
    file = put("x.json", json.dumps(rows))
    with pytest.raises(InvalidArgument) as caught:
        load(of, file)
    assert f"{file}, {says}" in str(caught.value)


def test_a_path_inside_one_document_is_named(put: Put) -> None:
    broken = squad()
    del broken["data"][0]["paragraphs"][2]["qas"][0]["question"]
    with pytest.raises(InvalidArgument, match=r"data\[0\], paragraphs\[2\], qas\[0\]: expected .* 'question'"):
        load("squad", put("x.json", json.dumps(broken)))


def test_a_line_that_is_no_json_is_named_with_its_number(put: Put) -> None:
    good = FILES["retrieved.jsonl"][1]
    with pytest.raises(InvalidArgument, match=r"x\.jsonl, line 7: expected JSON"):
        load("nq-open", put("x.jsonl", good + '{"question": \n'))
    with pytest.raises(InvalidArgument, match=r"x\.json, line 3: expected JSON"):
        load("squad", put("x.json", '{"data":\n[\n}\n'))


@pytest.mark.parametrize("line", ["Mary went.", "2 Where?\tkitchen\t9", "1 Where?\tkitchen\t", "2 Where?\t\t1"])
def test_a_story_line_of_another_form_is_named_with_its_number(put: Put, line: str) -> None:
    with pytest.raises(InvalidArgument, match=r"qa1_x\.txt, line 2: expected"):
        load("babi-1", put("qa1_x.txt", f"1 Mary went to the kitchen.\n{line}\n"))


@pytest.mark.parametrize(
    "text",
    [
        '# METADATA: {"qid": 1}\nQ: a\nA: b',
        "# METADATA: x\nWikipedia Title: T\nU\n\nQ: a\nA: b",
        '# METADATA: {"qid": "1"}\nWikipedia Title: T\nU\n',
    ],
)
def test_an_annotated_block_of_another_form_is_named_with_its_line(put: Put, text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"x\.txt, line 2: expected"):
        load("hotpotqa", put("x.txt", f"\n{text}"))


@pytest.mark.parametrize("of", DATASETS)
@pytest.mark.parametrize(
    "data", [b"", b" \n", b"\xff\xfe\x00", b"\x00", b"[]", b"{}", b"null", b"[1]", b'"x"', b"[" * 9999]
)
def test_what_is_no_such_file_at_all_is_refused(tmp_path: Path, of: str, data: bytes) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(data)
    with pytest.raises(InvalidArgument, match=r"x\.json.*: expected"):
        load(of, file)


def test_missing_files_folders_and_damaged_archives_are_refused(put: Put, tmp_path: Path) -> None:
    archive = put("pairs.jsonl.gz")
    assert load("kv-retrieval", archive)
    archive.write_bytes(archive.read_bytes()[:-20])
    for path in (tmp_path / "nothing.json", tmp_path, archive):
        with pytest.raises(InvalidArgument, match=f"{path}: expected a file"):
            load("kv-retrieval", path)


def test_a_summary_without_a_question_is_refused(put: Put) -> None:
    row = {"input": "", "context": "A report.", "answers": ["short"], "_id": "g"}
    with pytest.raises(InvalidArgument, match="line 1, input: expected something that is not blank"):
        load("longbench", put("gov_report.jsonl", json.dumps(row)))
