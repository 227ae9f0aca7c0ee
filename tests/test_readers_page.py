"""What the pages say of readers of other shapes is what was measured."""

import re
from statistics import fmean

from figures import cells, load, short, spread, words

READERS = ("average", "heads", "rope", "deep", "shallow")
BAR = 0.85


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
    below = [name for name in READERS if shares[name]["fresh-facts"]["exact"] < BAR]
    assert len(below) == 3
    assert "three of the five readers are below the bar" in words("reader.md")


def test_what_is_said_of_the_reader_that_was_stopped() -> None:
    last = load("shapes")["curves"]["qwen3"][-1]
    told = {kind: f"{right(share)} of {share['n']}" for kind, share in last["validation"].items()}
    said = f"it answered {told['facts']} plain facts and {told['notes']} questions about notes"
    assert f"After {round(last['tokens'], -4):,} tokens {said}" in words("reader.md")


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
        asked_before = load("shapes")["shares"][name]["fresh-sections"]
        assert asked_before["exact"] >= BAR
        assert round(rows["full", None] * asked_before["n"]) - right(asked_before) in (0, 1)
        assert figures == [short(rows[one]) for one in shown]
        assert max(rows[one] for one in shown[1:9]) == rows["auto", 0.15], "document KV at 15 % leads"
        assert -0.085 < rows["auto+title", 0.05] - rows["auto", 0.05] < 0.085
        assert 0.04 < rows["naive+title", None] - rows["naive", None] < 0.115


def test_what_holds_for_all_of_them() -> None:
    page = words("benchmarks/quality.md")
    naive, leading, default, fused = (
        kept(*one) for one in (("naive", None), ("auto", 0.15), ("auto", 0.05), ("fusionrag", 0.15))
    )
    assert f"Naive reuse keeps {naive} of the right ones" in page
    assert f"Document KV at 15 % leads in each, if by one question in `rope`, and keeps {leading}." in page
    assert f"FusionRAG keeps {fused}, document KV at 5 % keeps {default};" in page
    rows = [row for name in READERS for row in load(f"fresh-sections-{name}")["rows"] if row["ci_low"]]
    widths = spread(abs(row[end] - row["delta"]) for row in rows for end in ("ci_low", "ci_high"))
    assert f"known to ±{widths.replace(' to ', ' to ±')}" in page
    taus = load("rankings")["taus"]
    told, lows = (spread(one[end] for one in taus) for end in ("tau", "low"))
    assert f"between two of these readers is {told}, each with an interval that reaches down to {lows}" in page


def test_one_reader_was_asked_three_times() -> None:
    page = words("reader.md")
    shares = load("shapes")["shares"]
    facts, sections = (
        [shares[name][task]["exact"] for name in ("average-1", "average-3", "average")]
        for task in ("fresh-facts", "fresh-sections")
    )
    told = [" and ".join(map(short, draws[:2])) for draws in (facts, sections)]
    assert f"`average` answered {told[0]} of facts, {told[1]} of sections" in page
    assert f"which makes {short(fmean(facts))} and {short(fmean(sections))} of all three draws" in page


def right(share: dict[str, float]) -> int:
    """How many of its questions; the share itself is rounded."""
    return round(share["exact"] * share["n"])


def kept(method: str, recompute: float | None) -> str:
    """The least and the most of full prefill's right answers that a row keeps on these readers."""
    rows = [row for name in READERS for row in load(f"fresh-sections-{name}")["rows"]]
    return spread(row["adjusted"] for row in rows if (row["method"], row["recompute"]) == (method, recompute))
