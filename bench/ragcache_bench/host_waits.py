"""How often the host waits for the device, row by row, counted on a pretend accelerator."""

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import ragcache
from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.method import AXES, Method
from ragcache.methods import METHODS
from ragcache_bench.device_parity import QUESTION, encode_rows, opened, share_of, suit, tiny_reader
from ragcache_bench.pretend_accelerator import Accelerator, pretend_accelerator


@dataclass(frozen=True)
class RowWaits:
    """What the host waited for in one row's answer.

    Attributes
    ----------
    method : str
        The row.
    recompute : float or None
        Its share of recomputed tokens.
    layers : int
        Of the model.
    prefill, token : int
        Waits up to the first token's logits, and in each further token's forward. Reading which token it is comes on
        top.
    lines : dict of str to int
        Those of the prefill, by kind and line.
    """

    method: str
    recompute: float | None
    layers: int
    prefill: int
    token: int
    lines: dict[str, int]


def count_waits(layers: int, rows: Sequence[Method] = tuple(METHODS.values())) -> list[RowWaits]:
    """Every row's waits, on a model of that many layers, with KV that is read from files.

    Rows that differ in nothing but the model that they take do the same, and are counted once.

    Parameters
    ----------
    layers : int
        Of the model.
    rows : sequence of Method
        Rows of the table.
    """
    counted: dict[tuple[str, ...], RowWaits] = {}
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        folder = Path(place)
        encode_rows(folder, tiny_reader(layers, "cpu"), rows)
        accelerator = stack.enter_context(pretend_accelerator(Path(ragcache.__file__).parent))
        engine, chunks = stack.enter_context(opened(folder, tiny_reader(layers, "cuda")))
        engine.prefill(QUESTION, chunks, method="naive")  # what is done once in a process is no part of a prompt
        for row in rows:
            if _axes(row) not in counted:
                counted[_axes(row)] = _count(engine, chunks, row, accelerator)
    return [replace(counted[_axes(row)], method=row.name) for row in rows]


def _axes(row: Method) -> tuple[str, ...]:
    return tuple(repr(getattr(row, axis)) for axis in AXES)


def _count(engine: Engine, chunks: Sequence[Chunk], row: Method, accelerator: Accelerator) -> RowWaits:
    suit(engine.reader, row)
    share = share_of(row)
    accelerator.restart()
    ready = engine.prefill(QUESTION, chunks, method=row, recompute=share)
    lines = {f"{wait.kind} at {wait.line}": count for wait, count in sorted(accelerator.waits.items())}
    accelerator.restart()
    ready.step(chunks[0].segment.token_ids[0])
    return RowWaits(row.name, share, engine.reader.layers, sum(lines.values()), accelerator.waits.total(), lines)
