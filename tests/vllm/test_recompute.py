"""vLLM recomputes what our own engine does, and fills what is missing between chunks."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from vllm_asking import QUESTION, Chosen, distance, expected, generate, prefill_parts, report

from ragcache.engine.engine import Engine
from ragcache.prompt import Segment

pytestmark = pytest.mark.vllm
CLOSE = 5e-4
Spied = list[list[int]]


@pytest.fixture
def chosen_rows(monkeypatch: pytest.MonkeyPatch) -> Spied:
    """What the worker chooses, prompt by prompt."""
    from vllm_ragcache import recompute

    rows, choose = Spied(), recompute.choose_rows

    def spy(*given: Any) -> Any:
        rows.append((chosen := choose(*given)).tolist())
        return chosen

    monkeypatch.setattr(recompute, "choose_rows", spy)
    return rows


@pytest.mark.parametrize("share", [0.05, 0.15, 0.3])
@pytest.mark.parametrize("method", ["epic", "cacheblend", "prophetkv", "fusionrag", "auto", "qcfuse", "cacheblend-v"])
def test_the_engines_tokens_are_recomputed_and_its_logits_come_out(
    llm: Any, engine: Engine, chunks: Chosen, chosen_rows: Spied, method: str, share: float
) -> None:
    for seed in (60, 61):
        ours = engine.prefill(QUESTION, chunks(seed, 6), method=method, recompute=share)
        [output] = generate(llm, ours.prompt.token_ids, ragcache={"method": method, "recompute": share})
        assert distance(output, torch.log_softmax(ours.logits, -1)) < CLOSE
        assert chosen_rows[-1] == ours.recomputed.nonzero().flatten().tolist()
        assert report(output)["recompute"] == share


def test_recompute_changes_logits_or_these_tests_could_not_fail(engine: Engine, chunks: Chosen) -> None:
    shares = [expected(engine, chunks(0, 6), "prophetkv", share)[1] for share in (0, 0.15, 0.3, 1)]
    assert min(float((one - other).abs().max()) for one, other in pairwise(shares)) > 20 * CLOSE


def test_the_default_is_autos_own_share(llm: Any, engine: Engine, chunks: Chosen, chosen_rows: Spied) -> None:
    ids, auto = expected(engine, chunks(62, 6), "auto")
    [output] = generate(llm, ids, tokens=2)
    assert (report(output)["method"], report(output)["recompute"]) == ("auto", 0.05)
    assert report(output)["recomputed_tokens"] == len(chosen_rows[-1]) > 0
    assert 0.05 <= report(output)["charged"] < 0.1
    [output] = generate(llm, [*ids[:-1], ids[-1]], ragcache={"method": "auto", "recompute": 0.05})
    assert distance(output, auto) < CLOSE


def test_the_same_prompt_again_is_answered_from_vllms_own_blocks_and_another_share_is_not(
    llm: Any, engine: Engine, chunks: Chosen, chosen_rows: Spied
) -> None:
    ids, some = expected(engine, chunks(63, 6), "prophetkv", 0.15)
    more, none = (expected(engine, chunks(63, 6), "prophetkv", share)[1] for share in (0.3, 0.0))
    for share, wanted in ((0.15, some), (0.3, more), (0.0, none), (0.15, some), (0.3, more)):
        [output] = generate(llm, ids, ragcache={"method": "prophetkv", "recompute": share})
        assert distance(output, wanted) < CLOSE
    assert output.num_cached_tokens > len(ids) - 64
    asked = engine.index.template.plain("Question: When did it begin?")
    other = [*ids[: -len(asked)], *asked]  # the same chunks, and another question chooses other tokens
    generate(llm, other, ragcache={"method": "prophetkv", "recompute": 0.15})
    assert chosen_rows[-1] != chosen_rows[0]


def _changed(engine: Engine, chosen: list[Any]) -> list[Any]:
    """A chunk with one token changed: most of it is in no index."""
    ids = list(chosen[2].segment.token_ids)
    ids[len(ids) // 2] += 1
    return [engine.index.prefix_segment, *chosen[:2], Segment(tuple(ids)), *chosen[3:]]


def _between(engine: Engine, chosen: list[Any]) -> list[Any]:
    words = Segment(engine.index.template.plain("Nobody has ever ingested these words.\n\n"))
    return [engine.index.prefix_segment, chosen[0], words, *chosen[1:3], words, *chosen[3:]]


def _in_front(engine: Engine, chosen: list[Any]) -> list[Any]:
    return [Segment((*engine.index.prefix_segment.token_ids[:-1], 77, 78)), *chosen]


def _twice(engine: Engine, chosen: list[Any]) -> list[Any]:
    return [engine.index.prefix_segment, *chosen, chosen[0], chosen[2]]


@pytest.mark.parametrize(("method", "share"), [("naive", None), ("auto", 0.15), ("cacheblend", 0.15), ("epic", 0.3)])
@pytest.mark.parametrize("build", [_changed, _between, _in_front, _twice])
def test_what_is_missing_between_chunks_is_computed_and_the_rest_is_reused(
    llm: Any,
    engine: Engine,
    chunks: Chosen,
    chosen_rows: Spied,
    build: Callable[..., list[Any]],
    method: str,
    share: float | None,
) -> None:
    parts = build(engine, chunks(64, 5))
    ours = prefill_parts(engine, parts, QUESTION, method, share)
    ids, wanted = list(ours.prompt.token_ids), torch.log_softmax(ours.logits, -1)
    asked = {"method": method} | ({} if share is None else {"recompute": share})
    [output] = generate(llm, ids, ragcache=asked)
    assert distance(output, wanted) < CLOSE
    known = engine.index.prefix_segment.token_ids
    others = [part for part in parts if isinstance(part, Segment) and part.token_ids != known]
    found, fresh = report(output), sum(len(part) for part in others)
    assert found["chunks"] == sum(not isinstance(part, Segment) for part in parts)
    assert found["loaded_tokens"] == len(ids) - fresh - sum(len(part) for part in ours.prompt.segments[-2:])
    assert (chosen_rows[-1] if share else []) == ours.recomputed.nonzero().flatten().tolist()
    [text] = generate(llm, [*ids[:-1], 5], tokens=2, ragcache={**asked, "recompute": 0.2} if share else asked)
    if share:  # nothing of it stands in vLLM's own blocks
        assert report(text)["fresh_tokens"] == fresh


def test_a_damaged_kv_costs_the_recompute_too(
    llm: Any, engine: Engine, chunks: Chosen, file_of: Callable[[Any, str], Any]
) -> None:
    chosen = chunks(65, 5)
    ids, full = expected(engine, chosen, "full")
    file = file_of(chosen[2], "naive")
    content = file.read_bytes()
    try:
        file.write_bytes(content[:-50] + bytes([content[-50] ^ 1]) + content[-49:])
        [output] = generate(llm, ids, ragcache={"method": "epic", "recompute": 0.15})
        assert distance(output, full) < CLOSE
        assert "unusable" in report(output)["misses"][-1]["reason"]
        [output] = generate(llm, ids, tokens=2, ragcache={"method": "epic", "recompute": 0.3})  # known to be damaged
        assert report(output)["fresh_tokens"] == len(chosen[2].segment)
    finally:
        file.unlink(missing_ok=True)
        file.write_bytes(content)
