"""What the pages say of readers of other shapes is what was measured."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

from figures import short

DOCS = Path(__file__).parents[1] / "docs"
READERS = ("average", "heads", "rope", "deep", "shallow")
BAR = 0.85


def load(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCS / "benchmarks" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def cells(page: str, *, after: str) -> list[list[str]]:
    """The rows of the first table after some words."""
    _, _, rest = (DOCS / page).read_text(encoding="utf-8").partition(after)
    table = re.search(r"(?:^\|.*\n)+", rest, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()[2:]]


def test_what_the_sittings_taught() -> None:
    shares = load("notes-sittings")["shares"]
    curves = load("notes-sittings")["curves"]
    rows = cells("reader.md", after="**How `average` was made.**")
    names = ("fourth", "fifth", "sixth", "seventh", "average", "eighth-24")
    for (_, tokens, facts, sections), name in zip(rows, names, strict=True):
        assert (facts, sections) == tuple(
            short(shares[name][task]["exact"]) for task in ("fresh-facts", "fresh-sections")
        )
        if tokens:
            read = curves[name.removesuffix("-24")][-1]["tokens"]
            assert abs(int(tokens.replace(",", "")) - read) <= 5000


def test_what_readers_of_other_shapes_answer() -> None:
    shares = load("shapes")["shares"]
    rows = cells("reader.md", after="**What they answer.**")
    assert [row[0].strip("`") for row in rows] == [*READERS]
    for name, facts, sections in rows:
        found = shares[name.strip("`")]
        assert found["seed"] == 4
        assert (facts, sections) == tuple(short(found[task]["exact"]) for task in ("fresh-facts", "fresh-sections"))


def test_only_readers_over_the_bar_have_a_table_and_it_is_what_was_measured() -> None:
    told = cells("benchmarks/quality.md", after="## Readers of other shapes")
    names = [re.sub(r"\[(\w+)\].*", r"\1", row[0]) for row in told]
    assert names == [*READERS]
    shown = [("full", None), ("naive", None), ("random", 0.15), *((name, 0.15) for name in ("epic", "cacheblend"))]
    shown += [("fusionrag", 0.15), ("prophetkv", 0.15), ("auto", 0.05), ("auto", 0.15)]
    shown += [("full+title", None), ("naive+title", None), ("auto+title", 0.05)]
    for name, (_, *figures) in zip(names, told, strict=True):
        rows = {(row["method"], row["recompute"]): row["score"] for row in load(f"fresh-sections-{name}")["rows"]}
        assert rows["full", None] >= BAR
        assert figures == [short(rows[one]) for one in shown]
        assert max(rows[one] for one in shown[1:9]) == rows["auto", 0.15], "document KV at 15 % leads"
        assert -0.085 < rows["auto+title", 0.05] - rows["auto", 0.05] < 0.085
        assert 0.04 < rows["naive+title", None] - rows["naive", None] < 0.115


def test_what_holds_for_all_of_them() -> None:
    page = " ".join((DOCS / "benchmarks" / "quality.md").read_text(encoding="utf-8").split())
    naive, leading, default, fused = (
        kept(*one) for one in (("naive", None), ("auto", 0.15), ("auto", 0.05), ("fusionrag", 0.15))
    )
    assert f"Naive reuse keeps {naive} of the right ones" in page
    assert f"Document KV at 15 % leads in each, if by one question in `rope`, and keeps {leading}." in page
    assert f"FusionRAG keeps {fused}, document KV at 5 % keeps {default};" in page
    taus = load("rankings")["taus"]
    told, lows = (spread(one[end] for one in taus) for end in ("tau", "low"))
    assert f"between two of these readers is {told}, each with an interval that reaches down to {lows}" in page


def test_one_reader_was_asked_three_times() -> None:
    page = " ".join((DOCS / "reader.md").read_text(encoding="utf-8").split())
    shares = load("shapes")["shares"]
    facts, sections = (
        [shares[name][task]["exact"] for name in ("average-1", "average-3", "average")]
        for task in ("fresh-facts", "fresh-sections")
    )
    told = [" and ".join(map(short, draws[:2])) for draws in (facts, sections)]
    assert f"`average` answered {told[0]} of facts, {told[1]} of sections" in page
    assert f"which makes {short(fmean(facts))} and {short(fmean(sections))} of all three draws" in page


def kept(method: str, recompute: float | None) -> str:
    """The least and the most of full prefill's right answers that a row keeps on these readers."""
    rows = [row for name in READERS for row in load(f"fresh-sections-{name}")["rows"]]
    return spread(row["adjusted"] for row in rows if (row["method"], row["recompute"]) == (method, recompute))


def spread(figures: Iterable[float]) -> str:
    """From the least to the most."""
    low, *_, high = sorted(figures)
    return f"{short(low)} to {short(high)}"
