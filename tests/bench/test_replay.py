"""Traces, drawn and recorded, and their replay: what is asked, what is held within a limit, what is timed again."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from ragcache_bench.contenders import Contender
from ragcache_bench.records import Journal
from ragcache_bench.speed.peers import PrefixCache
from ragcache_bench.speed.peers.peer import Parts, distinct_tokens
from ragcache_bench.speed.replay import Replayed, replay
from ragcache_bench.speed.shapes import random_reader
from ragcache_bench.speed.trace import Recorded, Trace, begin_alike, prompt_tokens, read_trace, seen_before

from ragcache.errors import InvalidArgument
from ragcache.index.index import Index
from ragcache.methods import METHODS
from ragcache.model.reader import Reader

TINY = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 2,
    "num_key_value_heads": 1, "vocab_size": 1000,
}  # fmt: skip
NAIVE, SOME = Contender(METHODS["naive"]), Contender(METHODS["epic"], 0.15)
SHORT = Trace(questions=5, chunks=2, tokens=20, pool=6)
REQUESTS: list[list[int]] = [[], [7, 3, 7], [9, 5], [3, 8], [7, 3], [7, 8, 3]]
LENGTHS = {3: 30, 7: 70, 8: 80, 9: 0, 11: 110}


@pytest.fixture(scope="module")
def reader() -> Reader:
    return random_reader("qwen2", TINY, dtype=torch.float32, device="cpu")


@pytest.fixture
def ragpulse(tmp_path: Path) -> Path:
    """A small folder in RAGPulse's format; passage 9 has no tokens, 5 no length, and 11 is never asked for."""
    lines = [json.dumps({"timestamp": "1", "hash_ids": {"passages_ids": ids}}) for ids in REQUESTS]
    (tmp_path / "0_trace.jsonl").write_text("\n".join(lines) + "\n\n")
    passages = [json.dumps({"passage_id": one, "token_length": length}) for one, length in LENGTHS.items()]
    (tmp_path / "2_passages.jsonl").write_text("\n".join(passages))
    return tmp_path


# -- traces ----------------------------------------------------------------------------------------------------------
def test_a_trace_is_the_same_for_its_seed_and_prefers_what_is_popular() -> None:
    trace = Trace(questions=400, chunks=4, pool=50, seed=3)
    drawn = trace.prompts
    assert drawn == replace(trace).prompts != replace(trace, seed=4).prompts
    assert all(len(set(row)) == 4 for row in drawn)
    seen = torch.bincount(torch.tensor(drawn).flatten(), minlength=50)
    assert seen[:5].sum() > 3 * seen[-5:].sum()
    places = [row.index(0) for row in drawn if 0 in row]
    assert 1.2 < sum(places) / len(places) < 1.8  # the most popular one stands anywhere


def test_a_pool_that_is_smaller_than_a_prompt_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="pool of 3"):
        Trace(chunks=4, pool=3)


def test_a_recorded_trace_has_its_passages_in_its_order(ragpulse: Path) -> None:
    trace = read_trace(f"ragpulse:{ragpulse}")
    assert trace.lengths == [30, 70, 80, 110]
    assert trace.prompts == [[1, 0], [0, 2], [1, 0], [1, 2, 0]]
    assert prompt_tokens(trace) == [100, 110, 100, 180]
    first = read_trace(f"ragpulse:{ragpulse}", 1, 40)
    assert (first.prompts, first.lengths) == ([[1, 0]], [30, 40, 40, 40])
    assert (first.only_asked().prompts, first.only_asked().lengths) == ([[1, 0]], [30, 40])
    late = replace(trace, prompts=[[3, 1]]).only_asked()
    assert (late.prompts, late.lengths) == ([[1, 0]], [70, 110])
    assert repr(first) != repr(trace), "or a journal would take one for the other"


