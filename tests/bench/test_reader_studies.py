"""Studies of readers and of the default: what is asked of whom, and under which names the answers stand in a table."""

import json
import runpy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from figures import short, span
from ragcache_bench.records import Record
from ragcache_bench.tasks import KNOWN
from ragcache_bench.tasks.example import add_titles

from ragcache.errors import InvalidArgument
from ragcache.model.tuning import Tuning

ROOT = Path(__file__).parents[2]
STUDIES, DOCS = ROOT / "bench" / "studies", ROOT / "docs"
TURBORAG = Tuning("turborag", "independent", "reordered", 0, 0, "bundled", 10)


@pytest.fixture(scope="module")
def studies() -> Mapping[str, Mapping[str, Any]]:
    return {
        name: runpy.run_path(str(STUDIES / f"{name}.py"))
        for name in ("title_wordings", "tuned_rows", "left_contexts", "default_choice")
    }


def _record(method: str) -> Record:
    return Record("", "sections", "1", method, None, 0, "", 1.0, 1.0, None, 0.1, None)


# -- titles ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("task", ["sections", "pronouns", "labels"])
def test_a_title_becomes_a_sentence_on_every_chunk_that_has_one_but_a_header(task: str, studies: Any) -> None:
    for example in KNOWN[task].examples(4, 7):
        said = studies["title_wordings"]["as_sentence"](example)
        for text, line, now in zip(example.chunks, add_titles(example).chunks, said.chunks, strict=True):
            title = "" if text.startswith("This page is about") else line.removesuffix(text).strip()
            assert now == (f"This page is about {title}. {text}" if title else text)
        where = [[text in page for page in example.pages] for text in example.chunks]
        assert [[text in page for page in said.pages] for text in said.chunks] == where
        assert (said.question, said.answers) == (example.question, example.answers)


# -- tuned rows ------------------------------------------------------------------------------------------------------
def test_a_tuned_model_answers_by_its_own_row_at_every_share_and_by_full_prefill(studies: Any) -> None:
    field = studies["tuned_rows"]["field"]
    assert [(who.name, who.recompute) for who in field(TURBORAG, [0.05])] == [
        ("full", None), ("turborag", 0.0), ("turborag", 0.05), ("turborag+title", 0.0), ("turborag+title", 0.05),
    ]  # fmt: skip
    control = replace(TURBORAG, recipe="full", attention="full")
    assert {who.name for who in field(control, [0.05])} == {"full", "naive", "naive+title", "auto", "auto+title"}
    untuned = {"full", "naive", "full+title", "naive+title", "random", "auto", "auto+title"}
    assert {who.name for who in field(None, [0.05])} == untuned


def test_full_prefill_of_a_tuned_model_is_not_taken_for_the_untuned_ones(studies: Any) -> None:
    named = studies["tuned_rows"]["named"]
    answers = [_record("full"), _record("naive+title"), _record("turborag+title")]
    assert [one.method for one in named(answers, TURBORAG)] == [
        "full of turborag", "naive+title of turborag", "turborag+title",
    ]  # fmt: skip
    assert [one.method for one in named(answers[:2], None)] == ["full", "naive+title"]


def test_twins_are_pooled_apart(studies: Any) -> None:
    answers = [_record("full"), replace(_record("full"), task="labels-twin"), replace(_record("full"), task="labels")]
    found = studies["tuned_rows"]["pooled"](answers)
    assert [one.task for one in found] == ["all tasks", "all twins", "all tasks"]
    assert len({one.id for one in found}) == 3


def test_a_row_that_not_every_task_has_is_not_pooled(studies: Any) -> None:
    answers = [_record("full"), replace(_record("full"), task="labels"), _record("full+title")]
    assert {one.method for one in studies["tuned_rows"]["pooled"](answers)} == {"full"}


def test_a_folder_without_a_record_is_refused(studies: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="no record of `ragcache finetune`"):
        studies["tuned_rows"]["known_tuning"](tmp_path)


def test_two_adapters_of_one_recipe_have_no_row_each_and_are_refused(studies: Any) -> None:
    check, other = studies["tuned_rows"]["check_distinct"], replace(TURBORAG, recipe="kvlink")
    check([(None, None), (Path("a"), TURBORAG), (Path("b"), other)])
    with pytest.raises(InvalidArgument, match="a and b are both of the recipe turborag"):
        check([(Path("a"), TURBORAG), (Path("b"), TURBORAG)])


