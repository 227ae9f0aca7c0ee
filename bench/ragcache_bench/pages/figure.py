"""Figures without a screen."""

from typing import Any

from ragcache.retrieve.needs import needs


def empty_figure(width: float, height: float) -> Any:
    """A figure with nothing on it; sizes in inches.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.
    """
    with needs("bench"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    return made
