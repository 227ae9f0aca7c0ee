"""Studies through the server: what its clients count, what an exact prefix cache has, and what is made of it."""

import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
import torch
from ragcache_bench.tasks import KNOWN, Trace
from studied import load_study

from ragcache.model.loading import load_reader
from ragcache.model.reader import Reader

pytestmark = pytest.mark.slow

LOAD, LEARNT, VERIFIED = (load_study(name) for name in ("serving_load", "learnt_texts", "verified_share"))


@pytest.fixture(scope="module")
def reader() -> Reader:
    return load_reader("bundled")


def answered(status: int, *events: Mapping[str, Any], said: str = "Mara Voss.") -> Any:
    """What a client counts that is answered so."""
    lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"

    def respond(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, text=lines, headers={"Retry-After": "3"})

    seen = LOAD["Seen"]()
    with httpx.Client(base_url="http://127.0.0.1", transport=httpx.MockTransport(respond)) as client:
        wait = LOAD["stream_one"](client, [], said, seen)
    return dict(seen.outcomes), len(seen.first_ms), wait


def piece(text: str) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}}]}


def test_an_answer_is_right_wrong_refused_or_an_error() -> None:
    usage = {"choices": []}
    assert answered(200, piece(""), piece("Mara "), piece("Voss."), usage) == ({"right": 1}, 1, 0.0)
    assert answered(200, piece("Mara")) == ({"wrong": 1}, 1, 0.0)
    assert answered(200, piece("Mara"), {"error": {"message": "it broke"}}) == ({"error": 1}, 0, 0.0)
    assert answered(429) == ({"429": 1}, 0, 3.0)
    assert answered(500) == ({"error": 1}, 0, 0.0)


def test_growing_memory_is_told_from_warming_up() -> None:
    warming = [(float(second), 300.0 + min(second, 50)) for second in range(300)]
    leaking = [(float(second), 300.0 + second / 6) for second in range(300)]
    assert LOAD["memory"](warming)["mib_a_minute"] == pytest.approx(0, abs=0.1)
    found = LOAD["memory"](leaking)
    assert found["mib_a_minute"] == pytest.approx(10)
    assert (found["first"], found["most"]) == (300.0, pytest.approx(349.8, abs=0.1))
    assert LOAD["percentiles"]([*range(101)]) == {"p50": 50.0, "p95": 95.0}


def test_a_prefix_cache_has_the_longest_beginning_and_computes_the_rest(reader: Reader) -> None:
    cache = LEARNT["PrefixCache"](reader)
    one, other = list(range(300, 340)), [*range(300, 320), *range(400, 420)]
    assert [cache.ask(ids)[0] for ids in (one, other, one, other[:30])] == [0, 20, 39, 29]
    kept = cache._known[1][1]
    logits, _ = reader.stock(other)
    following, _ = reader.stock([5], kept)
    assert torch.allclose(following, reader.stock([*other, 5])[0], atol=1e-3)
    assert not torch.allclose(following, logits, atol=1e-3)


def test_a_question_is_asked_in_the_model_s_own_words() -> None:
    [example] = Trace(40, 4).examples(1)
    system, user = LEARNT["messages_of"](example)
    assert system["role"] == "system"
    assert all(text.strip() in user["content"] for text in example.chunks)
    assert user["content"].endswith(example.question)


def test_what_was_reused_is_said_over_time_with_intervals() -> None:
    asked = [
        LEARNT["Asked"](
            tokens=100, reused=10 * number, prefix=5, reordered=20, learnt_ms=50.0, full_ms=100.0, prefix_ms=90.0,
            reordered_ms=80.0, em=float(number != 3), full_em=1.0, reordered_em=1.0, agrees=number != 3,
        )
        for number in range(10)
    ]  # fmt: skip
    found = LEARNT["summarise"](asked)
    assert found["reused_over_time"] == pytest.approx([0.05, 0.25, 0.45, 0.65, 0.85])
    assert found["reused"]["mean"] == pytest.approx(0.45)
    assert found["prefix_over_time"] == pytest.approx([0.05] * 5)
    assert found["reordered_over_time"] == pytest.approx([0.2] * 5)
    sooner = [found[f"sooner_than_{name}"]["mean"] for name in ("full", "prefix", "reordered")]
    assert sooner == pytest.approx([2.0, 1.8, 1.6])
    assert found["median_ms_last_part"] == {"learnt": 50.0, "full": 100.0, "prefix": 90.0, "reordered": 80.0}
    difference = found["em_minus_full"]
    assert difference["mean"] == pytest.approx(-0.1)
    assert difference["low"] < difference["mean"] < difference["high"] == pytest.approx(0)
    assert found["agreement"] == pytest.approx(0.9)


def test_a_server_finds_the_share_that_a_comparison_without_it_finds() -> None:
    reader, examples = load_reader("bundled", dtype="float32"), KNOWN["sections"].examples(6, 3)
    without = VERIFIED["offline"](reader, "naive", examples)
    [found] = VERIFIED["served"](reader, "naive", [examples])
    assert 0 < sum(without) < 6, "a comparison that can fail"
    assert (found["verified"], found["share"]) == (6, pytest.approx(sum(without) / 6))
    assert found["low"] < found["share"] < found["high"]
