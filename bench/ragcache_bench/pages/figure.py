"""Figures without a screen, and what all of them look like."""

from collections.abc import Sequence
from typing import Any

from ragcache.retrieve.needs import needs

#: Colours that colour-blind readers tell apart (after Okabe and Ito), by who a series belongs to.
OURS, PUBLISHED, CONTROL, REFERENCE, OTHERS = "#0072b2", "#d55e00", "#6b7280", "#009e73", "#8e4a8c"
INK, SOFT, LINE = "#1b1f24", "#5b6470", "#d8dde3"


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


def plain(panel: Any, *, grid: str = "") -> None:
    """Take the frame away, and draw a faint grid across the axis that is named: "x", "y", "both" or none."""
    panel.spines[["top", "right"]].set_visible(False)
    panel.spines[["left", "bottom"]].set_color(LINE)
    panel.tick_params(color=LINE, labelcolor=INK, labelsize=9)
    panel.set_axisbelow(True)
    if grid:
        panel.grid(axis=grid, color=LINE, lw=0.7)


def legend(figure: Any, colours: Sequence[tuple[str, str]]) -> None:
    """One line under the panels that says whose each colour is."""
    from matplotlib.lines import Line2D

    dots = [Line2D([], [], color=colour, marker="o", ls="", label=name) for name, colour in colours]
    figure.legend(handles=dots, loc="outside lower center", ncols=len(dots), frameon=False, fontsize=9)


def spread_out(at: Sequence[float], least: float) -> list[float]:
    """Places for labels that want to stand at some heights and keep a distance from one another.

    Parameters
    ----------
    at : sequence of float
        Where each label would stand, in any order.
    least : float
        The least distance between two of them.

    Returns
    -------
    list of float
        In the order of `at`; each as near to its own place as pushing upwards from the lowest allows.
    """
    placed: dict[int, float] = {}
    top = float("-inf")
    for number in sorted(range(len(at)), key=lambda number: at[number]):
        top = max(at[number], top + least)
        placed[number] = top
    return [placed[number] for number in range(len(at))]


def sooner_text(ratio: float) -> str:
    """A speed-up in two or three digits: "4.4×", "25×", "120×"."""
    return f"{ratio:.0f}×" if ratio >= 9.95 else f"{ratio:.1f}×"
