import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from ragcache_bench import asking
from ragcache_bench.contenders import CONTROLS, EXTRA, TITLE, TITLED, Contender, contenders, left_out, with_defaults
from ragcache_bench.records import Journal, Record
from ragcache_bench.report import markdown, write
from ragcache_bench.runs import Bench
from ragcache_bench.table import Result, Row, by_gap, tabulate, withhold_times
from ragcache_bench.tasks import Example
from ragcache_bench.tasks.example import add_titles

from ragcache.engine.engine import Engine
from ragcache.errors import InvalidArgument, UnknownMethod
from ragcache.methods import METHODS
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader

ASKED = "Where is the Tide project based?"


class Letters:
    """Stands in for the sentence embedder: letter frequencies."""

    name = "letters"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += texts
        counts = np.array([[text.lower().count(chr(c)) for c in range(97, 123)] for text in texts], dtype=np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def examples(count: int, task: str = "facts") -> list[Example]:
    shared = "The cafeteria opens at nine."
    return [
        Example(f"{task}-{i}", task, (f"Project {i} is in Oslo.", shared, f"Site {i} is warm."), ASKED, ("Oslo",), (0,))
        for i in range(count)
    ]


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "quality.jsonl"


def bench(reader: Reader, raw: Path, tokens: int = 3, **how: object) -> Bench:
    return Bench(reader, Journal(raw), Sampling(max_new_tokens=tokens), **{"embedder": Letters(), **how})  # type: ignore[arg-type]


def go(
    reader: Reader, raw: Path, count: int = 2, names: Sequence[str] = (), budgets: Sequence[float] = (0.3,)
) -> list[Record]:
    field = contenders(names, budgets, seeds=(0, 1))
    return bench(reader, raw).answers({"facts": examples(count)}, field)


def test_controls_take_part_unasked_and_fixed_rows_once() -> None:
    field = contenders(["cacheblend", "link0", "naive"], (0.05, 0.3), seeds=(0, 1, 2))
    counts = Counter(one.name for one in field)
    assert counts == {
        "full": 1, "naive": 1, "random": 6, "epic": 2, "cacheblend": 2, "link0": 1, "evidence": 1, "true-deviation": 1,
        **dict.fromkeys(TITLED, 1),
    }  # fmt: skip
    assert len({repr(one) for one in field}) == len(field)
    assert [one.recompute for one in contenders(["auto"], (0.3,), controls=())] == [0.3]
    assert [one.recompute for one in with_defaults(contenders(["auto"], (0.3,), controls=()))] == [0.05, 0.3]


def test_unknown_names_and_impossible_budgets_are_refused_before_anything_runs() -> None:
    with pytest.raises(UnknownMethod, match="sorcery"):
        contenders(["sorcery"], (0.15,))
    with pytest.raises(InvalidArgument, match=r"1\.5"):
        contenders([], (1.5,))


def test_every_contender_answers_every_question(reader: Reader, raw: Path) -> None:
    records = go(reader, raw, names=["cacheblend", "fusionrag", "prefix"])
    field = [one for one in contenders(["cacheblend", "fusionrag", "prefix"], (0.3,), seeds=(0, 1)) if not one.titled]
    assert len(records) == 2 * (len(field) - 1) == len(raw.read_text().splitlines())  # one of two random seeds
    assert [r.seed for r in records if r.method == "random"] == [0, 1]
    by_name = {(r.method, r.seed): r for r in records if r.id == "facts-1"}
    assert by_name["full", 0].charged is None
    assert by_name["full", 0].charged_flops == 1.0
    assert by_name["prefix", 0].charged is None
    assert by_name["naive", 0].charged == 0.0
    assert by_name["random", 1].charged == pytest.approx(0.3, abs=0.01)
    assert by_name["full", 0].kl == 0.0
    assert by_name["prefix", 0].kl == pytest.approx(0.0, abs=1e-6)
    assert by_name["naive", 0].kl > 1e-4
    assert by_name["cacheblend", 0].charged > by_name["random", 1].charged
    assert all(r.ttft_ms > 0 for r in records)


def test_earlier_answers_the_accepted_one_and_names_serve_as_drafts(
    reader: Reader, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafted: list[list[str]] = []
    stream = Engine.stream

    def watched(self: Engine, *given: Any, drafts: Any, **named: Any) -> Any:
        drafted.append([reader.tokenizer.decode(list(draft)) for draft in drafts])
        return stream(self, *given, drafts=drafts, **named)

    monkeypatch.setattr(Engine, "stream", watched)
    records = go(reader, raw, count=1)
    (example,) = examples(1)
    name = next(word for word in example.chunks[0].split() if word.istitle() and word.isalpha())
    assert all(example.answers[0] in likely for likely in drafted)
    assert all(any(name in draft for draft in likely) for likely in drafted)
    assert len(drafted[-1]) == len(drafted[0]) + len(records) - 1


def test_contenders_that_answer_at_once_answer_alike_and_are_not_timed(reader: Reader, raw: Path) -> None:
    field = contenders(["naive", "fusionrag", "prophetkv", "cacheblend"], (0.05, 0.3))
    apart = bench(reader, raw).answers({"facts": examples(3)}, field)
    together = bench(reader, raw.with_name("at once.jsonl"), together=True).answers({"facts": examples(3)}, field)
    assert [record.ttft_ms is None for record in (*apart, *together)] == [False] * len(apart) + [True] * len(together)
    for one, other in zip(apart, together, strict=True):
        assert (one.key, one.answer, one.em, one.charged) == (other.key, other.answer, other.em, other.charged)
        assert one.kl == pytest.approx(other.kl, abs=1e-6)
    [row, *_] = tabulate(together)
    assert row.ttft_ms is row.ttft_ratio is None
    assert tabulate(apart)[0].ttft_ratio == 1.0


def test_a_title_line_is_a_contender_where_questions_have_titles(reader: Reader, raw: Path) -> None:
    field = contenders(["link0+title"], (0.3,), controls=("full", "naive", *TITLED))
    asked = [replace(one, pages=(one.chunks[:1], one.chunks[1:]), titles=("Tide", "", "Notes")) for one in examples(2)]
    records = bench(reader, raw).answers({"facts": asked}, field)
    found = {(record.method, record.id): record for record in records}
    assert len(records) == len(found) == 2 * len(field)
    assert found["full+title", asked[0].id].answer != ""
    assert found["full+title", asked[0].id].kl == 0.0
    assert found["naive+title", asked[0].id].kl > 0
    assert found["naive+title", asked[0].id].kl != found["naive", asked[0].id].kl
    rows = {row.method: row for row in tabulate([replace(one, ttft_ms=10.0) for one in records])}
    assert rows["naive+title"].delta is not None
    assert rows["full+title"].ttft_ratio == 1.0
    plain = bench(reader, raw).answers({"facts": examples(1)}, field)
    assert {record.method for record in plain} == {"full", "naive"}


def test_a_titled_row_takes_all_budgets_where_it_is_named_and_its_own_as_a_control() -> None:
    def shares(names: list[str]) -> list[float | None]:
        return [one.recompute for one in contenders(names, (0.05, 0.3)) if one.name == "auto+title"]

    assert shares([]) == [0.05]
    assert shares(["auto+title"]) == [0.05, 0.3]


def test_a_title_that_changes_nothing_is_not_asked_about(reader: Reader, raw: Path) -> None:
    field = contenders([], (0.3,), controls=("full", "naive+title"))
    same = [
        replace(one, titles=(one.chunks[0], "", ""), chunks=(f"{one.chunks[0]}\n1", *one.chunks[1:]))
        for one in examples(1)
    ]
    assert {record.method for record in bench(reader, raw).answers({"facts": same}, field)} == {"full"}
    some = [examples(1)[0], replace(examples(2)[1], titles=("Tide", "", ""))]
    rows = {row.method: row for row in tabulate(bench(reader, raw).answers({"facts": some}, field))}
    assert rows["naive+title"].n == rows["full"].n == 2  # those without a title are asked as they are


def test_a_row_of_ones_own_takes_a_control_s_place_and_absent_rows_are_named() -> None:
    own = replace(METHODS["epic"], about="mine")
    field = contenders([own, "auto+title"], (0.3,))
    assert next(one.method for one in field if one.name == "epic") is own
    assert {"auto", "prophetkv"} <= set(left_out(field))
    assert "epic" not in left_out(field)


def test_titles_stand_above_every_chunk_of_a_page() -> None:
    pages = (("A is here.", "It is old."), ("B is there.", "It is new."))
    made = Example(
        "1", "t", ("It is old.", "B\nis titled", "B is there."), "q", ("a",), (0,), None, pages, ("A", "B", "B")
    )
    titled = add_titles(made)
    assert titled.chunks == ("A\nIt is old.", "B\nis titled", "B\nB is there.")
    assert titled.pages == (("A\nA is here.", "A\nIt is old."), ("B\nB is there.", "B\nIt is new."))


def test_no_time_is_shown_where_rows_of_the_same_work_took_different_ones() -> None:
    def timed(naive: float, auto: float) -> list[Record]:
        times = {"full": 30.0, "naive": naive, "auto": auto}
        return [record(m, i, "x", 1.0, ttft_ms=t, charged=0.0) for m, t in times.items() for i in range(3)]

    about = {"command": "c", "reader": "r", "hardware": "h", "absent": ["ape"]}
    near, far = (withhold_times(Result(tabulate(timed(10.0, auto)), about)) for auto in (10.4, 10.6))
    assert [row.ttft_ratio for row in near.rows] == [1.0, 3.0, pytest.approx(30 / 10.4)]
    assert [row.ttft_ratio for row in far.rows] == [None, None, None]
    assert near.about == about
    assert far.about["times_differ"] == {"t": pytest.approx(0.06)}
    assert withhold_times(far) == far
    pooled = withhold_times(Result(far.rows, about, tabulate(timed(10.0, 10.0)), tabulate(timed(10.0, 10.6))))
    assert [row.ttft_ms for row in pooled.pooled][:1] == [30.0]
    doubted = Result(tabulate(timed(10.0, 10.6)), about, tabulate(timed(10.0, 10.0)), tabulate(timed(10.0, 10.0)))
    assert {row.ttft_ms for part in (withhold_times(doubted).pooled, withhold_times(doubted).gaps) for row in part} == {
        None
    }
    text = markdown(far.rows, far.about)
    assert "No times for t: rows that do the same work differed by 6%." in text
    assert "Not in this table: ape;" in text


def test_an_answer_within_the_answer_is_counted_apart(reader: Reader, raw: Path) -> None:
    full = [record("full", i, "It was Oslo.", 0.0, sub_em=1.0) for i in range(3)]
    naive = [record("naive", i, "Rome, I think", 0.0, sub_em=float(i == 0)) for i in range(3)]
    row = tabulate([*full, *naive])[-1]
    assert (row.score, row.sub_em, row.words) == (0.0, pytest.approx(1 / 3), 3.0)
    assert row.sub_em_delta == pytest.approx(-2 / 3)
    assert row.sub_em_low <= row.sub_em_delta <= row.sub_em_high


def test_what_a_method_gains_over_naive_reuse_is_counted_over_the_same_chunks() -> None:
    held = {"full": 1.0, "naive": 0.2, "auto": 0.6, "full+title": 0.9, "naive+title": 0.5, "auto+title": 0.8}
    records = [
        record(method, i, "It was Oslo.", 0.0, sub_em=float(i < 10 * share))
        for method, share in held.items()
        for i in range(10)
    ]
    rows = {row.method: row for row in tabulate(records)}
    assert {name: round(row.gain, 6) for name, row in rows.items()} == {
        "full": 0.8, "naive": 0.0, "auto": 0.4, "full+title": 0.4, "naive+title": 0.0, "auto+title": 0.3,
    }  # fmt: skip
    assert rows["auto"].gain_low < 0.4 < rows["auto"].gain_high
    alone = tabulate([one for one in records if not one.method.startswith("naive")])
    assert {row.gain for row in alone} == {None}


def test_contenders_take_turns_so_that_none_is_always_first(reader: Reader, raw: Path) -> None:
    records = go(reader, raw, count=3)
    orders = [[r.method for r in records if r.id == f"facts-{i}"] for i in range(3)]
    assert orders[1] == orders[0][::-1]
    assert [order[0] for order in orders] == ["full", orders[0][-1], "naive"]


def test_a_resumed_run_asks_only_what_is_missing_and_ends_the_same(
    reader: Reader, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = go(reader, raw)
    lines = raw.read_text().splitlines(keepends=True)
    raw.write_text("".join(lines[:5]) + lines[5][:20])  # killed while it wrote
    asked = count_answers(monkeypatch)
    again = go(reader, raw)
    assert len(asked) == len(whole) - 5
    assert [r.answer for r in again] == [r.answer for r in whole]
    asked.clear()
    assert go(reader, raw) == again
    assert not asked


def test_answers_of_another_reader_pool_or_budget_are_not_taken(
    readers: Callable[[str], Reader], raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = go(readers("llama"), raw, count=1)
    asked = count_answers(monkeypatch)
    go(readers("qwen2"), raw, count=1)
    assert len(asked) == len(whole)
    asked.clear()
    go(readers("llama"), raw, count=2)  # another pool, hence other neighbours
    assert len(asked) == 2 * len(whole)
    asked.clear()
    go(readers("llama"), raw, count=1, budgets=(0.5,))
    assert set(asked) == {"random", "epic"}


def test_a_corrected_document_is_asked_of_again_by_whoever_looks_at_it(
    reader: Reader, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In front of a chunk stands one that is in no prompt."""
    field = contenders(["auto", "fusionrag", "cacheblend"], (0.3,))

    def about(unseen: str) -> dict[str, list[Example]]:
        pages = [((unseen, one.chunks[0]), (one.chunks[1], "More.")) for one in examples(2)]
        return {"facts": [replace(one, pages=of) for one, of in zip(examples(2), pages, strict=True)]}

    first = bench(reader, raw).answers(about("The Tide project."), field)
    asked = count_answers(monkeypatch)
    assert bench(reader, raw).answers(about("The Tide project."), field) == first
    assert not asked
    again = bench(reader, raw).answers(about("The Mill project."), field)
    assert asked == ["auto"] * 2
    assert [one for one in again if one.method != "auto"] == [one for one in first if one.method != "auto"]
    kl = [[one.kl for one in of if one.method == "auto"] for of in (first, again)]
    assert kl[0] != kl[1], "what stands on the page is seen"


def test_a_file_that_holds_something_else_is_refused_and_left_alone(reader: Reader, raw: Path) -> None:
    raw.parent.mkdir()
    raw.write_text("dear diary\n")
    with pytest.raises(InvalidArgument, match=r"line 1 of .*quality\.jsonl"):
        go(reader, raw)
    assert raw.read_text() == "dear diary\n"


def test_neighbours_come_from_the_whole_pool_and_shared_chunks_are_encoded_once(reader: Reader, raw: Path) -> None:
    seen: dict[str, int] = {}
    letters = Letters()
    field = contenders(["fusionrag"], (0.3,))
    asking_all = bench(reader, raw, 1, embedder=letters, progress=lambda stage, done, total: seen.update({stage: done}))
    asking_all.answers({"facts": examples(3)}, field)
    assert sorted(letters.texts) == sorted({text for one in examples(3) for text in one.chunks})
    encoded = {stage: done for stage, done in seen.items() if "encode" in stage}
    assert encoded == dict.fromkeys([f"facts: encode {r}" for r in ("alone", "prefixed", "fused(neighbours=10)")], 7)


def test_runs_over_parts_of_the_tasks_add_up(reader: Reader, raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    field, parts = contenders([], (0.3,)), {name: examples(1, name) for name in ("facts", "twohop")}
    both = [bench(reader, raw, 40).answers({name: parts[name]}, field) for name in parts]
    asked = count_answers(monkeypatch)
    assert bench(reader, raw, 40).answers(parts, field) == [*both[0], *both[1]]
    assert not asked


def record(method: str, number: int, answer: str, em: float, **more: object) -> Record:
    values = {"recompute": None, "seed": 0, "f1": em, "charged": 0.1, "charged_flops": 0.2, "ttft_ms": 10.0}
    key = f"{method}{number}{more}"
    return Record(key=key, task="t", id=str(number), method=method, answer=answer, em=em, **{**values, **more})  # type: ignore[arg-type]


def test_rows_pair_each_method_with_full_prefill() -> None:
    full = [record("full", i, "x" if i < 30 else "wrong", float(i < 30), charged=None, ttft_ms=30.0) for i in range(40)]
    naive = [record("naive", i, "x" if i < 10 else "wrong", float(i < 10)) for i in range(40)]
    half = [record("epic", i, "x" if i < 20 else "no idea", float(i < 20), recompute=0.3) for i in range(40)]
    rows = {row.method: row for row in tabulate([*full, *naive, *half], {"t": 0.25})}
    epic = rows["epic"]
    assert (epic.score, epic.n, epic.recompute) == (0.5, 40, 0.3)
    assert epic.adjusted == pytest.approx(20 / 30)
    assert epic.recovered == pytest.approx(0.5)
    assert 0.2 < epic.recovered_low < 0.5 < epic.recovered_high < 0.8
    assert epic.adjusted_low < 20 / 30 < epic.adjusted_high < 1.0
    assert epic.agreement_low < 0.5 < epic.agreement_high
    assert (epic.ttft_ms, rows["full"].ttft_ms) == (10.0, 30.0)
    assert epic.retention == pytest.approx(20 / 30)
    assert epic.agreement == pytest.approx(0.5)  # wrong in another way than full prefill is no agreement
    assert epic.ttft_ratio == pytest.approx(3.0)
    assert epic.delta == pytest.approx(-0.25)
    assert epic.ci_low < epic.delta < epic.ci_high < 0
    assert (rows["full"].delta, rows["full"].ci_low, rows["full"].charged) == (0.0, 0.0, None)
    assert rows["naive"].recovered == 0.0
    assert rows["chance"].score == 0.25


def test_rows_by_gap_stand_in_order_and_count_only_their_own_questions() -> None:
    gaps = {0: 3, 1: 1, 2: 3, 3: None}
    asked = [record(m, i, "x", float(m == "full" or i == 1), gap=gaps[i]) for i in gaps for m in ("full", "naive")]
    rows = by_gap(asked[::-1], least=1)
    assert [(row.gap, row.method, row.n, row.score) for row in rows] == [
        (1, "naive", 1, 1.0), (1, "full", 1, 1.0), (3, "naive", 2, 0.0), (3, "full", 2, 1.0)
    ]  # fmt: skip
    assert by_gap([one for one in asked if one.gap is None], least=1) == []
    assert [row.gap for row in by_gap(asked, least=2)] == [3, 3]
    assert by_gap(asked) == [], "nothing can be told from so few"


def test_a_table_without_naive_has_nothing_recovered() -> None:
    full = [record("full", i, "x", 1.0) for i in range(4)]
    assert [row.recovered for row in tabulate(full)] == [None]


def test_an_oracle_s_time_is_nobody_s() -> None:
    both = [record("full", 0, "x", 1.0), record("true-deviation", 0, "x", 1.0, recompute=0.1)]
    assert [(row.ttft_ms, row.ttft_ratio) for row in tabulate(both)] == [(10.0, 1.0), (None, None)]


def test_times_are_compared_within_one_run_only() -> None:
    full = [record("full", i, "x", 1.0, ttft_ms=30.0 + 70 * (i == 2), session="ab"[i == 2]) for i in range(3)]
    naive = [record("naive", i, "x", 1.0, ttft_ms=10.0, session="ab"[i == 1]) for i in range(3)]
    late = [record("epic", i, "x", 1.0, ttft_ms=1.0, session="c") for i in range(3)]
    rows = {row.method: row for row in tabulate([*full, *naive, *late])}
    assert (rows["full"].ttft_ms, rows["full"].ttft_ratio) == (30.0, 1.0)
    assert (rows["naive"].ttft_ms, rows["naive"].ttft_ratio) == (10.0, 3.0), "of the first question only"
    assert (rows["epic"].ttft_ms, rows["epic"].ttft_ratio, rows["epic"].score) == (None, None, 1.0)
    old = tabulate([replace(one, session="") for one in (*full, *naive)])
    assert [row.ttft_ratio for row in old] == [1.0, 3.0]


def test_a_method_that_joins_later_has_no_time_beside_the_first_run_s(reader: Reader, raw: Path) -> None:
    go(reader, raw)
    rows = {row.method: row for row in tabulate(go(reader, raw, names=["cacheblend"]))}
    assert rows["cacheblend"].ttft_ms is rows["cacheblend"].ttft_ratio is None
    assert rows["naive"].ttft_ratio is not None


def test_divergence_is_averaged() -> None:
    both = [record("full", i, "x", 1.0, kl=0.0) for i in range(2)]
    both += [record("naive", i, "x", 1.0, kl=float(i)) for i in range(2)]
    assert [row.kl for row in tabulate(both)] == [0.0, 0.5]


def test_nothing_is_recovered_where_naive_loses_nothing_for_sure() -> None:
    full = [record("full", i, "x", float(i > 0)) for i in range(20)]
    naive = [record("naive", i, "x", float(i > 1)) for i in range(20)]
    assert [row.recovered for row in tabulate([*full, *naive])] == [None, None]


def test_seeds_are_pooled_question_by_question() -> None:
    full = [record("full", i, "x", 1.0) for i in range(4)]
    naive = [record("naive", i, "?", 0.0) for i in range(4)]
    noise = [record("random", i, "x" * s, float(s), recompute=0.1, seed=s) for i in range(4) for s in (0, 1)]
    row = tabulate([*full, *naive, *noise])[-1]
    assert (row.n, row.score, row.agreement) == (4, 0.5, 0.5)
    assert (row.ci_low, row.ci_high) == (-0.5, -0.5)  # every question's mean is the same, so nothing varies


def test_a_report_is_json_markdown_and_a_picture(tmp_path: Path) -> None:
    rows = [Row("t", "full", None, None, 1.0, 5, 0.9, 0.9, 1.0, 0.0, 0.0, 0.0, None, 1.0, 1.0, 1.0),
            Row("t", "epic", 0.15, 0.15, 0.2, 5, 0.8, 0.8, 0.8, -0.1, -0.2, 0.0, None, 0.9, 0.8, 3.0),
            Row("t", "chance", None, None, None, 0, 0.25)]  # fmt: skip
    about = {"command": "ragcache bench quality", "reader": "tiny", "hardware": "a machine"}
    files = write(tmp_path / "docs" / "quality.json", Result(rows, about))
    assert [file.suffix for file in files] == [".json", ".md", ".png"]
    content = json.loads(files[0].read_text())
    assert content["rows"][1]["ttft_ratio"] == 3.0
    assert content["meta"] == about
    assert "| epic | 0.15 | 0.150 | 0.200 | 0.800 |" in files[1].read_text() == markdown(rows, about)
    assert "-0.100 [-0.200, +0.000]" in files[1].read_text()
    assert files[2].read_bytes().startswith(b"\x89PNG")


def count_answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the methods that answer from here on."""
    asked: list[str] = []
    original = asking._record

    def counting(key: str, task: str, example: Example, who: Contender, *rest: Any, **named: Any) -> Record:
        asked.append(who.method.name)
        return original(key, task, example, who, *rest, **named)

    monkeypatch.setattr(asking, "_record", counting)
    return asked


def test_the_table_has_the_rows_that_the_benchmark_names() -> None:
    assert {name.removesuffix(TITLE) for name in (*CONTROLS, *TITLED)} - set(EXTRA) <= set(METHODS)


def test_divergence_is_the_textbook_s() -> None:
    p, q = torch.tensor([0.5, 0.25, 0.25]), torch.tensor([0.25, 0.25, 0.5])
    wanted = float((p * (p / q).log()).sum())
    assert asking.divergence(p.log() + 3, q.log() - 1) == pytest.approx(wanted, abs=1e-6)
    assert asking.divergence(p.log(), p.log()) == 0.0


def test_where_no_answer_is_given_full_prefill_s_own_is_the_one(reader: Reader, raw: Path) -> None:
    question = Example("q-0", "facts", ("Project 1 is in Oslo.", "It rains."), ASKED, (), ())
    field = contenders([], (0.3,), controls=("full", "naive"))
    full, naive = bench(reader, raw).answers({"facts": [question]}, field)
    assert (full.em, full.f1) == (1.0, 1.0)
    assert naive.em == float(naive.answer == full.answer)


def test_methods_that_join_later_are_compared_with_full_prefill_too(reader: Reader, raw: Path) -> None:
    go(reader, raw, count=1)
    late = [r for r in go(reader, raw, count=1, names=["cacheblend"]) if r.method == "cacheblend"]
    assert [r.kl > 0 for r in late] == [True]
