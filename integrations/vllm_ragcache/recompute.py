"""Some of a prompt's tokens computed within its load: those chosen for recompute, and fresh text between chunks.

A method's own selector and schedule do it, as in the engine: they are handed a `PrefillContext` over vLLM's model, and
the buffer that comes out is what the engine's would be up to the question. vLLM computes the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ragcache.methods import find_method
from ragcache.model.buffer import ChunkKV, KVBuffer
from ragcache.model.cost import FlopCounter, ModelDims
from ragcache.model.lazy import Tensor, torch
from ragcache.model.plan import Slots
from ragcache.model.prefill_context import PrefillContext
from ragcache.prompt import Prompt, Segment

if TYPE_CHECKING:
    from vllm_ragcache.served_index import Piece


@dataclass(frozen=True)
class Recompute:
    """What a worker is to compute of a prompt before vLLM goes on with it.

    Attributes
    ----------
    token_ids : tuple of int
        The prompt.
    question : tuple of (int, int)
        First slot of the question's words, and the one behind them.
    method : str
        Row of the table whose selector chooses.
    share : float
        Of the selectable tokens, how many are recomputed; at 0 only what is fresh is computed.
    """

    token_ids: tuple[int, ...]
    question: tuple[int, int]
    method: str
    share: float


@dataclass(frozen=True)
class Recomputed:
    """What was computed within a load.

    Attributes
    ----------
    recomputed : int
        Loaded tokens that were computed again.
    fresh : int
        Tokens in front of the last chunk that were in no chunk, and computed.
    charged : float
        Token-layers computed over those of all selectable tokens, each counted once, as an answer's report has it.
    """

    recomputed: int
    fresh: int
    charged: float


def compute_within_load(
    reader: Any, buffer: KVBuffer, pieces: Sequence[Piece], wanted: Recompute, *, at_once: int
) -> Recomputed:
    """Choose tokens, and compute them and all fresh ones in front of the last piece's end, in the buffer.

    Parameters
    ----------
    reader : Reader or ServedReader
        The model.
    buffer : KVBuffer
        Has the pieces' KV in place, of all heads.
    pieces : sequence of Piece
        From left to right.
    wanted : Recompute
        What is to be computed.
    at_once : int
        Most tokens of one forward behind the choice.
    """
    context = build_context(reader, buffer, pieces, wanted)
    rows = choose_rows(context, wanted)
    slots = context.with_fresh(rows)
    slots = Slots(slots[slots < pieces[-1].end])
    # Later tokens see what earlier ones wrote, and never the other way round: parts of them give what all would.
    for start in range(0, len(slots), at_once):
        context.forward(Slots(slots[start : start + at_once]), last=context.reader.layers - 1)
    selectable = int(context.selectable.sum()) * context.reader.layers
    return Recomputed(
        recomputed=len(rows),
        fresh=len(slots) - len(rows),
        charged=context.flop_counter.token_layers / selectable if selectable else 0.0,
    )


def choose_rows(context: PrefillContext, wanted: Recompute) -> Slots:
    """The slots that a method recomputes, ascending."""
    row = find_method(wanted.method)
    if wanted.share <= 0 or not bool(context.selectable.any()):
        return Slots(torch.empty(0, dtype=torch.int64))
    scores: Tensor
    if wanted.share >= 1 or row.select is None:  # nothing to choose from
        scores = torch.full((len(context.prompt),), float("inf" if wanted.share >= 1 else "-inf"))
    else:
        scores = row.select.scores(context)
    return row.schedule.rows(scores, wanted.share, context)


def build_context(reader: Any, buffer: KVBuffer, pieces: Sequence[Piece], wanted: Recompute) -> PrefillContext:
    """What the engine hands a method's choices, of a prompt that vLLM was sent."""
    begin, stop = wanted.question
    starts = {piece.slot: piece for piece in pieces}
    edges = {0, *starts, *(piece.end for piece in pieces), begin, stop, len(wanted.token_ids)}
    segments, placed, exact, asks = list[Segment](), dict[int, ChunkKV](), set[int](), 0
    for number, (first, end) in enumerate(pairwise(sorted(edges))):
        ids, piece = wanted.token_ids[first:end], starts.get(first)
        segments.append(Segment(ids, chunk=piece.chunk if piece else None))
        if piece is not None:
            placed[number] = ChunkKV((), first, ids, {})
            exact |= {number} if piece.exact else set()
        asks = number if first == begin else asks
    none = ModelDims(reader.layers, 0, 0, 0)  # tokens are counted here, and FLOPs are not
    return PrefillContext(reader, Prompt(tuple(segments), asks), buffer, placed, frozenset(exact), FlopCounter(none))
