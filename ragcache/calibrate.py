"""Where reuse begins to pay: an index's own method timed against full prefill, over ever more of its own chunks."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from ragcache.breakeven import BreakEven, machine
from ragcache.chunks import Chunk
from ragcache.engine import Engine
from ragcache.methods import Method, find

_QUESTION = "Which of these notes says when, by whom and why it was decided?"
_MOST = 16  # chunks

Progress = Callable[[str, int, int], None]


def calibrate(engine: Engine, progress: Progress | None = None, *, repeats: int = 3) -> BreakEven | None:
    """Time the engine's method and full prefill on 1, 2, 4, 8 and 16 chunks, and have the index remember what it found.

    From then on the engine prefills contexts shorter than the break-even, and its reports say so. Nothing but the
    method's own default share is measured, so that a share that is asked for is never put aside. It ends as soon as
    reuse has won twice in a row.

    Parameters
    ----------
    engine : Engine
        Over an index that holds what its method loads.
    progress : callable, optional
        `progress(stage, done, total)`.
    repeats : int
        Turns of each at every length, after a warm-up; medians of the paired ratios count.

    Returns
    -------
    BreakEven or None
        None where there is nothing to measure: no chunks, or a method that is full prefill.

    Raises
    ------
    MissingEncoding
        If the index lacks what the method loads.
    """
    row, index = engine.method, engine.index
    ids = [one.id for one in index.catalog.all_chunks()[:_MOST]]
    if row.encode is None or not ids:
        return None
    engine.check_encoding(row)
    chunks, won, tokens, done = index.chunks(ids), 0, 0, 0
    counts = sorted({min(1 << power, len(ids)) for power in range(_MOST.bit_length())})
    for done, count in enumerate(counts):
        if won == 2:
            break
        if progress is not None:
            progress("calibrate", done, len(counts))
        if _ratio(engine, row, chunks[:count], repeats) <= 1:
            won += 1
        else:
            won, tokens = 0, _size(chunks[:count]) + 1
    if progress is not None:
        progress("calibrate", len(counts), len(counts))
    found = BreakEven(row.name, machine(engine.reader), tokens)
    found.keep(index)
    return found


def _ratio(engine: Engine, row: Method, chunks: Sequence[Chunk], repeats: int) -> float:
    """Time to the first token of a method over full prefill's, in turns."""
    # Another name: what was measured before must not have it prefilled.
    rows = replace(row, name=f"{row.name}, calibrated"), find("full")
    ratios = []
    for turn in range(-1, repeats):
        own, full = (engine.prefill(_QUESTION, chunks, method=one).report.ms.first_token for one in rows)
        if turn >= 0:
            ratios.append(own / full)
    return median(ratios)


def _size(chunks: Sequence[Chunk]) -> int:
    return sum(len(chunk.segment) for chunk in chunks)