def test_what_comes_back_is_counted(ragpulse: Path) -> None:
    trace = read_trace(f"ragpulse:{ragpulse}")
    assert seen_before(trace) == pytest.approx((30 + 100 + 180) / 490)
    assert begin_alike(trace) == pytest.approx((100 + 70) / 490)
    assert trace.about["seen_before"] == seen_before(trace)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("0_trace.jsonl", "{", "no JSON"),
        ("0_trace.jsonl", '{"timestamp": "1"}', "hash_ids"),
        ("0_trace.jsonl", '{"hash_ids": {"passages_ids": ["x"]}}', "'x'"),
        ("0_trace.jsonl", "", "no request"),
        ("2_passages.jsonl", '{"passage_id": 1}', "token_length"),
        ("2_passages.jsonl", None, "RAGPulse's repository"),
    ],
)
def test_a_folder_that_is_not_like_that_is_refused(name: str, text: str | None, told: str, ragpulse: Path) -> None:
    if text is None:
        (ragpulse / name).unlink()
    else:
        (ragpulse / name).write_text(text)
    with pytest.raises(InvalidArgument, match=told):
        read_trace(f"ragpulse:{ragpulse}")


@pytest.mark.parametrize("spec", ["ragpulse", "ragpulse:", "mooncake:x", ""])
def test_another_format_is_refused(spec: str) -> None:
    with pytest.raises(InvalidArgument, match="ragpulse:FOLDER"):
        read_trace(spec)


# -- limits ----------------------------------------------------------------------------------------------------------
@given(st.lists(st.lists(st.integers(0, 2), max_size=6), max_size=6))
def test_what_prompts_begin_alike_with_counts_once(prompts: list[list[int]]) -> None:
    begun = {tuple(start) for prompt in prompts for start in accumulate([one] for one in prompt)}
    assert distinct_tokens(prompts) == len(begun)


def test_a_prefix_cache_keeps_within_its_limit_what_was_used_last(reader: Reader) -> None:
    cache = PrefixCache(reader, limit=50 * reader.bytes_per_token)
    parts: list[Sequence[Sequence[int]]] = [[[1], [10 + one] * 20, [2, one]] for one in range(3)]

    def ask(one: int) -> torch.Tensor:
        found = cache.first_token(parts[one])
        cache.settle()
        assert cache.held <= 50 * reader.bytes_per_token
        return found

    ask(0), ask(1), ask(0)
    assert cache.held == (1 + 22 + 22) * reader.bytes_per_token
    ask(2)  # takes most of 1, which was used longest ago
    kept = {ids[1]: len(ids) for ids, _ in cache._known}
    assert kept == {11: 6, 10: 23, 12: 23}
    stock, _ = reader.stock([token for part in parts[1] for token in part])
    assert torch.allclose(ask(1), stock, atol=1e-5), "behind what is left of it"


def test_no_limit_keeps_all(reader: Reader) -> None:
    cache = PrefixCache(reader)
    for one in range(5):
        cache.first_token([[1], [one] * 9, [2]])
        cache.settle()
    assert cache.held == (1 + 5 * 10) * reader.bytes_per_token


