"""docs/methods.md is what the docstrings say, and says of every default whose it is."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from ragcache_cli.methods_page import _attributes, _choice, _row, marks, page

from ragcache.encode import Alone, Fused, Sink
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.select import FirstTokens, KeyDeviation, QuestionAttention

PAGE = Path(__file__).parents[1] / "docs" / "methods.md"
ROWS = list(METHODS.values())


def test_the_page_is_what_the_docstrings_say() -> None:
    assert PAGE.read_text() == page(), "run `python -m ragcache_cli.docs methods > docs/methods.md`"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_says_what_it_stores_computes_and_whose_its_defaults_are(row: Method) -> None:
    text = _row(row)
    assert text.startswith(f"## {row.name}\n")
    assert "- **Stored**: " in text
    assert "- **Computed**: " in text
    assert row.paper in text
    for name in (type(row.encode).__name__, type(row.select).__name__):
        assert name == "NoneType" or f"[`{name}`](#{name.lower()}): " in text
    found = list(marks(row))
    assert {mark for _, _, mark in found} <= {"paper", "tuned here"}
    assert all(f"`{path}={value!r}` *{mark}*" in text for path, value, mark in found)
    assert (row.recompute is None) == ("recompute" not in [path for path, _, _ in found])


def test_every_field_of_a_choice_is_described() -> None:
    """A default that no docstring explains is a default nobody can judge."""
    lost = [
        (row.name, path)
        for row in ROWS
        for path, _, _ in marks(row)
        if path != "recompute" and path.rpartition(".")[2] not in _described(row, path)
    ]
    assert not lost


def _described(row: Method, path: str) -> dict[str, str]:
    holder: object = row
    for name in path.split(".")[:-1]:
        holder = getattr(holder, name)
    return _attributes(type(holder))


def mark(row: Method, path: str) -> str:
    return next(mark for name, _, mark in marks(row) if name == path)


@pytest.mark.parametrize(
    ("row", "path", "expected"),
    [
        (METHODS["fusionrag"], "encode.neighbours", "paper"),
        (replace(METHODS["fusionrag"], encode=Fused(neighbours=5)), "encode.neighbours", "tuned here"),
        (METHODS["cacheblend"], "select.layer", "paper"),
        (replace(METHODS["cacheblend"], select=KeyDeviation(layer=2)), "select.layer", "tuned here"),
        (METHODS["cacheblend"], "recompute", "paper"),
        (METHODS["random"], "recompute", "tuned here"),
        (METHODS["link0"], "encode.tokens", "tuned here"),
        (Method("x", Sink(tokens=5), FirstTokens(), 0.1, paper="1"), "encode.tokens", "tuned here"),
        (METHODS["prophetkv"], "select.layers", "paper"),
        (Method("x", Alone(), QuestionAttention(), 0.1, paper="2412.16545"), "select.layers", "tuned here"),
        (Method("x", Alone(), QuestionAttention(), 0.1), "select.layers", "tuned here"),
        (Method("x", Fused(), QuestionAttention(), 0.1), "encode.neighbours", "paper"),
    ],
    ids=lambda value: value.name if isinstance(value, Method) else str(value),
)
def test_a_default_is_the_paper_s_where_the_docstring_names_that_value(row: Method, path: str, expected: str) -> None:
    assert mark(row, path) == expected


@dataclass(frozen=True)
class Explained:
    """A summary.

    What it does is

    - this, which is said
      in two lines
    - that

    Attributes
    ----------
    left, right : int
        Both
        ends.

    Raises
    ------
    InvalidArgument
        Never.
    """

    left: int = 1
    right: int = 2


def test_a_docstring_becomes_markdown() -> None:
    assert _choice(Explained) == (
        "### Explained\n\nA summary.\n\nWhat it does is\n\n- this, which is said in two lines\n- that\n\n"
        "- `left`: Both ends.\n- `right`: Both ends.\n"
    )
