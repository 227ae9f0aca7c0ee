import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from conftest import byte_tokenizer, tiny_model
from ragcache_bench.commands import sweep as bench_sweep
from ragcache_bench.pages.plot import marks, panel
from ragcache_bench.pages.points import COSTS, best, points
from ragcache_bench.pages.shell import Cell, page, table
from ragcache_bench.pages.sweep import html
from ragcache_bench.pareto import ALONE, NEEDS, pooled
from ragcache_bench.table import Result, Row
from ragcache_cli.main import app
from typer.testing import CliRunner
from typer.testing import Result as Outcome

VOID = {"meta", "link", "input", "img", "br"}
EVIL = '<script>alert("x")</script>'
ABOUT = {"command": f"ragcache bench sweep {EVIL}", "reader": "tiny", "hardware": "a & b", "commit": "abc",
         "tasks": {"t": f"Task({EVIL})", "u": "Task()"}, "seed": 0}  # fmt: skip


class Checked(HTMLParser):
    """Refuses tags that do not close, and collects what the page would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.scripts = 0
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.loads += [str(value) for name, value in attrs if name in ("src", "href") and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def row(task: str, method: str, score: float, at: float | None, recompute: float | None = None) -> Row:
    delta = score - 0.9
    return Row(task, method, recompute, at, 1.0 if method == "full" else (at or 0) + 0.1, 20, score, score, score,
               delta, delta - 0.05, delta + 0.05, None, None, 0.8, 2.0)  # fmt: skip


@pytest.fixture
def rows() -> list[Row]:
    return [
        one
        for task in ("t", "u")
        for one in (
            row(task, "full", 0.9, None), row(task, "naive", 0.3, 0.0), row(task, "epic", 0.25, 0.1, 0.1),
            row(task, EVIL, 0.8, 0.15, 0.15), row(task, "evidence", 1.0, 0.05),
            Row(task, "chance", None, None, None, 0, 0.2),
        )
    ]  # fmt: skip


def test_the_page_closes_its_tags_loads_nothing_and_runs_no_script_but_its_own(rows: list[Row]) -> None:
    text = html(Result(rows, ABOUT, pooled(rows, {"both": ["t", "u"]}), [replace(one, gap=4) for one in rows[:3]]))
    seen = Checked(text)
    assert seen.scripts == 1
    assert set(seen.loads) == {"data:,", "#t", "#u"}
    assert "://" not in text
    assert "url(" not in text
    assert EVIL not in text


def test_every_row_every_column_and_the_command_stand_on_the_page(rows: list[Row]) -> None:
    text = html(Result(rows, ABOUT))
    cells = re.findall(r'<td data-v="([^"]*)"', text)
    assert cells.count("naive") == 1 + 2 + 2  # at a glance, each task's table, and what is lost
    assert cells.count("evidence") == cells.count("chance") == 1 + 2
    assert "ragcache bench sweep" in text
    for wanted in ("-0.650 [-0.700, -0.600]", "agrees with full", "recomputes all of their tokens", "a &amp; b", "abc"):
        assert wanted in text


def test_what_loses_is_listed_worst_first(rows: list[Row]) -> None:
    text = html(Result(rows, ABOUT))
    lost = text[text.index("What is lost") : text.index("What the columns")]
    listed = re.findall(r'data-v="t"[^/]*/td><td data-v="([^"]*)"', lost.partition("<h2>")[0])
    assert listed == ["epic", "naive", EVIL.replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")]
    assert "Of 8 rows" in lost
    assert "6 answer worse than full prefill by more than noise, 2 better" in lost


def test_at_a_glance_a_cell_is_as_warm_as_what_is_kept(rows: list[Row]) -> None:
    part = html(Result(rows, ABOUT)).partition("All tasks at a glance")[2]
    line = re.search(r'<td data-v="naive".*?</tr>', part)[0]  # type: ignore[index]
    assert line.count("0.30") == 2
    assert line.count("var(--s2) 15%") == 2  # a third of what full prefill gets


def test_distances_are_columns_and_a_missing_one_is_a_dash(rows: list[Row]) -> None:
    gaps = [replace(rows[0], gap=4), replace(rows[0], gap=0), replace(rows[1], gap=0)]
    text = html(Result(rows, ABOUT, gaps=gaps))
    part = text[text.index("By distance") :]
    assert part.index("0 between") < part.index("4 between")
    assert part.count("0.90 of 20") == 2
    assert '0.30 of 20</td><td data-v="">-</td>' in part


def test_references_are_drawn_but_never_on_the_front(rows: list[Row]) -> None:
    found = points(rows[:6], "charged")
    assert {point.method for point in found} == {"full", "naive", "epic", EVIL, "evidence"}
    assert [point.method for point in best(found)] == ["naive", EVIL, "full"]


def test_an_interval_stands_around_its_point(rows: list[Row]) -> None:
    (point,) = [one for one in points(rows[:6], "charged_flops") if one.method == "epic"]
    assert (point.cost, point.quality) == (pytest.approx(0.2), 0.25)
    assert (point.low, point.high) == (pytest.approx(0.2), pytest.approx(0.3))


def test_a_panel_names_its_front_and_marks_every_point(rows: list[Row]) -> None:
    found = points(rows[:6], "charged")
    text = panel("t", COSTS["charged"], found, {"full": 0.9}, marks(["naive", "epic", "evidence"]))
    Checked(text)
    assert "naive (30.0%) → " in text
    assert text.count('class="dot"') == 3
    assert text.count('class="ring"') == 3


def test_cells_sort_by_value_and_empty_ones_have_none() -> None:
    text = table([("a", "about a")], [[Cell("1.0 of <3>", 1.0)], [Cell("-")]], [True, False])
    assert '<tr class="front"><td data-v="1.0">1.0 of &lt;3&gt;</td>' in text
    assert '<td data-v="">-</td>' in text


def test_titles_are_escaped() -> None:
    assert "<title>&lt;b&gt; &amp; c</title>" in page("<b> & c", [])


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    tiny_model("llama", max_position_embeddings=8192).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


QUALITY = ["--tasks", "sections,sections-twin", "--n", "1", "--methods", "cacheblend", "--budgets", "0.3"]


def sweep(*options: object) -> Outcome:
    return CliRunner().invoke(app, ["bench", "sweep", *map(str, options)])


def test_sweep_runs_draws_and_draws_again_without_running(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "docs" / "s.json"
    options = ["--model", checkpoint, "--max-new-tokens", 2, "--random-seeds", 1, "--out", out, "--json"]
    made = sweep(*QUALITY, *options)
    assert made.exit_code == 0, made.output
    content = json.loads(out.read_text())
    assert json.loads(made.stdout) == content
    assert {file.name for file in out.parent.iterdir()} == {"s.json", "s.md", "s.png", "s.html", "s.jsonl"}
    assert {row["task"] for row in content["pooled"]} == {NEEDS, ALONE}
    assert {"evidence", "cacheblend"} <= {row["method"] for row in content["pooled"]}
    assert content["meta"]["pools"] == {NEEDS: ["sections"], ALONE: ["sections-twin"]}
    Checked(out.with_suffix(".html").read_text())

    monkeypatch.setattr(bench_sweep, "on_tasks", None)  # nothing is to run from here on
    again = sweep("--from", out, "--out", tmp_path / "again.json")
    assert again.exit_code == 0, again.output
    assert json.loads((tmp_path / "again.json").read_text()) == content
    assert (tmp_path / "again.html").read_text() == out.with_suffix(".html").read_text()

    verdicts = tmp_path / "admission.json"
    verdicts.write_text(json.dumps({"rows": [{"task": "sections-twin", "verdict": NEEDS},
                                             {"task": "sections", "verdict": "reader too weak"}]}))  # fmt: skip
    assert sweep("--from", out, "--admission", verdicts, "--out", tmp_path / "judged.json").exit_code == 0
    judged = json.loads((tmp_path / "judged.json").read_text())["pooled"]
    assert {row["task"] for row in judged} == {NEEDS}
    assert judged[0]["n"] == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--from", "nowhere.json"], "nowhere.json"),
        (["--admission", "nowhere.json"], "bench admit"),
        (["--methods", "sorcery"], "sorcery"),
        (["--tasks", "alchemy"], "alchemy"),
    ],
)
def test_what_cannot_be_swept_is_one_sentence_and_exit_code_2(options: list[str], reason: str) -> None:
    failed = sweep(*options)
    assert failed.exit_code == 2
    assert reason in failed.stderr
    assert len(failed.stderr.strip().splitlines()) == 1
