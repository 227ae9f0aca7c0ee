"""The first tables of the quality page are what was measured."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ragcache_bench.contenders import TITLE

from ragcache.methods import METHODS

BENCHMARKS = Path(__file__).parents[1] / "docs" / "benchmarks"
PAGE = (BENCHMARKS / "quality.md").read_text(encoding="utf-8")
SHARE = METHODS["auto"].recompute
Row = tuple[str, float | None]
#: A line of a table, and its contender. Other shares of the default are of another run, which asked the same questions.
LINES: dict[str, Row] = {
    "full prefill": ("full", None),
    "document KV, nothing recomputed": ("auto", 0.0),
    "the same, 5 % recomputed": ("auto", SHARE),
    "document KV, 5 % recomputed": ("auto", SHARE),
    "the same, 15 % recomputed": ("auto", 0.15),
    "**ragcache's default**, 5 % recomputed": ("auto", SHARE),
    "FusionRAG, 15 %": ("fusionrag", 0.15),
    "ProphetKV, 15 %": ("prophetkv", 0.15),
    "CacheBlend, 15 % (really 22 %)": ("cacheblend", 0.15),
    "EPIC, 15 %": ("epic", 0.15),
    "random tokens, 15 % (control)": ("random", 0.15),
    "naive reuse (control)": ("naive", None),
    "full prefill, with a title line in each chunk": (f"full{TITLE}", None),
    "**ragcache's default**: document KV with it, 5 % recomputed": (f"auto{TITLE}", SHARE),
    "**ragcache's default**, with it, 5 % recomputed": (f"auto{TITLE}", SHARE),
    "naive reuse, with it": (f"naive{TITLE}", None),
}
#: What "the same" and "with it" mean below the titles.
TITLED: dict[str, Row] = {
    "the same, nothing recomputed": (f"auto{TITLE}", 0.0),
    "the same, 15 % recomputed": (f"auto{TITLE}", 0.15),
}
NOTHING: dict[str, Row] = {"the same, nothing recomputed": ("auto", 0.0)}


@pytest.mark.parametrize(
    ("after", "file", "other"),
    [
        ("**XQuAD**: the five paragraphs", "xquad-smollm2-tuned", "share-xquad"),
        ("**NQ-open**: one passage has", "nq-open-smollm2-tuned", "share-nq-open"),
    ],
)
def test_its_first_tables_are_as_measured(after: str, file: str, other: str) -> None:
    table = re.search(r"(?:^\|.*\n)+", PAGE[PAGE.index(after) :], re.MULTILINE)
    assert table is not None
    main, shares = (_rows(name) for name in (file, other))
    titled = False
    for line in table[0].splitlines()[2:]:
        label, *told = (cell.strip() for cell in line.strip("|").split("|"))
        titled |= "title" in label
        row = TITLED[label] if titled and label in TITLED else {**NOTHING, **LINES}[label]
        found = main[row] if row in main else shares[row]
        assert told == [f"{found['sub_em']:.3f}"[1:], _gap(found, "sub_em"), _gap(found, "gain")], label


def _rows(file: str) -> dict[Row, dict[str, Any]]:
    rows = json.loads((BENCHMARKS / f"{file}.json").read_text(encoding="utf-8"))["rows"]
    return {(row["method"], row["recompute"]): row for row in rows}


def _gap(row: dict[str, Any], what: str) -> str:
    """A difference with its interval, or nothing where a row would be compared with itself."""
    method = row["method"].removesuffix(TITLE)
    if (what, row["method"]) == ("sub_em", "full") or (what, method) == ("gain", "naive"):
        return ""
    ends = ("sub_em_delta", "sub_em_low", "sub_em_high") if what == "sub_em" else ("gain", "gain_low", "gain_high")
    delta, low, high = (f"{row[end]:+.3f}".replace("0.", ".") for end in ends)
    return f"{delta} [{low}, {high}]"
