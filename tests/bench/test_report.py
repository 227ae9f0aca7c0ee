import json
from pathlib import Path

import pytest
from ragcache_bench.pages.columns import COLUMNS, by_distance, cell, markdown
from ragcache_bench.report import check_out, read, write
from ragcache_bench.table import Result, Row

from ragcache.errors import InvalidArgument

ABOUT = {"command": "ragcache bench quality", "reader": "tiny", "hardware": "a machine"}


def row(method: str, score: float, **more: object) -> Row:
    return Row("t", method, 0.15, 0.15, 0.2, 5, score, **more)  # type: ignore[arg-type]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    rows, pooled, gaps = [row("epic", 0.5)], [row("epic", 0.6)], [row("epic", 0.7, gap=2)]
    result = Result(rows, ABOUT, pooled, gaps)
    files = write(tmp_path / "deep" / "q.json", result)
    assert read(files[0]) == result
    assert [file.name for file in files] == ["q.json", "q.md", "q.png"]
    assert files[2].read_bytes().startswith(b"\x89PNG")


def test_results_of_other_versions_are_read(tmp_path: Path) -> None:
    values = {"task": "t", "method": "epic", "recompute": None, "charged": 0.1, "charged_flops": 0.2, "n": 3}
    file = tmp_path / "old.json"
    file.write_text(json.dumps({"meta": ABOUT, "rows": [{**values, "score": 0.5, "from_the_future": 1}]}))
    assert read(file).rows == [Row(**values, score=0.5)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content", ["", "[]", '{"meta": {}}', '{"meta": {}, "rows": [{"task": "t"}]}', '{"rows": 3, "meta": {}}']
)
def test_files_that_hold_something_else_are_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "other.json"
    file.write_text(content)
    with pytest.raises(InvalidArgument, match=r"other\.json.*bench quality"):
        read(file)
    with pytest.raises(InvalidArgument, match="none"):
        read(tmp_path / "none.json")


def test_cells_show_the_interval_where_there_is_one() -> None:
    one = row("epic", 0.5, delta=-0.1, ci_low=-0.2, ci_high=0.05, agreement=0.9)
    shown = {column.field: cell(one, column) for column in COLUMNS}
    assert shown["delta"] == "-0.100 [-0.200, +0.050]"
    assert shown["agreement"] == "0.900"
    assert (shown["recovered"], shown["method"], shown["recompute"]) == ("-", "epic", "0.15")


def test_markdown_has_only_columns_with_figures_and_a_legend_for_each() -> None:
    text = markdown([row("epic", 0.5), row("full", 1.0, kl=0.0)], ABOUT)
    assert "| method | recompute | charged | FLOPs | EM | KL |" in text
    assert "| epic | 0.15 | 0.150 | 0.200 | 0.500 | - |" in text
    assert text.count("\n- ") == 6


def test_distances_stand_side_by_side() -> None:
    rows = [row("full", 1.0, gap=0), row("epic", 0.8, gap=0), row("epic", 0.2, gap=10), row("epic", 0.4, gap=2)]
    questions, named = by_distance(rows)
    assert questions == {0: 5, 2: 5, 10: 5}
    assert [one and one.score for one in named["epic 0.15"]] == [0.8, 0.4, 0.2]
    assert [one and one.score for one in named["full 0.15"]] == [1.0, None, None]
    text = markdown(rows[:1], ABOUT, rows)
    assert "| epic 0.15 | 0.800 | 0.400 | 0.200 |" in text
    assert "| full 0.15 | 1.000 | - | - |" in text


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("q.jsonl", "q.json"), ("q.md", "q.json"), ("q.png", "q.json"), ("q", "q.json"),
        ("Qwen3-0.6B", "Qwen3-0.6B.json"), (".json", ".json.json"),
    ],
)  # fmt: skip
def test_a_result_ends_in_json(tmp_path: Path, name: str, other: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        check_out(tmp_path / name)
    assert str(refused.value) == f"--out {tmp_path / name} does not end in .json; write --out {tmp_path / other}"
    check_out(tmp_path / other)


def test_a_result_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "q.json").mkdir()
    with pytest.raises(InvalidArgument, match=r"q\.json is a folder; .*q\.json/quality\.json"):
        check_out(tmp_path / "q.json")


@pytest.mark.parametrize("name", ["lb.jsonl", "lb.json", "lb.md"])
def test_nothing_is_written_over_what_the_run_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / name).write_text("data")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgument, match=rf"--out lb\.json would write over {name}.*--out lb-quality\.json"):
        check_out(Path("lb.json"), [tmp_path / "other.jsonl", tmp_path / name])
    check_out(Path("lb-quality.json"), [tmp_path / name])
