"""Peers, traces, throughput and ingestion on tiny shapes: who takes part, what is the same, what is counted."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from ragcache_bench.contenders import Contender, untuned
from ragcache_bench.speed import ingestion, machine, throughput
from ragcache_bench.speed.latency import Latency, measure
from ragcache_bench.speed.machine import added, instructions
from ragcache_bench.speed.peers import PrefixCache, SameOrder
from ragcache_bench.speed.peers.contextpilot import ContextPilotOrder, OrderedByContextPilot
from ragcache_bench.speed.peers.prefix_cache import LEAST
from ragcache_bench.speed.runners import Turn, drop_pages, other, own, shuffled
from ragcache_bench.speed.scaling import scaling
from ragcache_bench.speed.shapes import CHUNK, filled, question, random_reader, random_texts, whole

from ragcache.engine.engine import Engine
from ragcache.errors import InvalidArgument, MissingExtra
from ragcache.index.index import Index
from ragcache.methods import METHODS
from ragcache.model.reader import Reader

TINY = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 2,
    "num_key_value_heads": 1, "vocab_size": 1000,
}  # fmt: skip
NAIVE, SOME = Contender(METHODS["naive"]), Contender(METHODS["epic"], 0.15)


@pytest.fixture(scope="module")
def reader() -> Reader:
    return random_reader("qwen2", TINY, dtype=torch.float32, device="cpu")


@pytest.fixture
def turns(reader: Reader, tmp_path: Path) -> Iterator[tuple[Index, list[Turn]]]:
    with Index(tmp_path / "index", reader) as index:
        chunks = filled(index, [NAIVE], random_texts(3, 20), lambda *step: None)
        yield index, [Turn.of(index, question(index, seed), shuffled(chunks, seed)) for seed in range(4)]


def test_a_turn_is_the_prompt_that_full_prefill_reads(turns: tuple[Index, list[Turn]], reader: Reader) -> None:
    index, several = turns
    for turn in several:
        ready = Engine(reader, index).prefill(turn.question, turn.chunks, method="full")
        assert [token for part in turn.parts for token in part] == list(ready.prompt.token_ids)
    assert len({tuple(map(tuple, turn.parts[1:-1])) for turn in several}) > 1  # other orders
    assert len({tuple(turn.parts[-1]) for turn in several}) == len(several)  # other questions


@pytest.mark.parametrize("ordered", [False, True])
def test_a_prefix_cache_gives_what_full_prefill_gives(
    turns: tuple[Index, list[Turn]], reader: Reader, ordered: bool
) -> None:
    cache = PrefixCache(reader)
    peer = SameOrder(cache) if ordered else cache
    seen: list[int] = []
    stock = reader.stock

    def watched(ids: list[int], kept: object = None) -> object:
        seen.append(len(ids))
        return stock(ids, kept)

    reader.stock = watched  # type: ignore[method-assign, assignment]
    try:
        for turn in turns[1]:
            prefix, *chunks, last = turn.parts
            ids = [token for part in [prefix, *(sorted(chunks) if ordered else chunks), last] for token in part]
            assert torch.allclose(peer.first_token(turn.parts), stock(ids)[0], atol=1e-4)
    finally:
        del reader.stock  # type: ignore[method-assign]
    whole = len([token for part in turns[1][0].parts for token in part])
    assert seen[0] == whole
    assert all(count == whole or count <= (1 - LEAST) * whole for count in seen[1:])  # a short beginning costs more
    if ordered:
        assert all(count <= len(turns[1][0].parts[-1]) for count in seen[1:])  # nothing but the question


def test_a_peer_has_its_chunks_in_the_order_that_contextpilot_says(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    gone: list[set[str]] = []

    class Pilot:
        def __init__(self, *, use_gpu: bool) -> None:
            assert not use_gpu

        def build_incremental(self, contexts: list[list[str]]) -> dict[str, list[Any]]:
            print("many words")
            asked.extend(contexts)
            return {"reordered_contexts": [contexts[0][::-1]], "request_ids": [f"request {len(asked)}"]}

        def remove_requests(self, requests: set[str]) -> None:
            gone.append(requests)

    peer = Mock(remembers=True)
    peer.name = "prefix cache"
    with pytest.raises(MissingExtra, match="pip install --no-deps --target DIR contextpilot"):
        OrderedByContextPilot(peer)
    monkeypatch.setitem(sys.modules, "contextpilot", ModuleType("contextpilot"))
    monkeypatch.setitem(sys.modules, "contextpilot.server", ModuleType("contextpilot.server"))
    monkeypatch.setitem(
        sys.modules, "contextpilot.context_index", SimpleNamespace(compute_distance_cpu=SimpleNamespace())
    )
    monkeypatch.setitem(sys.modules, "contextpilot.server.live_index", SimpleNamespace(ContextPilot=Pilot))
    ordered = OrderedByContextPilot(peer)
    assert (ordered.name, ordered.remembers) == ("prefix cache, ContextPilot's order", True)
    ordered.first_token([[1], [2, 3], [4], [5]])
    peer.first_token.assert_called_once_with([[1], [4], [2, 3], [5]])
    assert len(asked[0]) == 2
    order = ContextPilotOrder()
    assert [order(prompt) for prompt in ("ab", "ba", "ab")] == [("b", "a"), ("a", "b"), ("b", "a")]
    order.forget(("b", "a"))
    order.forget(("b", "a"))
    order.forget(("c",))
    assert gone == [{"request 2", "request 4"}]


def test_peers_and_stores_take_part_in_latency(reader: Reader) -> None:
    peers = [PrefixCache(reader), SameOrder(PrefixCache(reader))]
    rows = measure(reader, [NAIVE, SOME], 2 * CHUNK, repeats=2, store="cold", peers=peers)
    assert [row.method for row in rows] == ["full", "naive", "epic", "prefix cache", "prefix cache, same order"]
    full, naive, epic, *others = rows
    assert full.ideal_ms == pytest.approx(full.ttft_ms)
    assert naive.ideal_ms is not None
    assert epic.ideal_ms is not None
    assert 0 < naive.ideal_ms < epic.ideal_ms
    assert [row.store for row in rows] == ["cold"] * 3 + [None] * 2
    for row in others:
        assert (row.charged, row.charged_flops, row.ideal_ms, row.load_ms) == (None, None, None, None)
    assert full.context_mib == pytest.approx(2 * CHUNK * reader.bytes_per_token / 2**20)


def test_an_unknown_store_is_refused(reader: Reader) -> None:
    with pytest.raises(InvalidArgument, match="memory, warm, cold"):
        measure(reader, [], CHUNK, store="tape")


def test_two_forwards_are_two_passes_over_the_weights(turns: tuple[Index, list[Turn]], reader: Reader) -> None:
    index, several = turns
    engine = Engine(reader, index)
    passes = {
        name: own(engine, Contender(METHODS[name], share), "warm").run(several[0]).passes
        for name, share in (("naive", None), ("epic", 0.5), ("prophetkv", 0.5))
    }
    assert passes["naive"] == passes["epic"] == 1
    assert passes["prophetkv"] is not None
    assert 1 < passes["prophetkv"] <= 2  # the question's pass ends where the last scored layer does


def read_from_disk() -> int:
    lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(lines["read_bytes"])


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="nothing says what was read from the disk")
def test_dropped_pages_are_read_again(tmp_path: Path) -> None:
    (tmp_path / "within").mkdir()
    file = tmp_path / "within" / "file"
    file.write_bytes(bytes(1 << 20))
    before = read_from_disk()
    file.read_bytes()
    assert read_from_disk() == before  # it was just written
    drop_pages(tmp_path)
    file.read_bytes()
    if read_from_disk() == before:
        pytest.skip("this file system lives in memory")
    assert read_from_disk() - before >= 1 << 19


@pytest.mark.parametrize("one", [NAIVE, SOME, Contender(METHODS["prophetkv"], 0.3)], ids=lambda one: one.method.name)
def test_questions_at_once_give_what_they_give_alone(reader: Reader, one: Contender) -> None:
    rows = throughput.measure(reader, one, questions=3, context=CHUNK, tokens=2, repeats=2)
    assert [row.way for row in rows] == list(throughput.WAYS)
    alone, at_once, alike, shared = rows
    assert (alone.speedup, alike.speedup, alone.difference, alike.difference) == (1, 1, None, None)
    for row in (at_once, shared):
        assert row.difference is not None
        assert row.difference < 1e-4
        assert row.speedup_low <= row.speedup <= row.speedup_high


def test_ingestion_is_held_against_forwards_that_store_nothing(reader: Reader) -> None:
    forward, alone, both = ingestion.measure(reader, chunks=4, words=30, repeats=2)
    assert (forward.way, forward.ratio, forward.chunks) == ("forward", 1.0, 4)
    assert alone.tokens == both.tokens == forward.tokens
    assert both.way.startswith("fused")
    for row in (forward, alone, both):
        assert row.ratio_low <= row.ratio <= row.ratio_high
        assert row.low <= row.tokens_per_second <= row.high


def test_the_machine_is_named() -> None:
    assert instructions()
    with added() as most:
        held = torch.ones(8 << 20)
    if most:
        assert held.nbytes // 2 <= most[0] <= 4 * held.nbytes


def test_masked_matrix_instructions_are_not_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine, "_INFO", tmp_path / "cpuinfo")
    (tmp_path / "cpuinfo").write_text("flags : avx512_bf16 amx_bf16 amx_int8", encoding="utf-8")
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    assert not machine.masked()
    assert instructions()[1:] == ["avx512_bf16", "amx_bf16", "amx_int8"]
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
    assert machine.masked()
    assert instructions()[1:] == ["avx512_bf16"]


def test_a_peer_is_timed_without_what_comes_before_and_after() -> None:
    done: list[str] = []

    class Silent:
        name, remembers = "silent", False

        def ready(self, parts: object) -> None:
            done.append("ready")
            time.sleep(0.2)

        def first_token(self, parts: object) -> torch.Tensor:
            done.append("first token")
            return torch.zeros(1)

        def settle(self) -> None:
            done.append("settle")
            time.sleep(0.2)

    taken = other(Silent()).run(Turn("", [], [[1], [2]]))  # type: ignore[arg-type]
    assert done == ["ready", "first token", "settle"]
    assert taken.ms < 150
    assert taken.report is None


def test_growth_is_fitted_on_known_numbers() -> None:
    def row(context: int, ms: float) -> Latency:
        return Latency(context, 512, "full", None, "warm", None, 1.0, ms, ms, ms, 1, 1, 1, ms, None, 0, 0, 0, 0, ms)

    [found] = scaling([row(1000, 10.0), row(2000, 40.0), row(4000, 160.0)])
    assert found.exponent == pytest.approx(2)
    [line] = scaling([row(1000, 15.0), row(3000, 35.0)])
    assert line.ms_per_1000 == pytest.approx(10)
    assert scaling([row(1000, 10.0)]) == []


@pytest.mark.parametrize(("context", "chunk"), [(0, 512), (511, 512), (513, 512), (512, 0)])
def test_a_context_that_is_no_number_of_chunks_is_refused(context: int, chunk: int) -> None:
    with pytest.raises(InvalidArgument, match="multiple"):
        whole(context, chunk)


def test_nobody_is_always_first_and_all_get_as_many_turns(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    prefill = Engine.prefill

    def noted(self: Engine, *given: object, **how: object) -> object:
        asked.append(how["method"].name)  # type: ignore[attr-defined]
        return prefill(self, *given, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(Engine, "prefill", noted)
    measure(reader, [NAIVE, SOME], CHUNK, repeats=3)
    rounds = [asked[i : i + 3] for i in range(0, 12, 3)]
    assert all(sorted(one) == ["epic", "full", "naive"] for one in rounds)
    assert {one[0] for one in rounds[1:]} == {"epic", "full", "naive"}


def test_every_row_of_the_table_loads_what_it_needs(reader: Reader, tmp_path: Path) -> None:
    refused = untuned(METHODS.values(), reader)
    field = [Contender(row) for name, row in METHODS.items() if name not in refused]
    assert len(refused) == 4  # they take a tuned model
    with Index(tmp_path / "index", reader) as index:
        chunks = filled(index, field, random_texts(3, 30), lambda *step: None)
        engine = Engine(reader, index)
        for one in field:
            report = engine.prefill(question(index), chunks, method=one.method).report
            if one.method.encode and not one.method.encode.exact_only:
                assert {chunk.cache for chunk in report.chunks} <= {"hit", "exact"}, one.method.name
