"""Studies of repeat traffic: what is asked, what is worked out, and that committed tables say what their JSON says."""

import json
import runpy
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from figures import short, span
from ragcache_bench.speed.shapes import question, random_reader, random_texts
from ragcache_bench.speed.simulation import SimulatedPrefixCache
from ragcache_bench.speed.trace import Trace
from ragcache_bench.tasks.trace import BoundTrace

from ragcache import Sampling
from ragcache.encode import PrefixTree
from ragcache.engine.engine import Engine
from ragcache.index.index import Index
from ragcache.layout import LongestPath
from ragcache.methods import METHODS
from ragcache.model.reader import Reader
from ragcache.report import CacheReport, ChunkReport, Timings, Tokens

ROOT = Path(__file__).parents[2]
NAMES = {"repeat_trace": "repeat-trace", "prefix_tree": "prefix-tree", "speculation": "speculation"}
TREES = {"drawn": "prefix-tree", "RAGPulse": "prefix-tree-ragpulse"}
SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
         "num_key_value_heads": 1, "vocab_size": 1000}  # fmt: skip
ONE = Sampling(max_new_tokens=1)


@pytest.fixture(scope="module")
def studies() -> Mapping[str, Mapping[str, Any]]:
    return {name: runpy.run_path(str(ROOT / "bench" / "studies" / f"{name}.py")) for name in NAMES}


@pytest.fixture(scope="module")
def words() -> Reader:
    return random_reader("llama", SIZES, dtype=torch.float32, device="cpu")


@pytest.mark.parametrize("name", NAMES)
def test_a_committed_table_says_what_its_json_says(name: str, studies: Any) -> None:
    file = ROOT / "docs" / "benchmarks" / f"{NAMES[name]}.json"
    if not file.exists():
        pytest.skip(f"{file.name} is not there yet: `make bench/{file.stem}` takes an hour")
    content = json.loads(file.read_text(encoding="utf-8"))
    assert studies[name]["markdown"](content["rows"], content["meta"]) == file.with_suffix(".md").read_text("utf-8")


@pytest.mark.parametrize("trace", TREES)
def test_the_page_says_what_a_tree_hits_and_how_soon(trace: str, studies: Any) -> None:
    file = ROOT / "docs" / "benchmarks" / f"{TREES[trace]}.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    assert studies["prefix_tree"]["markdown"](content["rows"], content["meta"]) == file.with_suffix(".md").read_text()
    found = {(row["reorder"], row["policy"], row["limit"]): row for row in content["rows"]}
    heads = [(f"{trace}, 0.1", "PGDSF", 0.1), ("", "LRU", 0.1), (f"{trace}, 1", "PGDSF", 1), ("", "LRU", 1)]
    for head, policy, limit in [*heads, (f"{trace}, none", "either", None)]:
        kept, sorted_ = (found[reorder, policy.lower() if limit else None, limit] for reorder in (False, True))
        cells = [cell for row in (kept, sorted_) for cell in (span(row["hits"], 3), span(row["sooner"]))]
        assert " ".join(f"| {head} | {policy} | {' | '.join(cells)} |".split()) in speed_page()


def test_the_page_says_how_soon_rows_that_keep_prompts_answer_a_recorded_trace() -> None:
    content = json.loads((ROOT / "docs" / "benchmarks" / "trace-ragpulse-reader.json").read_text(encoding="utf-8"))
    names = [
        "naive",
        "auto",
        "prophetkv",
        "cachecraft",
        "ragcache",
        "prefix cache",
        "prefix cache, ContextPilot's order",
    ]
    rows = {(row["method"], row["cache"]): row for row in content["rows"]}
    for size in (0.1, 1.0):
        digits = {name: 1 if rows[name, size]["speedup"] >= 10 else 2 for name in names}
        cells = [span(sooner(rows[name, size]), digits[name]) for name in names]
        assert f"| {size * 100:g} % | {' | '.join(cells)} |" in speed_page()
    assert (
        f"takes {short(rows['full', None]['mean_ms'] / 1e3)} seconds ([figures](trace-ragpulse-reader.md)"
        in speed_page()
    )


def speed_page() -> str:
    return " ".join((ROOT / "docs" / "benchmarks" / "speed.md").read_text(encoding="utf-8").split())


def sooner(row: Mapping[str, float]) -> dict[str, float]:
    return {"mean": row["speedup"], "low": row["speedup_low"], "high": row["speedup_high"]}


# -- a trace of chunks that need their header ------------------------------------------------------------------------
def test_a_fact_stands_behind_its_header_with_nothing_but_that_headers_facts_between() -> None:
    for example in BoundTrace(pool=60).examples(40, seed=3):
        header, fact = example.gold
        assert header < fact
        assert example.answers[0].lower() in example.chunks[fact].lower()
        assert len(set(example.chunks)) == len(example.chunks)
        assert 7 <= len(example.chunks) <= 12, "six facts under one to six headers"


def test_popular_facts_come_back_and_a_seed_is_a_trace() -> None:
    asked = [example.question for example in BoundTrace().examples(200, seed=1)]
    assert len(set(asked)) < 120
    assert asked == [example.question for example in BoundTrace().examples(200, seed=1)]
    assert asked != [example.question for example in BoundTrace().examples(200, seed=2)]


# -- what an answer computed -----------------------------------------------------------------------------------------
def test_chunks_without_kv_count_as_computed_and_exact_ones_as_not(studies: Any) -> None:
    chunks = [ChunkReport("a", "", 30, "miss", ""), ChunkReport("b", "", 20, "hit", ""),
              ChunkReport("c", "", 50, "exact", "")]  # fmt: skip
    report = CacheReport("cachecraft", 0.5, tuple(chunks), Tokens(100, 5, 0, 0, 0), 0.25, 0.4, Timings())
    assert studies["repeat_trace"]["computed"](report) == pytest.approx((30 + 5) / 100)


