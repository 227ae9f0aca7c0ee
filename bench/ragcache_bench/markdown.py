"""Tables in Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows under headings; nothing is a dash, numbers have three digits behind the point."""
    lines = [heads, *([_cell(value) for value in row] for row in rows)]
    head, *body = (f"| {' | '.join(line)} |\n" for line in lines)
    return "".join([head, "|---" * len(heads), "|\n", *body])


def made_by(about: Mapping[str, Any]) -> str:
    """A sentence on where figures come from, from a run's meta."""
    return f"Made by `{about['command']}` with the reader `{about['reader']}` on {about['hardware']}.\n"


def _cell(value: object) -> str:
    if value is None:
        return "-"
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")
