"""The study that asks vLLM sixteen questions at once gives every system the same prompts, and full prefill no cache."""

import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROMPTS = [[1, 2, 3], [4, 5, 6, 7, 8]]


@pytest.fixture(scope="module")
def study() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(ROOT / "bench" / "studies"))
        return runpy.run_path(str(ROOT / "bench" / "studies" / "vllm_throughput.py"))


class Server:
    """Remembers what it is asked, and says that two tokens of each prompt came from a cache."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, Any]] = []

    def generate(self, prompts: Any, params: Any, **options: Any) -> list[Any]:
        self.asked.append((prompts, params))
        return [SimpleNamespace(num_cached_tokens=2) for _ in prompts]


def test_systems_differ_in_what_they_ask_of_the_connector_and_in_salts(
    study: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(SamplingParams=SimpleNamespace))
    server, systems = Server(), study["SYSTEMS"]
    turns = [study["run_turn"](server, system, PROMPTS, number) for number in (1, 2) for system in systems]
    assert {turn["cached"] for turn in turns} == {0.5}
    assert [[one["prompt_token_ids"] for one in prompts] for prompts, _ in server.asked] == [PROMPTS] * 8
    asked = [params.extra_args["kv_transfer_params"]["ragcache"] for _, params in server.asked]
    assert asked == [False, False, "auto", "naive"] * 2
    salts = [one.get("cache_salt") for prompts, _ in server.asked for one in prompts]
    given = [salt for salt in salts if salt]
    assert salts == [*given[:2], *[None] * 6, *given[2:], *[None] * 6]
    assert len(set(given)) == 4


def test_a_row_is_the_middle_of_the_turns_and_compared_with_full_prefill(study: dict[str, Any]) -> None:
    turns = {
        "full": [{"wall": wall, "processor": 8.0, "cached": 0.0} for wall in (10.0, 16.0, 90.0)],
        "naive": [{"wall": 4.0, "processor": 2.0, "cached": 0.9}] * 3,
    }
    full, naive = study["summarise"](turns, 16)
    assert (full["requests_per_second"], full["requests_per_processor_second"], full["times_full"]) == (1.0, 2.0, 1.0)
    assert (naive["requests_per_second"], naive["times_full"]) == (4.0, 4.0)
    assert naive["share_of_tokens_from_a_cache"] == 0.9


def test_the_guide_says_what_was_measured() -> None:
    rows = json.loads((ROOT / "docs/benchmarks/vllm-throughput-reader.json").read_text())["rows"]
    guide = " ".join((ROOT / "docs/guides/serving-with-vllm.md").read_text().split())
    rates = [f"{row['requests_per_processor_second']:.1f}" for row in rows]
    shares = [f"{row['share_of_tokens_from_a_cache']:.2f}".removeprefix("0") for row in rows]
    times = [f"{row['times_full']:.1f}" for row in rows]
    assert f"vLLM answers {rates[0]} of them by full prefill, {rates[1]} with its prefix cache" in guide
    assert f"has {shares[1]} of the tokens, {rates[2]} with the connector by the default and {rates[3]} by" in guide
    assert f"which have {shares[2]} of them: {times[1]}, {times[2]} and {times[3]} times as many" in guide


def test_the_guide_says_what_was_measured_with_a_trained_model() -> None:
    rows = json.loads((ROOT / "docs/benchmarks/vllm-throughput-smollm2.json").read_text())["rows"]
    guide = " ".join((ROOT / "docs/guides/serving-with-vllm.md").read_text().split())
    rates = [f"{row['requests_per_processor_second']:.3f}".removeprefix("0") for row in rows]
    shares = [f"{row['share_of_tokens_from_a_cache']:.2f}".removeprefix("0") for row in rows]
    times = [f"{row['times_full']:.1f}" for row in rows]
    assert f"{rates[0]}, {rates[1]} ({shares[1]} of the tokens), {rates[2]} and {rates[3]} ({shares[2]})" in guide
    assert f"so {times[1]}, {times[2]} and {times[3]} times as many" in guide
    assert shares[2] == shares[3]