def test_the_guide_says_what_the_control_and_kvlink_answer() -> None:
    found = json.loads((DOCS / "benchmarks" / "tuned-rows-smollm2-float32.json").read_text(encoding="utf-8"))
    page = " ".join((DOCS / "guides" / "tuned-readers.md").read_text(encoding="utf-8").split())
    rows = {row["method"]: row for row in found["pooled"] if row["recompute"] != 0.05}
    [more_tokens] = [row for row in found["pooled"] if row["recompute"] == 0.05]
    assert {row["n"] for row in rows.values()} == {200}
    naive, full = rows["naive of full"], rows["full of full"]
    gain, more = (
        span({"mean": row[kind], "low": row[low], "high": row[high]}, 3)
        for row, kind, low, high in (
            (naive, "gain", "gain_low", "gain_high"), (full, "sub_em_delta", "sub_em_low", "sub_em_high"),
        )
    )  # fmt: skip
    shares = [short(rows[name]["sub_em"], 3) for name in ("naive of full", "naive", "full of full", "full")]
    assert "answers {} by `naive` where the untuned model answers {} ({})".format(*shares[:2], gain) in page
    assert "and {} by full prefill where that answers {} ({})".format(*shares[2:], more) in page
    linked = rows["kvlink"]
    won, lost = (
        span({"mean": linked[kind], "low": linked[low], "high": linked[high]}, 3)
        for kind, low, high in (("gain", "gain_low", "gain_high"), ("sub_em_delta", "sub_em_low", "sub_em_high"))
    )
    shares = [short(row["sub_em"], 3) for row in (linked, more_tokens, rows["full of kvlink"])]
    said = "answers {}, {} more than `naive` and {} to full prefill, {} at 5 %, and {} by full prefill of its model"
    assert said.format(shares[0], won, lost, *shares[1:]) in page
    costs = {one["recipe"]: one["ordinary"] for one in found["meta"]["tuned"]}
    for name, recipe in (("the control", "full"), ("`kvlink`", "kvlink")):
        assert f"{name} {short(costs[recipe]['nats_before'], 3)} and {short(costs[recipe]['nats_after'], 3)}" in page


# -- the default -----------------------------------------------------------------------------------------------------
def test_lines_are_compared_on_one_axis_at_a_time(studies: Any) -> None:
    by_context, by_layers = (studies["left_contexts"][name] for name in ("BY_CONTEXT", "BY_LAYERS"))
    for lines in (by_context, by_layers):
        assert len({row.name for row in lines}) == len(lines)
    assert len({row.encode for row in by_layers}) == 1
    assert len({row.select for row in by_layers}) == len(by_layers)


def test_runs_are_paired_by_the_questions_of_both(studies: Any) -> None:
    def lines(method: str, recompute: float | None, right: dict[str, float]) -> list[str]:
        named = {"method": method, "recompute": recompute, "task": "t"}
        return [json.dumps({**named, "id": one, "sub_em": value}) for one, value in right.items()]

    study = studies["default_choice"]
    as_is = [
        *lines(study["AS_IS"], None, {"1": 0.0, "2": 1.0, "3": 1.0}),
        *lines("full", None, {"1": 1.0, "2": 1.0, "3": 0.0}), *lines("naive", None, {"1": 0.0, "2": 0.0, "3": 1.0}),
    ]  # fmt: skip
    (row,) = study["paired"]("x", as_is, lines(study["RECOMPUTED"], 0.05, {"1": 1.0, "2": 0.0, "4": 1.0}))
    assert (row["n"], row["full"], row["naive"], row["as_is"], row["recomputed"]) == (2, 1.0, 0.0, 0.5, 0.5)
    assert (row["came_right"], row["went_wrong"]) == (1, 1)


def test_the_page_has_the_figures_that_the_default_was_chosen_by() -> None:
    page = (DOCS / "compositions.md").read_text(encoding="utf-8")
    rows = json.loads((DOCS / "benchmarks" / "default-choice.json").read_text(encoding="utf-8"))["rows"]
    for name in dict.fromkeys(row["set"] for row in rows):
        of = [row for row in rows if row["set"] == name]
        figures = [of[0]["full"], of[0]["naive"], of[0]["as_is"], *(row["recomputed"] for row in of)]
        assert " | ".join(f"{value:.3f}"[1:] for value in figures) in page, name
    at = {share: [row for row in rows if row["recompute"] == share] for share in (0.05, 0.15)}
    came, went, asked = (sum(row[key] for row in at[0.05]) for key in ("came_right", "went_wrong", "n"))
    assert f"{came} of the {asked} come right that were wrong, and {went} the other way round" in " ".join(page.split())
    came, went = (sum(row[key] for row in at[0.15]) for key in ("came_right", "went_wrong"))
    assert f"with 15 % {came} and {went}" in " ".join(page.split())
