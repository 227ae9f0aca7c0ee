"""Where reuse begins to pay: an index's own method timed against full prefill, over ever more of its own chunks."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate, chain, islice, zip_longest
from random import Random
from statistics import median

from ragcache.encode import PromptEncoder
from ragcache.engine.break_even import BreakEven
from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.method import Method
from ragcache.report import Progress, ignore_progress

_QUESTION = "Which of these notes says when, by whom and why it was decided?"
_MOST, _MOST_TOKENS = 16, 8192  # chunks, and tokens of them: full prefill reads them too, several times
_ROOM = 256  # tokens of a prompt beside its chunks
_LONGER = 1.25  # times what was measured; with less than that as many chunks may just have been drawn anew


def calibrate(engine: Engine, progress: Progress = ignore_progress, *, repeats: int = 3) -> BreakEven | None:
    """Time the engine's method and full prefill on 1, 2, 4, 8 and 16 chunks, and have the index remember the outcome.

    The chunks are drawn from different documents, as a search finds them. From then on the engine prefills contexts up
    to the break-even where no method and no share is named, and its reports say so. KV is read from its files each
    time. It ends as soon as reuse has won twice in a row.

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
        None where there is nothing to measure: no chunks that fit, or a method that is full prefill, at first or ever.

    Raises
    ------
    MissingEncoding
        If the index lacks what the method loads.
    """
    row, chunks = engine.method, _draw(engine)
    sizes = list(accumulate(len(chunk.segment) for chunk in chunks))
    if row.encode is None or isinstance(row.encode, PromptEncoder) or not chunks:
        return None
    engine.check_encoding(row)
    counts = sorted({min(1 << power, len(chunks)) for power in range(_MOST.bit_length())})
    won, lost, done = 0, 0, 0
    while done < len(counts) and won < 2:
        progress("calibrate", done, len(counts))
        slower = _ratio(engine, chunks[: counts[done]], repeats) > 1
        won, lost = (0, sizes[counts[done] - 1]) if slower else (won + 1, lost)
        done += 1
    progress("calibrate", len(counts), len(counts))
    found = BreakEven(lost, sizes[counts[done - 1] - 1])
    found.keep(engine.index, row)
    return found


def offers_longer(engine: Engine, known: BreakEven) -> bool:
    """Whether an index has a longer context to time than what was measured."""
    return sum(len(chunk.segment) for chunk in _draw(engine)) > _LONGER * known.measured


def _draw(engine: Engine) -> list[Chunk]:
    """As many of an index's chunks as are timed and fit the model, of as many documents as possible.

    A document's first chunk comes last: behind the prefix, with the next ones behind it, its KV is exact. Nothing would
    be recomputed, as hardly ever over what a search has found.
    """
    documents: dict[str, list[str]] = defaultdict(list)
    for chunk, document in engine.index.catalog.places():
        documents[document].append(chunk)
    random = Random(0)
    orders = [[*random.sample(later, len(later)), first] for first, *later in documents.values()]
    random.shuffle(orders)
    drawn = islice(filter(None, chain.from_iterable(zip_longest(*orders))), _MOST)
    chunks = engine.index.chunks(list(drawn))
    most = min(_MOST_TOKENS, engine.reader.limit - _ROOM)
    return chunks[: sum(size <= most for size in accumulate(len(chunk.segment) for chunk in chunks))]


def _ratio(engine: Engine, chunks: Sequence[Chunk], repeats: int) -> float:
    """Time to the first token of the engine's method over full prefill's, taking turns at being first."""
    both: dict[str, str | Method] = {"full": "full", "own": engine.method}
    ratios = []
    for turn in range(repeats + 1):
        taken = {}
        for name in sorted(both, reverse=bool(turn % 2)):
            engine.index.release()  # a question usually finds its chunks in files
            taken[name] = engine.prefill(_QUESTION, chunks, method=both[name]).report.ms.first_token
        ratios.append(taken["own"] / taken["full"])
    return median(ratios[1:])
