"""What the pages say of readers that are tuned on invented notes is what was measured."""

import json
import re
from pathlib import Path
from typing import Any

from figures import short

DOCS = Path(__file__).parents[1] / "docs"


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
    rows = cells("reader.md", after="**One thing at a time.**")
    names = ("fourth", "fifth", "sixth", "seventh", "average", "eighth-24")
    for (_, tokens, facts, sections), name in zip(rows, names, strict=True):
        assert (facts, sections) == tuple(
            short(shares[name][task]["exact"]) for task in ("fresh-facts", "fresh-sections")
        )
        if tokens:
            read = curves[name.removesuffix("-24")][-1]["tokens"]
            assert abs(int(tokens.replace(",", "")) - read) <= 5000
