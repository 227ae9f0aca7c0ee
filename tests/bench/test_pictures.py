"""Pictures of the committed runs: what has a panel, what stands where, and that they are drawn from JSON alone."""

import json
import shutil
from pathlib import Path

import pytest
from ragcache_bench.pages.columns import alike
from ragcache_bench.pages.figure import OURS, PUBLISHED, sooner_text, spread_out
from ragcache_bench.pages.hero import kept, spots
from ragcache_bench.pages.picture import draw, whose
from ragcache_bench.pages.points import differs
from ragcache_bench.pages.times import draw_times
from ragcache_bench.redraw import redraw
from ragcache_bench.speed.latency import Latency
from ragcache_bench.table import Row

COMMITTED = Path(__file__).parents[2] / "docs" / "benchmarks"
PNG = b"\x89PNG"


def row(task: str, method: str, score: float, *, delta: float = 0.0, spread: float = 0.02) -> Row:
    return Row(task, method, 0.15, 0.15, 0.2, 50, score, delta=delta, ci_low=delta - spread, ci_high=delta + spread)


def time(context: int, method: str, speedup: float, chunk: int = 512) -> Latency:
    return Latency(context, chunk, method, None, "warm", None, None, 10, 9, 12, speedup, speedup * 0.9, speedup * 1.1,
                   None, None, 1.0, None, None, None, None)  # fmt: skip


@pytest.mark.parametrize(("delta", "method", "shown"), [
    (-0.3, "epic", True), (0.3, "epic", True), (-0.04, "epic", False), (-0.3, "evidence", False),
])  # fmt: skip
def test_a_task_has_a_panel_where_methods_lose_or_gain_more_than_noise(delta: float, method: str, shown: bool) -> None:
    assert differs([row("t", "full", 0.9), row("t", method, 0.9 + delta, delta=delta)]) is shown
    assert not differs([row("t", method, 0.9 + delta, delta=delta, spread=0.5)])


def test_tasks_without_a_panel_are_lines_of_a_table() -> None:
    lost = [row("lost", "full", 0.9), row("lost", "epic", 0.5, delta=-0.4)]
    kept_all = [row("kept", "full", 0.9), row("kept", "epic", 0.88, delta=-0.02), row("kept", "naive", 0.91)]
    assert "| kept | 50 | 0.900 | 0.880 | 0.910 |" in alike([*lost, *kept_all])
    assert "lost" not in alike([*lost, *kept_all]).partition("| task")[2]
    assert alike(lost) == ""


def test_labels_keep_their_distance_and_their_order() -> None:
    assert spread_out([0.5, 0.1, 0.15], 0.1) == pytest.approx([0.5, 0.1, 0.2])
    assert spread_out([], 1.0) == []


@pytest.mark.parametrize(("ratio", "text"), [(4.44, "4.4×"), (9.96, "10×"), (26.8, "27×"), (119.7, "120×")])
def test_a_speed_up_is_said_in_few_digits(ratio: float, text: str) -> None:
    assert sooner_text(ratio) == text


def test_whose_a_method_is() -> None:
    assert (whose("auto"), whose("prophetkv"), whose("of somebody")) == (OURS, PUBLISHED, OURS)
    assert whose("evidence") != whose("random") != whose("auto")


@pytest.mark.parametrize("contexts", [(512,), (512, 1024), (512, 1024, 2048)])
def test_few_contexts_are_bars_and_many_are_lines(contexts: tuple[int, ...], tmp_path: Path) -> None:
    rows = [time(n, name, 1.0 + n / 99) for n in contexts for name in ("full", "naive", "llama.cpp")]
    draw_times(tmp_path / "t.png", rows)
    draw_times(tmp_path / "u.png", [time(n, "auto", 3.0, chunk) for n in contexts for chunk in (32, 64)])
    assert (tmp_path / "t.png").read_bytes().startswith(PNG)


def test_many_methods_and_many_tasks_are_drawn(tmp_path: Path) -> None:
    methods = [f"m{number}" for number in range(20)]
    draw(tmp_path / "q.png", [row(task, m, 0.4, delta=-0.5) for task in "abc" for m in ("full", "naive", *methods)])
    draw(tmp_path / "r.png", [row(task, m, 0.9) for task in "abcdef" for m in ("full", "naive", "auto")])
    assert (tmp_path / "q.png").read_bytes().startswith(PNG)


def test_the_readme_s_picture_says_what_the_committed_files_say() -> None:
    found = {spot.method: spot for spot in spots(COMMITTED)}
    pooled = json.loads((COMMITTED / "default-reader.json").read_text())["pooled"]
    (default,) = (one for one in pooled if one["method"] == "auto" and one["recompute"] == 0.05)
    assert found["auto"].kept == default["adjusted"]
    assert found["auto"].sooner * found["auto"].time == pytest.approx(1)
    assert kept(COMMITTED, "random")["recompute"] == 0.15
    assert all(spot.low <= spot.kept <= spot.high for spot in found.values())


def test_everything_is_drawn_again_from_json(tmp_path: Path) -> None:
    times = "latency-qwen2.5-0.5b"
    for name in ("default-reader", "rows-admitted-reader", "documents-reader", times):
        shutil.copy(COMMITTED / f"{name}.json", tmp_path)
    (tmp_path / "default-reader.png").touch()
    (tmp_path / f"{times}.png").touch()
    drawn = redraw(tmp_path)
    assert [file.name for file in drawn] == ["default-reader.png", f"{times}.png", "hero.png"]
    assert all(file.read_bytes().startswith(PNG) for file in drawn)
    assert (tmp_path / "default-reader.md").read_text() == (COMMITTED / "default-reader.md").read_text()
