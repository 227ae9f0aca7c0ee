"""What the guide says of vLLM's agreement with our engine is what was measured."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_guide_says_how_well_they_agree() -> None:
    rows = json.loads((ROOT / "docs/benchmarks/vllm-agreement-reader.json").read_text())["rows"]
    guide = " ".join((ROOT / "docs/guides/serving-with-vllm.md").read_text(encoding="utf-8").split())
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
