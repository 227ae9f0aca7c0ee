"""The study of vLLM's first token compares each system with its own full prefill, turn by turn."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def study() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(ROOT / "bench" / "studies"))
        return runpy.run_path(str(ROOT / "bench" / "studies" / "vllm_first_token.py"))


def test_a_row_is_compared_with_full_prefill_of_the_same_system_and_turn(study: dict[str, Any]) -> None:
    taken = {
        ("vllm", "full"): [(9.0, 8.0), (9.0, 4.0), (9.0, 6.0)],
        ("engine", "full"): [(1.0, 1.0)] * 3,
        ("vllm", "naive"): [(2.0, 1.0), (5.0, 2.0), (3.0, 2.0)],
    }
    full, ours, naive = study["summarise"](taken)
    assert [one["times_sooner"] for one in (full, ours)] == [{"median": 1.0, "least": 1.0, "most": 1.0}] * 2
    assert naive["times_sooner"] == {"median": 3.0, "least": 2.0, "most": 8.0}
    assert (naive["wall_seconds"], naive["processor_seconds"]) == (3.0, 2.0)


def test_the_guide_says_what_was_measured() -> None:
    measured = json.loads((ROOT / "docs/benchmarks/vllm-first-token.json").read_text())
    guide = " ".join((ROOT / "docs/guides/serving-with-vllm.md").read_text(encoding="utf-8").split())
    assert (measured["threads"], measured["repeats"]) == (1, 5)
    for prompt in measured["prompts"]:
        rows = {(row["system"], row["method"]): row for row in prompt["rows"]}
        sooner = {way: row["times_sooner"] for way, row in rows.items()}
        auto, naive = sooner["vllm", "auto"], sooner["vllm", "naive"]
        assert f"{prompt['tokens']:,} tokens" in guide
        assert f"{auto['median']:.1f} and {naive['median']:.1f} times sooner" in guide
        assert f"({auto['least']:.1f} to {auto['most']:.1f}, {naive['least']:.1f} to {naive['most']:.1f})" in guide
        assert f"{sooner['engine', 'auto']['median']:.1f} and {sooner['engine', 'naive']['median']:.1f}" in guide
        assert f"{rows['vllm', 'full']['wall_seconds']:.1f} s" in guide
        for method in ("auto", "naive"):
            assert f"{rows['vllm', method]['wall_seconds']:.2f} s".removeprefix("0") in guide
