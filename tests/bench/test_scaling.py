"""Sizing on paper: the arithmetic by other ways, and a guide that says nothing that no figure holds."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
STUDY: dict[str, Any] = runpy.run_path(str(ROOT / "bench" / "studies" / "scaling.py"))
GUIDE = (ROOT / "docs" / "guides" / "scaling.md").read_text(encoding="utf-8")
FIGURES = {
    name: json.loads((ROOT / "docs" / "benchmarks" / f"{name}.json").read_text())
    for name in ("scaling", "published-catalogue", "ray-ingestion")
}


def test_sums_over_many_ranks_are_those_of_all_terms() -> None:
    for skew in (0.6, 0.8, 1.0):
        exact = float((np.arange(1, 10**6 + 1, dtype=np.float64) ** -skew).sum())
        assert STUDY["harmonic"](10**6, skew) == pytest.approx(exact, rel=1e-9)


def test_lru_is_what_a_simulated_cache_finds() -> None:
    rng, size = np.random.default_rng(1), 2_000
    for skew in (0.6, 1.0):
        chances = np.arange(1, size + 1, dtype=np.float64) ** -skew
        drawn = rng.choice(size, 20_000, p=chances / chances.sum())
        found = STUDY["_lru_share"](drawn.reshape(-1, 8), 200)
        assert STUDY["che"](size, skew, 200) == pytest.approx(found, abs=0.02)
        assert STUDY["covered"](size, skew, 200) > found


def test_a_prefix_cache_finds_what_begins_alike() -> None:
    asked = np.array([[1, 2, 3], [1, 2, 4], [1, 2, 3], [2, 1, 3]])
    assert STUDY["_prefix_share"](asked) == pytest.approx(3 / 6), "all of the third, nothing of the fourth"


def test_a_chunk_is_as_large_as_its_layers_are() -> None:
    assert STUDY["chunk_bytes"]("8B") == 256 * 128 * 1024
    assert STUDY["chunk_bytes"]("70B") == 256 * 80 * 2 * 8 * 128 * 2


def test_what_is_stored_pays_for_itself() -> None:
    for row in FIGURES["scaling"]["monthly"]:
        assert row["popular_stored"] <= min(row["full_prefill"], row["all_stored"])


def test_the_guide_has_the_tables_of_the_figures() -> None:
    for name, table in STUDY["make_tables"](FIGURES["scaling"]).items():
        assert table in GUIDE, f"{name}; run bench/studies/scaling.py --page"


def test_the_guide_says_no_number_that_no_figure_holds() -> None:
    said = GUIDE
    for table in STUDY["make_tables"](FIGURES["scaling"]).values():
        said = said.replace(table, "")
    said = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", said, flags=re.DOTALL)
    found = set(re.findall(r"(?<![\w.])\.?\d+(?:,\d{3})*(?:\.\d+)?", said))
    assumed = FIGURES["scaling"]["assumed"]
    held = {f"{value:g}" for value in assumed.values()} | {f"{value:.2f}".lstrip("0") for value in assumed.values()}
    held |= {f"{assumed['object_store_usd_gb_month']}".lstrip("0"), f"{assumed['recomputed_share'] * 100:g}"}
    held |= {f"{one['prefix_cache'] * 100:.1f}" for one in FIGURES["scaling"]["simulated"]}
    held |= {f"{one['zipf']}".lstrip("0") for one in FIGURES["scaling"]["simulated"]}
    held |= {
        f"{FIGURES['scaling']['meta']['questions']:,}",
        f"{FIGURES['published-catalogue']['bytes_per_chunk'] / 1e3:.1f}",
    }
    assert all(abs(one["lru_1_percent"] - one["che_1_percent"]) <= 0.01 for one in FIGURES["scaling"]["simulated"])
    held.add(".01")
    held |= {f"{FIGURES['scaling']['bytes']['8B'][0]['mib_per_chunk']:g}"}
    held |= {str(layers) for layers, *_ in STUDY["MODELS"].values()} | {
        str(size) for size in STUDY["MODELS"]["8B"][1:3]
    }
    ray = FIGURES["ray-ingestion"]
    held |= {f"{ray['meta'][name]:,}" for name in ("chunks", "documents")}
    held |= {
        f"{one[name]:,}"
        for one in ray.values()
        for name in ("keys", "lost", "doubled", "deaths", "nodes")
        if name in one
    }
    rest = {
        "8",
        "70",
        "10",
        "2,048",
        "1.5",
    }  # 8B and 70B; Gbit/s of 1.25 GB/s, and powers; InDocument's window; 384 numbers of 4 bytes
    assert found <= held | rest, sorted(found - held - rest)


def test_ray_lost_nothing_and_doubled_nothing() -> None:
    for name in ("worker_killed_and_poison", "node_lost"):
        row = FIGURES["ray-ingestion"][name]
        assert row["right"]
        assert row["lost"] == row["doubled"] == row["other"] == row["bad"] == 0
        assert row["keys"] == FIGURES["ray-ingestion"]["alone"]["keys"] == 2000
        assert row["deaths"] >= 1
    assert len(FIGURES["ray-ingestion"]["worker_killed_and_poison"]["reported"]) == 1
