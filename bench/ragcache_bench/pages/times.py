"""A PNG of times to the first token."""

from collections.abc import Sequence
from pathlib import Path

from ragcache_bench.pages.figure import empty_figure
from ragcache_bench.speed.latency import Latency

_SHAPES = "osD^v"


def draw_times(file: Path, rows: Sequence[Latency]) -> None:
    """Draw times against context lengths, both on logarithmic scales; whiskers go from the least to the most.

    Parameters
    ----------
    file : Path
        PNG to write.
    rows : sequence of Latency
        Of one shape.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.
    """
    drawn = empty_figure(8.5, 5.0)
    panel = drawn.subplots()
    named: dict[str, list[Latency]] = {}
    for row in rows:
        share = "" if row.recompute is None else f" {row.recompute:.0%}"
        where = "" if row.charged_flops in (None, 1.0) else f", {row.store}"
        size = f", chunks of {row.chunk}" if len({other.chunk for other in rows}) > 1 else ""
        named.setdefault(f"{row.method}{share}{where}{size}", []).append(row)
    for number, (name, group) in enumerate(named.items()):
        times = [row.ttft_ms for row in group]
        spread = [[row.ttft_ms - row.ttft_low_ms for row in group], [row.ttft_high_ms - row.ttft_ms for row in group]]
        panel.errorbar([row.context for row in group], times, spread, label=name, lw=1, ms=4, capsize=2,
                       marker=_SHAPES[number // 10 % len(_SHAPES)], color=f"C{number % 10}")  # fmt: skip
    contexts = sorted({row.context for row in rows})
    panel.set(xscale="log", yscale="log", xlabel="tokens of context", ylabel="milliseconds to the first token")
    panel.set_xticks(contexts, [f"{context:,}" for context in contexts])
    panel.minorticks_off()
    panel.grid(alpha=0.3)
    drawn.legend(loc="outside right upper", frameon=False)
    drawn.savefig(file, dpi=130)
