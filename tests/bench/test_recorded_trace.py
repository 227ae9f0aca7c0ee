"""A whole trace walked without KV: what each cache finds and holds, and that what is timed is in the state it says."""

import json
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from figures import short, span
from hypothesis import given
from hypothesis import strategies as st
from ragcache_bench.records import Journal
from ragcache_bench.speed.shapes import random_reader
from ragcache_bench.speed.simulation import SimulatedPrefixCache, SimulatedStore, Sized
from ragcache_bench.speed.trace import Recorded, begin_alike

from ragcache.engine.engine import Engine
from ragcache.model.reader import Reader

ROOT = Path(__file__).parents[2]
SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
         "num_key_value_heads": 1, "vocab_size": 1000}  # fmt: skip
TRACE = Recorded("made", "0", [[0, 1], [2, 0], [0, 1, 3], [3, 2], [0, 1]], [4, 5, 6, 7, 8])
PROMPTS = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True), min_size=1, max_size=12)
BYTES = {str(chunk): tokens for chunk, tokens in enumerate(TRACE.lengths)}


@pytest.fixture(scope="module")
def study() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "bench" / "studies" / "recorded_trace.py"))


@pytest.fixture(scope="module")
def reader() -> Reader:
    return random_reader("qwen2", SIZES, dtype=torch.float32, device="cpu")


class Backwards:
    """In the place of ContextPilot, which is not installed here: the chunks from the last to the first."""

    forgotten: ClassVar[list[Sequence[str]]] = []

    def __call__(self, chunks: Sequence[str]) -> tuple[str, ...]:
        return tuple(reversed(chunks))

    def forget(self, prompt: Sequence[str]) -> None:
        self.forgotten.append(prompt)


# -- prefixes --------------------------------------------------------------------------------------------------------
@given(PROMPTS, st.integers(1, 40))
def test_a_prefix_cache_holds_whole_beginnings_within_its_limit(prompts: list[list[int]], limit: int) -> None:
    cache = SimulatedPrefixCache(limit, BYTES)
    for prompt in prompts:
        named = tuple(map(str, prompt))
        begins = [start for start in cache.kept if named[: len(start)] == start]
        assert cache.ask(named) == len(begins)
        assert all(start[:-1] in cache.kept for start in cache.kept if len(start) > 1)
        assert sum(BYTES[start[-1]] for start in cache.kept) == cache.nbytes <= min(limit, cache.most)


@given(PROMPTS)
def test_without_a_limit_a_prefix_cache_finds_what_begins_alike(prompts: list[list[int]]) -> None:
    trace, cache = Recorded("made", "0", prompts, TRACE.lengths), SimulatedPrefixCache(10**6, BYTES)
    found = sum(sum(trace.lengths[chunk] for chunk in prompt[: cache.ask([*map(str, prompt)])]) for prompt in prompts)
    assert found / sum(trace.lengths[chunk] for prompt in prompts for chunk in prompt) == begin_alike(trace)


def test_what_was_used_longest_ago_goes_first_and_a_beginning_after_what_it_begins() -> None:
    cache = SimulatedPrefixCache(15, BYTES)
    assert [cache.ask(prompt) for prompt in ("01", "2", "01", "2")] == [0, 0, 2, 1]
    assert cache.ask("4") == 0  # 8 bytes, for which all of "01" goes, and then "2" has to stay
    assert set(cache.kept) == {("2",), ("4",)}
    assert cache.ask("23") == 1
    assert set(cache.kept) == {("2",), ("2", "3")}


# -- chunks ----------------------------------------------------------------------------------------------------------
@given(PROMPTS, st.integers(1, 40), st.sampled_from(["saved per byte", "lru", "lfu"]))
def test_a_store_finds_what_it_holds_within_its_limit(prompts: list[list[int]], limit: int, policy: str) -> None:
    known: list[Sized] = [(str(chunk), tokens, 10.0 * tokens) for chunk, tokens in enumerate(TRACE.lengths)]
    store = SimulatedStore(limit, policy)
    store.fill(known)
    for now, prompt in enumerate(prompts, 1):
        there = {str(chunk) for chunk in prompt} & set(store.kept)
        assert store.ask([known[chunk] for chunk in prompt], now) == there
        assert sum(BYTES[key] for key in store.kept) == store.nbytes <= store.most <= limit


def test_a_store_with_room_for_all_finds_all_that_was_ingested(study: Any, reader: Reader) -> None:
    walked = list(study["walk"](TRACE, reader, [1.0], Backwards))
    [store] = [one for one in walked if one.cache == "chunks"]
    assert all(state.found == state.order for state in store.states)
    assert store.most == sum(TRACE.lengths) * reader.bytes_per_token


def test_who_orders_is_told_what_its_cache_lets_go_of(study: Any, reader: Reader) -> None:
    Backwards.forgotten.clear()
    list(study["walk"](TRACE, reader, [0.4], Backwards))
    assert Backwards.forgotten[:3] == [("1", "0"), ("1",), ("0", "2")]


def test_prefix_caches_differ_by_order_alone(study: Any, reader: Reader) -> None:
    walked = {one.cache: one for one in study["walk"](TRACE, reader, [], Backwards)}
    orders = {name: [state.order for state in one.states] for name, one in walked.items()}
    plain, ordered, pilot = study["PREFIXES"]
    assert orders[plain] == [tuple(prompt) for prompt in TRACE.prompts]
    assert orders[ordered] == [tuple(sorted(prompt)) for prompt in TRACE.prompts]
    assert orders[pilot] == [tuple(reversed(prompt)) for prompt in TRACE.prompts]
    assert [state.found for state in walked[plain].states] == [(), (), (0, 1), (), (0, 1)]
    assert [state.found for state in walked[ordered].states] == [(), (0,), (0, 1), (), (0, 1)]