def test_the_least_alpha_that_keeps_enough_is_chosen_and_else_the_best(studies: Any) -> None:
    study = studies["repeat_trace"]

    def play(scores: Mapping[Any, float]) -> Callable[[Any], Any]:
        def run(method: Any) -> Any:
            key = "full" if method.name == "full" else method.schedule.scale * method.recompute
            right = round(scores[key] * 100)
            return [study["Answered"](float(n < right), 0.1, 0.1, 0.1, 0.0, 1) for n in range(100)]

        return run

    choose = study["_choose_alpha"]
    found = choose(play({"full": 0.8, 0.0: 0.5, 0.6: 0.77, 1.0: 0.8}), (0.0, 0.6, 1.0))
    assert (found["alpha"], found["enough"]) == (0.6, True)
    found = choose(play({"full": 0.8, 0.0: 0.5, 0.6: 0.7, 1.0: 0.6}), (0.0, 0.6, 1.0))
    assert (found["alpha"], found["enough"]) == (0.6, False)


# -- the tree --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("reorder", [False, True])
@pytest.mark.parametrize("nodes", [5, 1000])
def test_a_tree_without_kv_hits_what_the_engine_hits(
    reorder: bool, nodes: int, words: Reader, studies: Any, tmp_path: Path
) -> None:
    trace = Trace(questions=40, chunks=3, tokens=8, pool=7)
    with Index(tmp_path, words) as index:
        index.put("words", "", [(text, 0, len(text)) for text in random_texts(trace.pool, trace.tokens)], {})
        chunks = index.chunks([row.id for row in index.catalog.all_chunks()])
        engine = Engine(words, index)
        engine.answer(question(index), chunks[:1], method="ragcache", sampling=ONE)
        [node] = index.catalog.by_recipe("prefix-tree")
        index.forget([node.key])
        row = replace(METHODS["ragcache"], encode=PrefixTree(disk_bytes=nodes * node.nbytes),
                      layout=LongestPath(reorder=reorder))  # fmt: skip
        tree = studies["prefix_tree"]["Tree"](words.dims, dict.fromkeys(map(str, range(trace.pool)), trace.tokens), 1,
                                              nodes * trace.tokens, "pgdsf", reorder)  # fmt: skip
        hits = []
        for number, drawn in enumerate(trace.prompts):
            asked = [chunks[i] for i in drawn]
            told = engine.answer(question(index, number), asked, method=row, sampling=ONE).report
            hits.append(sum(chunk.tokens for chunk in told.chunks if chunk.cache == "exact"))
            assert tree.ask([str(i) for i in drawn])[0] == hits[-1], number
        assert len(tree.nodes) == len(index.catalog.by_recipe("prefix-tree"))
        assert sum(hits) > 0


def test_the_leaf_that_was_asked_for_longest_ago_goes_first_by_lru(words: Reader, studies: Any) -> None:
    def tree(policy: str) -> Any:
        return studies["prefix_tree"]["Tree"](words.dims, dict.fromkeys("abc", 8), 1, 16, policy)

    for policy, left in (("lru", {"b", "c"}), ("pgdsf", {"a", "c"})):
        grown = tree(policy)
        for chunk in "aaabc":
            grown.ask([chunk])
        assert set(grown.nodes) == left, "a came often, and before b"


@pytest.mark.parametrize("limit", [24, 64, 10_000])
def test_a_tree_by_lru_finds_what_a_prefix_cache_does(limit: int, words: Reader, studies: Any) -> None:
    trace = Trace(questions=200, chunks=3, tokens=8, pool=7)
    sizes = {str(chunk): tokens for chunk, tokens in enumerate(trace.lengths)}
    tree, cache = studies["prefix_tree"]["Tree"](words.dims, sizes, 1, limit, "lru"), SimulatedPrefixCache(limit, sizes)
    for prompt in trace.prompts:
        named = [str(chunk) for chunk in prompt]
        assert tree.ask(named)[0] == 8 * cache.ask(named)
    assert tree.held == cache.nbytes


def test_times_lie_between_those_measured_and_grow_in_proportion_behind_them(studies: Any) -> None:
    found = studies["prefix_tree"]["milliseconds"]([1.0, 2.0, 3.0, 6.0], [3.0, 1.0], [50.0, 10.0])
    assert found == pytest.approx([10, 30, 50, 100])


# -- a search in steps -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("order", ["nearest", "any"])
def test_a_search_ends_with_the_best_of_all_rows(order: str, studies: Any) -> None:
    study, asked = studies["speculation"], ["q1", "q2", "q3"]
    search = replace(study["draw_table"](16, 40, 8, asked), order=order)
    for one in asked:
        lists = list(search.find(one, 4))
        scores = search.rows.reshape(-1, 8) @ search.questions[one]
        assert lists[-1] == np.argsort(-scores)[:4].tolist()
        assert len(lists) == study["STEPS"]
        tops = [scores[found[-1]] for found in lists]
        assert tops == sorted(tops), "lists get better"


def test_who_waits_hears_of_the_last_list_only(studies: Any) -> None:
    study = studies["speculation"]
    search = study["draw_table"](8, 10, 4, ["q"])
    rows = cast(Any, search).find("q", 2)
    every = {row: str(row) for found in rows for row in found}
    search = replace(search, chunks=every)
    told = list(search.retrieve("q", 2))
    assert len(told) == study["STEPS"]
    assert list(study["Final"](search).retrieve("q", 2)) == told[-1:]