# -- replays ---------------------------------------------------------------------------------------------------------
def test_a_replay_goes_on_where_it_was(reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> list[str]:
        journal = Journal(tmp_path / "trace.jsonl")
        found = replay(reader, [NAIVE, SOME], SHORT, journal, peers=lambda limit: [PrefixCache(reader, limit)])
        assert len(journal.known) == 4 * SHORT.questions
        return [repr(row) for row in found]

    first = run()
    lines = (tmp_path / "trace.jsonl").read_text().splitlines(keepends=True)
    assert run() == first  # nothing is timed again
    (tmp_path / "trace.jsonl").write_text("".join(lines[:10]))
    run()
    assert len((tmp_path / "trace.jsonl").read_text().splitlines()) == len(lines)  # what lacked was timed, no more


def test_what_remembers_reads_again_what_was_timed_before(reader: Reader, tmp_path: Path) -> None:
    asked: list[Parts] = []

    class Remembering:
        name, remembers, held = "remembering", True, 0

        def reset(self) -> None: ...

        def ready(self, parts: Parts) -> None: ...

        def first_token(self, parts: Parts) -> torch.Tensor:
            asked.append(parts)
            return torch.zeros(1)

        def settle(self) -> None: ...

    for _ in range(2):
        replay(reader, [], SHORT, Journal(tmp_path / "trace.jsonl"), peers=lambda _: [Remembering()])
    assert len(asked) == 2 * (SHORT.questions + 1)  # with the warm-up


def test_a_speed_up_over_a_trace_is_a_ratio_of_means(reader: Reader, tmp_path: Path) -> None:
    full, naive = replay(reader, [NAIVE], SHORT, Journal(tmp_path / "trace.jsonl"))
    assert (full.method, naive.method, full.speedup) == ("full", "naive", 1.0)
    assert naive.speedup == pytest.approx(full.mean_ms / naive.mean_ms)
    assert naive.speedup_low <= naive.speedup <= naive.speedup_high
    assert naive.p50_ms <= naive.p95_ms


def test_everybody_holds_what_they_may(reader: Reader, tmp_path: Path) -> None:
    trace = replace(SHORT, questions=12, pool=10, tokens=200)
    whole = sum(trace.lengths) * reader.bytes_per_token / 2**20
    rows = replay(
        reader, [NAIVE, SOME], trace, Journal(tmp_path / "trace.jsonl"), caches=[0.25, 3.0],
        peers=lambda limit: [PrefixCache(reader, limit)],
    )  # fmt: skip
    assert [(row.method, row.cache) for row in rows] == [
        ("full", None), ("naive", 0.25), ("naive", 3.0), ("epic", 0.25), ("epic", 3.0),
        ("prefix cache", 0.25), ("prefix cache", 3.0),
    ]  # fmt: skip
    by_name = {(row.method, row.cache): row for row in rows}
    assert by_name["full", None].held_mib == 0
    for (method, cache), row in by_name.items():
        if cache is not None:
            assert 0 < row.held_mib <= cache * whole * 1.1, method
    assert whole <= by_name["naive", 3.0].held_mib < whole * 1.1, "all chunks, and no more than headers beside them"


def test_with_room_for_all_chunks_none_is_made_again(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr(Index, "make", lambda *given: made.append("made"))
    replay(reader, [NAIVE], SHORT, Journal(tmp_path / "trace.jsonl"), caches=[1.0])
    assert not made


@pytest.mark.parametrize("name", ["cachecraft", "ragcache"])
def test_what_is_taken_from_prompts_is_kept_from_the_first_on(name: str, reader: Reader, tmp_path: Path) -> None:
    one = Contender(METHODS[name], METHODS[name].recompute)
    again = Recorded("made", "0", [[0, 1]] * 3, [40, 40, 40])
    other = Recorded("made", "1", [[0, 1], [1, 2], [2, 0]], [40, 40, 40])
    held = []
    for trace in (again, other):
        *_, row = replay(reader, [one], trace, Journal(tmp_path / f"{trace.digest}.jsonl"))
        held.append(row.held_mib)
    assert 0 < held[0] < held[1], "the same prompt leaves nothing new"


def test_a_limited_store_is_brought_to_where_it_was(reader: Reader, tmp_path: Path) -> None:
    def run() -> list[Replayed]:
        return replay(reader, [NAIVE], SHORT, Journal(tmp_path / "trace.jsonl"), caches=[0.5])

    first = run()
    lines = (tmp_path / "trace.jsonl").read_text().splitlines(keepends=True)
    assert run() == first
    (tmp_path / "trace.jsonl").write_text("".join(lines[:4]))
    assert [row.held_mib for row in run()] == [row.held_mib for row in first]


@pytest.mark.parametrize("cache", [0.0, -1.0, float("nan")])
def test_a_cache_that_holds_nothing_is_refused(cache: float, reader: Reader, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="above 0"):
        replay(reader, [NAIVE], SHORT, Journal(tmp_path / "trace.jsonl"), caches=[cache])