# -- times -----------------------------------------------------------------------------------------------------------
def test_questions_are_timed_in_the_states_that_the_walk_says(
    study: Any, reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = Recorded("made", "0", TRACE.prompts, [40, 50, 60, 70, 80])
    walked = list(study["walk"](trace, reader, [0.3, 1.0], Backwards))
    limited = [one for one in walked if one.size is not None]
    seen: set[str] = set()
    prefill, encode, encoded = Engine.prefill, Reader.encode, list[int]()

    def watched(engine: Engine, *given: Any, method: Any, **more: Any) -> Any:
        encoded.clear()
        ready = prefill(engine, *given, method=method, **more)
        loaded = sum(chunk.tokens for chunk in ready.report.chunks if chunk.cache == "hit")
        seen.add(f"{method.name} {loaded}")
        assert not encoded, "the system prefix was there"
        return ready

    def counted(reader: Reader, ids: Any, *given: Any, **more: Any) -> Any:
        encoded.append(len(ids))
        return encode(reader, ids, *given, **more)

    monkeypatch.setattr(Engine, "prefill", watched)
    monkeypatch.setattr(Reader, "encode", counted)
    times = study["time_states"](reader, trace, limited, [2, 4], Journal(tmp_path / "times.jsonl"))
    for one in limited:
        names = ["naive", "auto", "fusionrag"] if one.cache == "chunks" else [one.cache]
        assert all(set(times[name, one.size]) == {2, 4} for name in names)
    stores = [one for one in limited if one.cache == "chunks"]
    for row in ("naive", "fusionrag"):
        for which in (2, 4):
            for one in stores:
                tokens = sum(trace.lengths[chunk] for chunk in one.states[which].found)
                assert f"{row} {tokens}" in seen, seen
    assert times == study["time_states"](reader, trace, limited, [2, 4], Journal(tmp_path / "times.jsonl"))


def test_a_row_says_what_was_found_and_how_much_sooner(study: Any, reader: Reader, tmp_path: Path) -> None:
    [store] = [one for one in study["walk"](TRACE, reader, [1.0], Backwards) if one.cache == "chunks"]
    times = study["time_states"](reader, TRACE, [store], [0, 2], Journal(tmp_path / "times.jsonl"))
    others = {(name, 1.0): times["full", None] for name in study["PREFIXES"]}
    naive, *_ = study["tell"](TRACE, store, {**times, **others})
    assert naive["found"]["mean"] == 1.0
    assert naive["over_time"] == [1.0] * 5
    assert naive["sooner"]["full"] == naive["sooner"]["prefix cache"]
    ratio = sum(times["full", None].values()) / sum(times["naive", 1.0].values())
    assert naive["sooner"]["full"]["mean"] == pytest.approx(ratio)


def test_the_committed_table_says_what_its_json_says(study: Any) -> None:
    file = ROOT / "docs" / "benchmarks" / "recorded-trace.json"
    if not file.exists():
        pytest.skip("`make bench/recorded-trace` takes an hour")
    content = json.loads(file.read_text(encoding="utf-8"))
    assert study["markdown"](content["rows"], content["meta"]) == file.with_suffix(".md").read_text("utf-8")


def test_the_page_says_what_was_measured(study: Any) -> None:
    content = json.loads((ROOT / "docs" / "benchmarks" / "recorded-trace.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "benchmarks" / "speed.md").read_text(encoding="utf-8")
    rows = {(row["method"], row["cache"]): row for row in content["rows"]}
    trace, prefixes = content["meta"]["trace"], study["PREFIXES"]
    assert f"{trace['questions']:,} questions" in page
    assert f"{short(trace['seen_before'], 3)} of these tokens" in " ".join(page.split())
    for size in dict.fromkeys(row["cache"] for row in content["rows"]):
        found = [span(rows[name, size]["found"], 3) for name in prefixes]
        ours = "all that were ingested" if size is None else span(rows["naive", size]["found"], 3)
        assert f"| {named(size)} | {' | '.join([*found, ours])} |" in page
        for method in ("naive", "auto", "fusionrag"):
            if "sooner" in (row := rows.get((method, size), {})):
                share = f" at {named(row['recompute'])}" if row["recompute"] else ""
                sooner = " | ".join(map(span, row["sooner"].values()))
                assert f"| {named(size)} | `{method}`{share} | {row['mean_ms'] / 1e3:.2f} | {sooner} |" in page
    flat, whole = " ".join(page.split()), {name: rows[name, 1.0]["sooner"]["full"] for name in (*prefixes, "naive")}
    assert f"{trace['tokens']:,.0f} tokens of passages each, out of {trace['pool']:,} passages" in flat
    assert f"{short(trace['begin_alike'], 3)} as the beginning of a prompt" in flat
    full = rows["naive", 1.0]["mean_ms"] * whole["naive"]["mean"] / 1e3
    assert f"full prefill takes {full:.1f} seconds" in flat
    plain, _, pilot = (span(whole[name]) for name in prefixes)
    assert f"prefix cache is {plain} times sooner than full prefill, in ContextPilot's order {pilot} times" in flat
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    plain, default = (rows[name, 1.0]["sooner"]["full"]["mean"] for name in (prefixes[0], "auto"))
    assert f"on SmolLM2, it was {short(plain)} times sooner, and the default {short(default)} times." in readme


def named(size: float | None) -> str:
    return "no limit" if size is None else f"{size * 100:g} %"
