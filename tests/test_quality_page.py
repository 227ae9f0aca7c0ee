"""SmolLM2's tables on the quality page are what was measured."""

from typing import Any

import pytest
from figures import cells, load, short
from ragcache_bench.contenders import TITLE

from ragcache.methods import METHODS

SHARE = METHODS["auto"].recompute
PUBLIC = ("xquad", "nq-open")
Row = tuple[str, float | None]
#: A line of a table, and its contender.
LINES: dict[str, Row] = {
    "full prefill": ("full", None),
    "document KV, nothing recomputed": ("auto", 0.0),
    "document KV, 5 % recomputed": ("auto", SHARE),
    "**ragcache's default**, 5 % recomputed": ("auto", SHARE),
    "the same, nothing recomputed": ("auto", 0.0),
    "the same, 5 % recomputed": ("auto", SHARE),
    "the same, 15 % recomputed": ("auto", 0.15),
    "FusionRAG, 15 %": ("fusionrag", 0.15),
    "ProphetKV, 15 %": ("prophetkv", 0.15),
    "CacheBlend, 15 % (really 22 %)": ("cacheblend", 0.15),
    "CacheBlend, 15 %": ("cacheblend", 0.15),
    "EPIC, 15 %": ("epic", 0.15),
    "random tokens, 15 % (control)": ("random", 0.15),
    "naive reuse (control)": ("naive", None),
}
#: The same of the lines below "with a title line".
TITLED: dict[str, Row] = {
    "full prefill, with a title line in each chunk": (f"full{TITLE}", None),
    "**ragcache's default**: document KV with it, 5 % recomputed": (f"auto{TITLE}", SHARE),
    "**ragcache's default**, with it, 5 % recomputed": (f"auto{TITLE}", SHARE),
    "the same, nothing recomputed": (f"auto{TITLE}", 0.0),
    "the same, 15 % recomputed": (f"auto{TITLE}", 0.15),
    "naive reuse, with it": (f"naive{TITLE}", None),
}


@pytest.mark.parametrize(
    ("after", "files"),
    [
        # Other shares of the default are of another run, which asked the same questions.
        ("**XQuAD**: the five paragraphs", ["share-xquad", "xquad-smollm2-tuned"]),
        ("**NQ-open**: one passage has", ["share-nq-open", "nq-open-smollm2-tuned"]),
        ("**On our own tasks, with invented names", ["own-tasks-smollm2-tuned"]),
    ],
)
def test_its_first_tables_are_as_measured(after: str, files: list[str]) -> None:
    rows = {(row["method"], row["recompute"]): row for file in files for row in _over_all_tasks(load(file))}
    names = LINES
    for label, *told in cells("benchmarks/quality.md", after=after):
        names = LINES | TITLED if label in TITLED and label not in LINES else names
        row = rows[names[label]]
        assert told == [short(row["sub_em"], 3), _gap(row, "sub_em"), _gap(row, "gain")], label


def test_the_table_of_the_model_before_tuning_is_as_measured() -> None:
    runs = [{(row["method"], row["recompute"]): row for row in load(f"{name}-smollm2")["rows"]} for name in PUBLIC]
    for label, *told in cells("benchmarks/quality.md", after="**The same model before tuning**"):
        one = (TITLED | LINES)[label]
        found = [_with_gap(rows[one]) if one in rows else "-" for rows in runs]
        assert told == found, label


def _with_gap(row: dict[str, Any]) -> str:
    return ", ".join(filter(None, (short(row["sub_em"], 3), _gap(row, "sub_em"))))


def _over_all_tasks(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Its rows; of several tasks, those of all together."""
    found: list[dict[str, Any]] = content["rows" if len(content["meta"]["tasks"]) == 1 else "pooled"]
    return found


def _gap(row: dict[str, Any], what: str) -> str:
    """A difference with its interval, or nothing where a row would be compared with itself."""
    if (what, row["method"].removesuffix(TITLE)) == ("gain", "naive") or (what, row["method"]) == ("sub_em", "full"):
        return ""
    ends = ("sub_em_delta", "sub_em_low", "sub_em_high") if what == "sub_em" else ("gain", "gain_low", "gain_high")
    delta, low, high = (f"{row[end]:+.3f}".replace("0.", ".") for end in ends)
    return f"{delta} [{low}, {high}]"
