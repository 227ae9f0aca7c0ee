"""What the guide says of vLLM's agreement with our engine, and of loading, is what was measured."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def read_guide() -> str:
    return " ".join((ROOT / "docs/guides/serving-with-vllm.md").read_text(encoding="utf-8").split())


def test_the_guide_says_how_well_they_agree() -> None:
    rows = json.loads((ROOT / "docs/benchmarks/vllm-agreement-reader.json").read_text())["rows"]
    guide = read_guide()
    compared = sum(row["prompts"] for row in rows)
    assert f"{compared:,} comparisons" in guide
    worst = f"{max(row['worst_logprob_difference'] for row in rows):.1e}".replace("e-05", "e-5")
    assert f"differ by {worst} at most" in guide
    assert sum(row["same_texts"] for row in rows) == compared
    assert f"all {compared:,} greedy texts are equal" in guide
    recomputed = sum(row["recomputed_tokens"] for row in rows)
    assert sum(row["same_recomputed_tokens"] for row in rows) == recomputed
    assert f"all {recomputed:,} recomputed tokens are the same" in guide
    assert all(row["all_loadable_chunks_loaded"] == row["prompts"] for row in rows)


def test_the_guide_says_how_fast_kv_is_loaded() -> None:
    measured = json.loads((ROOT / "docs/benchmarks/vllm-loading.json").read_text())
    guide, (_, ours) = read_guide(), measured["rows"]
    assert f"{ours['tokens']:,} tokens of a Qwen2.5-0.5B's KV" in guide
    assert f"{ours['bytes'] / 1e6:.0f} MB" in guide
    assert f"takes one core {ours['milliseconds']:.0f} ms" in guide
    more, least, most = ours["times_plain"]
    assert f"{ours['gigabytes_per_second']:.2f} GB/s, {more:.1f} times as much" in guide
    assert f"({least:.1f} to {most:.1f})" in guide
    assert f"checking are {ours['milliseconds_reading']:.0f} ms" in guide
    assert measured["repeats"] == 15, "the guide says fifteen"
