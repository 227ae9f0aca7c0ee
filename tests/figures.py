"""Figures as the pages write them, and the files that they are of."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"


def load(name: str) -> dict[str, Any]:
    """What a committed run wrote."""
    found: dict[str, Any] = json.loads((DOCS / "benchmarks" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def words(page: str) -> str:
    """A page's text on one line."""
    return " ".join((DOCS / page).read_text(encoding="utf-8").split())


def cells(page: str, *, after: str) -> list[list[str]]:
    """The rows of a page's first table after some words."""
    _, _, rest = (DOCS / page).read_text(encoding="utf-8").partition(after)
    table = re.search(r"(?:^\|.*\n)+", rest, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()[2:]]


def short(value: float, digits: int = 2) -> str:
    """A number without a zero in front of its point."""
    return f"{value:.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"


def span(one: Mapping[str, float], digits: int = 2) -> str:
    """A mean with its interval."""
    mean, low, high = (short(one[end], digits) for end in ("mean", "low", "high"))
    return f"{mean} [{low}, {high}]"


def spread(figures: Iterable[float]) -> str:
    """From the least to the most."""
    low, *_, high = sorted(figures)
    return f"{short(low)} to {short(high)}"
