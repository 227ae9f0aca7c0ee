"""The study of loading into vLLM compares loaders turn by turn, and the guide says what it found."""

import json
import runpy
from pathlib import Path

import pytest
from vllm_ragcache.loading import LoadedKV

ROOT = Path(__file__).parents[2]


def test_a_loader_is_compared_with_the_plain_one_of_its_turn() -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(ROOT / "bench" / "studies"))
        summarise = runpy.run_path(str(ROOT / "bench" / "studies" / "vllm_loading.py"))["summarise"]
    loaded = [LoadedKV(tokens=10, nbytes=10**9, ms=0.0, read_ms=ms) for ms in (1.0, 9.0, 3.0)]
    taken = {"plain": zip(loaded, (4.0, 2.0, 3.0), strict=True), "connector": zip(loaded, (1.0, 2.0, 2.0), strict=True)}
    plain, ours = summarise({name: list(loads) for name, loads in taken.items()})
    assert plain["times_plain"] == [1.0, 1.0, 1.0]
    assert ours["times_plain"] == [1.5, 1.0, 4.0]
    assert (ours["milliseconds"], ours["milliseconds_reading"], ours["gigabytes_per_second"]) == (2000.0, 3.0, 0.5)
    assert (ours["tokens"], ours["bytes"]) == (10, 10**9)


def test_the_guide_says_how_fast_kv_is_loaded() -> None:
    measured = json.loads((ROOT / "docs/benchmarks/vllm-loading.json").read_text())
    guide = " ".join((ROOT / "docs/guides/serving-with-vllm.md").read_text(encoding="utf-8").split())
    _, ours = measured["rows"]
    assert f"{ours['tokens']:,} tokens of a Qwen2.5-0.5B's KV" in guide
    assert f"{ours['bytes'] / 1e6:.0f} MB" in guide
    assert f"takes one core {ours['milliseconds']:.0f} ms" in guide
    more, least, most = ours["times_plain"]
    assert f"{ours['gigabytes_per_second']:.2f} GB/s, {more:.1f} times as much" in guide
    assert f"({least:.1f} to {most:.1f})" in guide
    assert f"checking are {ours['milliseconds_reading']:.0f} ms" in guide
    assert measured["repeats"] == 15, "the guide says fifteen"
