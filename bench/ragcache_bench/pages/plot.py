"""Quality against cost as inline SVG: points per method, their intervals, and the front that nothing beats."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import sqrt

from ragcache_bench.pages.points import Point, best
from ragcache_bench.pages.shell import COLOURS

_W, _H, _LEFT, _BOTTOM, _TOP = 460, 290, 34, 34, 10
_TICKS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
_SHAPES = {
    "circle": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "square": "M-3.6 -3.6h7.2v7.2h-7.2z",
    "diamond": "M0 -5l5 5l-5 5l-5 -5z",
    "triangle": "M0 -4.8l4.6 8.2h-9.2z",
}


@dataclass(frozen=True)
class Mark:
    """How a series looks: one of the page's colours and one of four shapes."""

    colour: int
    shape: str


def marks(methods: Sequence[str]) -> dict[str, Mark]:
    """A look for each method, the same in every panel; colours come round again with another shape."""
    shapes = list(_SHAPES)
    return {
        name: Mark(number % COLOURS, shapes[(number + number // COLOURS) % len(shapes)])
        for number, name in enumerate(methods)
    }


def legend(looks: Mapping[str, Mark]) -> str:
    """Names of the series; unticking one hides it in all panels."""
    items = [
        f'<label><input type="checkbox" value="{escape(name)}" checked> <svg width="12" height="12" '
        f'viewBox="-6 -6 12 12" class="s{look.colour}"><path class="dot" d="{_SHAPES[look.shape]}"/></svg> '
        f"{escape(name)}</label>"
        for name, look in looks.items()
    ]
    return f'<div class="legend">{"".join(items)}</div>'


def panel(
    title: str, axis: str, points: Sequence[Point], levels: Mapping[str, float], looks: Mapping[str, Mark]
) -> str:
    """One panel; costs are drawn on a square-root scale, which gives small budgets room.

    Parameters
    ----------
    title, axis : str
        What it shows, and what the cost is.
    points : sequence of Point
        Of all methods.
    levels : mapping of str to float
        Qualities drawn as lines across: full prefill, naive reuse, chance.
    looks : mapping of str to Mark
        From `marks`.
    """
    unbeaten = best(points)
    parts = [
        f'<svg viewBox="0 0 {_W} {_H}" role="img" aria-label="{escape(title)}: exact match against {escape(axis)}">',
        *_axes(axis),
        *_levels(levels),
        _stairs(unbeaten),
        *(_series(name, [p for p in points if p.method == name], look) for name, look in looks.items()),
        *(f'<circle class="ring" fill="none" cx="{_x(p.cost):.1f}" cy="{_y(p.quality):.1f}" r="7"/>' for p in unbeaten),
        "</svg>",
    ]
    words = " → ".join(f"{point.words} ({point.quality:.1%})" for point in unbeaten)
    caption = f"<b>{escape(title)}</b> against {escape(axis)}. Nothing beats: {escape(words) or '-'}."
    return f"<figure>{''.join(parts)}<figcaption>{caption}</figcaption></figure>"


def _x(cost: float) -> float:
    return _LEFT + (_W - _LEFT - 12) * sqrt(min(max(cost, 0.0), 1.0))


def _y(quality: float) -> float:
    return _TOP + (_H - _TOP - _BOTTOM) * (1 - min(max(quality, 0.0), 1.0))


def _axes(axis: str) -> Iterator[str]:
    floor = _y(0)
    for tick in _TICKS:
        yield f'<line class="axis" x1="{_x(tick):.1f}" x2="{_x(tick):.1f}" y1="{_y(1):.1f}" y2="{floor:.1f}"/>'
        yield f'<text class="tick" x="{_x(tick):.1f}" y="{floor + 13:.1f}" text-anchor="middle">{tick:g}</text>'
    for tenth in range(0, 11, 2):
        level = _y(tenth / 10)
        yield f'<line class="axis" x1="{_LEFT}" x2="{_x(1):.1f}" y1="{level:.1f}" y2="{level:.1f}"/>'
        yield f'<text class="tick" x="{_LEFT - 5}" y="{level + 4:.1f}" text-anchor="end">{tenth / 10:g}</text>'
    yield f'<text class="tick" x="{_x(1):.1f}" y="{_H - 4}" text-anchor="end">{escape(axis)} (√ scale)</text>'


def _levels(levels: Mapping[str, float]) -> Iterator[str]:
    dashes = ("", "6 3", "2 3")
    for number, (name, level) in enumerate(levels.items()):
        dash = dashes[number % len(dashes)]
        yield (
            f'<line class="level" x1="{_LEFT}" x2="{_x(1):.1f}" y1="{_y(level):.1f}" y2="{_y(level):.1f}" '
            f'stroke-dasharray="{dash}"><title>{escape(name)}: {level:.1%}</title></line>'
            f'<text class="name" x="{_x(1) - 2:.1f}" y="{_y(level) - 3:.1f}" text-anchor="end">{escape(name)}</text>'
        )


def _stairs(points: Sequence[Point]) -> str:
    """What is the best to be had up to each cost."""
    if not points:
        return ""
    steps = "".join(f"H{_x(p.cost):.1f}V{_y(p.quality):.1f}" for p in points[1:])
    start = f"M{_x(points[0].cost):.1f} {_y(points[0].quality):.1f}"
    return f'<path class="front-line" fill="none" d="{start}{steps}H{_x(1):.1f}"/>'


def _series(name: str, points: Sequence[Point], look: Mark) -> str:
    if not points:
        return ""
    ordered = sorted(points, key=lambda point: point.cost)
    line = "L".join(f"{_x(p.cost):.1f} {_y(p.quality):.1f}" for p in ordered)
    dots = "".join(
        f'<path class="whisker" d="M{_x(p.cost):.1f} {_y(p.low):.1f}V{_y(p.high):.1f}"/>'
        f'<path class="dot" transform="translate({_x(p.cost):.1f} {_y(p.quality):.1f})" d="{_SHAPES[look.shape]}">'
        f"<title>{escape(p.words)}: {p.quality:.1%} at {p.cost:.3f}</title></path>"
        for p in ordered
    )
    path = f'<path class="path" fill="none" d="M{line}"/>'
    return f'<g class="s{look.colour}" data-series="{escape(name)}">{path}{dots}</g>'
