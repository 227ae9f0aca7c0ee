"""Tables in Parquet, CSV and JSON lines, in one part or several."""

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from public_formats import conteb, kvpress
from ragcache_bench.datasets import Public, load, named

from ragcache.errors import InvalidArgument, MissingExtra

Put = Callable[..., Path]
COLUMNS = ["context", "question", "answer_prefix", "answer", "task", "max_new_tokens"]


def as_csv(rows: list[dict[str, Any]]) -> str:
    file = io.StringIO()
    table = csv.DictWriter(file, COLUMNS)
    table.writeheader()
    for row in rows:
        answer = row["answer"]
        table.writerow({**row, "answer": json.dumps(answer) if isinstance(answer, list) else answer})
    return file.getvalue()


@pytest.fixture
def parquet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pyarrow that reads JSON lines: what it does with real files is its own affair."""

    def read_table(path: Path) -> SimpleNamespace:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        return SimpleNamespace(to_pylist=lambda: rows)

    module = ModuleType("pyarrow")
    module.parquet = SimpleNamespace(read_table=read_table)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyarrow", module)


def test_answers_are_parts_of_one_or_alternatives_as_kvpress_scores_them(put: Put) -> None:
    found = {example.id: example for example in load("kvpress-4096", put("ruler/4096/test.jsonl"), size=40)}
    needles, chain, asked = (found[f"kvpress-4096-{n}"] for n in ("niah_multivalue-1", "vt-2", "qa_1-3"))
    assert needles.answers == ("1234567; 7654321",)
    assert chain.answers == ("ABC; DEF",)
    assert asked.answers == ("fjord", "the fjord")
    assert asked.chunks[-1].startswith("Document 2:\nOslo")
    assert found["kvpress-4096-4"].answers == ("coast",)
    assert all(example.gold for example in found.values())


def test_the_same_columns_as_csv_are_the_same_questions(put: Put) -> None:
    rows = kvpress()[:3]
    lines = put("a/4096/test.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert load("kvpress-4096", put("b/4096/test.csv", as_csv(rows))) == load("kvpress-4096", lines)


@pytest.mark.parametrize("cell", ["['12', '13']", "['12' '13']", "['12'\n '13']", '["12", "13"]'])
def test_several_answers_in_a_cell_are_read_as_pandas_writes_lists_and_arrays(put: Put, cell: str) -> None:
    rows = [{**kvpress()[2], "answer": cell}, {**kvpress()[2], "answer": "[Laughs] no"}]
    found = {example.id: example.answers for example in load("kvpress-4096", put("4096/test.csv", as_csv(rows)))}
    assert found == {"kvpress-4096-qa_1-1": ("12", "13"), "kvpress-4096-qa_1-2": ("[Laughs] no",)}


def test_a_folder_of_csv_and_of_json_lines_is_read_too(put: Put) -> None:
    put("ruler/4096/test.csv", as_csv(kvpress()[:3]))
    folder = put("ruler/8192/test.jsonl", json.dumps(kvpress()[0])).parents[1]
    tasks = named(f"kvpress:{folder}")
    assert {name: len(task.examples(9)) for name, task in tasks.items()} == {"kvpress-4096": 3, "kvpress-8192": 1}
    put("ruler/4096/test.jsonl", json.dumps(kvpress()[0]))
    with pytest.raises(InvalidArgument, match=r"4096/test\.csv and .*4096/test\.jsonl are both kvpress-4096; name one"):
        named(f"kvpress:{folder}")


def test_a_cell_of_another_form_is_named_with_its_row(put: Put) -> None:
    path = put("x/4096/test.csv", as_csv([{**kvpress()[0], "question": " "}]))
    with pytest.raises(InvalidArgument, match=r"test\.csv, row 1, question: expected something that is not blank"):
        load("kvpress-4096", path)


@pytest.mark.usefixtures("parquet")
def test_every_part_of_a_table_is_read_and_a_folder_is_one_task_for_each_length(put: Put) -> None:
    rows = [json.dumps(row) + "\n" for row in kvpress()]
    for length in (4096, 8192):
        for part in range(2):
            put(f"ruler/{length}/test-0000{part}-of-00002.parquet", "".join(rows[2 * part : 2 * part + 2]))
    first = put("ruler/README.md", "x").parent
    tasks = named(f"kvpress:{first}")
    assert list(tasks) == ["kvpress-4096", "kvpress-8192"]
    assert len(tasks["kvpress-8192"].examples(10)) == 4


@pytest.mark.usefixtures("parquet")
def test_a_folder_of_conteb_is_one_task_for_each_set_and_its_best_split(put: Put) -> None:
    chunks, queries = conteb()
    for name, splits in {"gates": ("train", "validation", "test"), "towns": ("train", "validation")}.items():
        for split in splits:
            asked = [{**row, "query": f"{split}: {row['query']}"} for row in queries]
            for part, rows in {"documents": chunks, "queries": asked}.items():
                file = f"conteb/{name}/{part}/{split}-00000-of-00001.parquet"
                put(file, "".join(json.dumps(row) + "\n" for row in rows))
    put("conteb/.cache/download/queries/test-00000-of-00001.parquet.metadata", "x")  # as a hub's client leaves them
    tasks = named(f"conteb:{put('conteb/README.md', 'x').parent}")
    assert list(tasks) == ["conteb-gates", "conteb-towns"]
    assert {e.question.split(":")[0] for e in tasks["conteb-gates"].examples(20)} == {"test"}
    assert {e.question.split(":")[0] for e in tasks["conteb-towns"].examples(20)} == {"validation"}
    assert tasks["conteb-gates"].chance == pytest.approx(4 / 7)  # four towns of five letters


def test_no_set_has_a_chance_where_no_answer_is_stated(put: Put) -> None:
    path = put("gates/queries/test.jsonl")
    path.write_text("".join(json.dumps({**row, "answer": None}) + "\n" for row in conteb()[1]))
    assert Public("conteb-gates", path).chance is None


def test_parquet_without_pyarrow_names_the_extra(put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install 'ragcache-kv\[bench\]'"):
        load("kvpress-4096", put("4096/test.parquet", "PAR1"))


def test_parquet_is_read_and_what_is_none_is_refused(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it comes with the extra `bench`")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "4096" / "test-00000-of-00001.parquet"
    path.parent.mkdir()
    parquet.write_table(pyarrow.Table.from_pylist(kvpress()[:3]), path)
    assert {example.answers for example in load("kvpress-4096", path)} >= {("ABC; DEF",), ("fjord", "the fjord")}
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(InvalidArgument, match="expected a file of Parquet"):
        load("kvpress-4096", path)
