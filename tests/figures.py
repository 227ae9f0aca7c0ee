"""Figures as the pages write them."""

from collections.abc import Mapping


def short(value: float, digits: int = 2) -> str:
    """A number without a zero in front of its point."""
    return f"{value:.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"


def span(one: Mapping[str, float], digits: int = 2) -> str:
    """A mean with its interval."""
    mean, low, high = (short(one[end], digits) for end in ("mean", "low", "high"))
    return f"{mean} [{low}, {high}]"
