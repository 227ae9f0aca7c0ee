"""How fast chunks are prefilled and stored, next to forwards that store nothing."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from ragcache.encode import Alone, Encoder, Fused
from ragcache.index.index import Index
from ragcache.model.reader import Reader
from ragcache.report import Progress, ignore_progress
from ragcache_bench.speed.shapes import random_texts


@dataclass(frozen=True)
class Ingested:
    """One way through the same chunks.

    Attributes
    ----------
    way : str
        "forward" is stock transformers, chunk by chunk, nothing kept; the others are recipes.
    chunks, tokens : int
        How many, and tokens of all of them.
    tokens_per_second, low, high : float
        Median, least and most over the repeats.
    ms_per_chunk : float
        Median.
    ratio, ratio_low, ratio_high : float
        Tokens per second over the forwards', pair by pair: median, least, most.
    """

    way: str
    chunks: int
    tokens: int
    tokens_per_second: float
    low: float
    high: float
    ms_per_chunk: float
    ratio: float
    ratio_low: float
    ratio_high: float


def measure(
    reader: Reader, *, chunks: int = 32, words: int = 256, repeats: int = 5, progress: Progress = ignore_progress
) -> list[Ingested]:
    """Forward chunks, ingest them alone, and ingest them fused with the ten that stand next; in turns, warmed up.

    Ingestion includes its files and its catalogue, not the embeddings: those cost what they cost without KV too.

    Parameters
    ----------
    reader : Reader
        From `random_reader` or `checkpoint_reader`.
    chunks, words : int
        How many, and of how many words each.
    repeats : int
        Turns of each.
    progress : callable
        Called with stage, done, total.
    """
    texts = random_texts(chunks, words)
    ways: dict[str, Callable[[], tuple[int, float]]] = {
        "forward": lambda: _forward(reader, texts),
        Alone().recipe: lambda: _ingested(reader, texts, Alone()),
        f"{Fused().recipe}, with its first pass": lambda: _ingested(reader, texts, Fused()),
    }
    taken: dict[str, list[float]] = {way: [] for way in ways}
    tokens = 0
    for turn in range(-1, repeats):
        for way, run in ways.items():
            tokens, seconds = run()
            if turn >= 0:
                taken[way].append(seconds)
        progress("measure", turn + 1, repeats)
    return [_row(way, chunks, tokens, mine, taken["forward"]) for way, mine in taken.items()]


def _forward(reader: Reader, texts: Sequence[str]) -> tuple[int, float]:
    began = perf_counter()
    ids = [reader.tokenizer.encode(text, add_special_tokens=False) for text in texts]
    for each in ids:
        logits, _ = reader.stock(each)
    logits.sum().item()  # an accelerator has to be done with it
    return sum(map(len, ids)), perf_counter() - began


def _ingested(reader: Reader, texts: Sequence[str], encoder: Encoder) -> tuple[int, float]:
    began = perf_counter()
    with tempfile.TemporaryDirectory(prefix="ragcache-bench-") as folder, Index(folder, reader) as index:
        index.put("random words", "", [(text, 0, len(text)) for text in texts], {})
        names = [chunk.id for chunk in index.catalog.all_chunks()]

        def next_ones(chunk: str, count: int) -> list[str]:
            at = names.index(chunk)
            return [*names, *names][at + 1 : at + 1 + min(count, len(names) - 1)]

        for _ in index.encode(encoder, neighbours=next_ones):
            pass
        return sum(len(chunk.token_ids) for chunk in index.catalog.all_chunks()), perf_counter() - began


def _row(way: str, chunks: int, tokens: int, taken: Sequence[float], plain: Sequence[float]) -> Ingested:
    rates = [tokens / seconds for seconds in taken]
    ratios = [one / mine for one, mine in zip(plain, taken, strict=True)]
    return Ingested(
        way, chunks, tokens, median(rates), min(rates), max(rates), 1e3 * median(taken) / chunks,
        median(ratios), min(ratios), max(ratios),
    )  # fmt: skip
