"""Each chunk as it stood in prompts that were answered: Cache-Craft's chunk caches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from ragcache.encode.past_prompt import PastPrompt
from ragcache.encode.protocol import PromptEncoder
from ragcache.errors import InvalidArgument
from ragcache.model.lazy import Tensor, torch
from ragcache.model.plan import ForwardPlan, Positions, ScoreSink, Slots
from ragcache.prompt import Segment

if TYPE_CHECKING:
    from ragcache.model.buffer import ChunkKV, KVBuffer
    from ragcache.model.prefill_context import PrefillContext

INTER_ATTENTION = "inter_attention"
OVERHEAD = "overhead"


@dataclass(frozen=True)
class Harvested(PromptEncoder):
    """Chunk caches taken from prompts that were answered, several variants a chunk: Cache-Craft (2502.15734).

    Nothing is made at ingestion. A chunk without a variant is prefilled in the prompt (cold start). After the answer it
    is harvested: what a full prefill of that prompt makes of it is stored, with the context that it stood in
    (`PastPrompt`). So is a chunk of whose variants none suited the prompt. A question is served by the variant whose
    cache fix overhead is least there.

    The paper's engine takes KV and attention from its own prefill. Here the chunks are prefilled once more behind the
    answer, in full and with the softmax written out, since a prefill that reused KV has no attention of the tokens that
    it did not compute, and what it left of a variant's old context would be handed on from prompt to prompt. Only the
    chunks right behind the system prefix are harvested, up to the first that is none of the index's, or that may not
    be read by all who may read one behind it.

    Beside K and V it stores `inter_attention`, (tokens,) fp32: sum over the chunks in front of the attention of each
    token to them, mean over heads and layers; and `overhead`, (tokens,) fp32, CCI at each token, which becomes
    CCI (1 - beta') when the KV is loaded.

    Left out of the paper: the early stop of chunks that the question does not look at, and preloading by layer.

    Attributes
    ----------
    variants : int
        Most of them a chunk; the one that was worth least is evicted, counting each use by 1 - CCI (1 - beta')
        (frequency times reuse value; tuned here: no number is the paper's).
    overlap : float
        A chunk is harvested again where the beta' of its best variant is below (tuned here: not at all).

    Raises
    ------
    InvalidArgument
        If there is room for no variant.
    """

    variants: int = 4
    overlap: float = 0.5
    recipe: ClassVar[str] = "harvested"
    extras: ClassVar[tuple[str, ...]] = (INTER_ATTENTION, OVERHEAD)

    def __post_init__(self) -> None:
        if self.variants < 1:
            raise InvalidArgument(f"variants is {self.variants}; a chunk needs room for at least 1")

    def renews(self, about: dict[str, Any], ahead: Sequence[str]) -> bool:
        """Where beta' is below `overlap`."""
        return PastPrompt.from_dict(about).overlap(ahead) < self.overlap

    def harvest(self, p: PrefillContext, chunks: Sequence[int]) -> list[tuple[ChunkKV, dict[str, Any]]]:
        """Prefill chunks in full, with their attention, which `PastPrompt` describes."""
        from ragcache.model.buffer import ChunkKV

        edges = [p.span(chunks[0]).start, *(p.span(segment).stop for segment in chunks)]
        buffer, attention = _prefill(p, edges)
        found = []
        for number, (segment, (first, stop)) in enumerate(zip(chunks, pairwise(edges), strict=True)):
            own = attention[:, first - edges[0] : stop - edges[0]]  # (layers, tokens, chunks)
            past = _describe(own, [p.prompt.segments[one] for one in chunks[: number + 1]])
            inter = own[..., :number].sum(2).mean(0)  # (tokens,)
            extras = {INTER_ATTENTION: inter, OVERHEAD: torch.full_like(inter, past.cci)}
            ids = p.prompt.segments[segment].token_ids
            found.append((ChunkKV(buffer.read(first, stop), p.prompt.starts[segment], ids, extras), asdict(past)))
        return found


def fit(kv: ChunkKV, past: PastPrompt, ahead: Sequence[str]) -> ChunkKV:
    """A harvested KV as it is loaded behind the chunks `ahead`: its `overhead` is that of this place."""
    overhead = torch.full((len(kv),), past.overhead(ahead))  # (tokens,)
    return replace(kv, extras={**kv.extras, OVERHEAD: overhead})


def _prefill(p: PrefillContext, edges: Sequence[int]) -> tuple[KVBuffer, Tensor]:
    """A prompt's chunks, which lie between `edges`, in a buffer of their own, and their tokens' attention to them.

    Returns
    -------
    tuple of (KVBuffer, Tensor)
        The attention is (layers, tokens, chunks) fp32.
    """
    start, end, device = edges[0], edges[-1], p.reader.device
    sums = [_ChunkSums(edges) for _ in range(p.reader.layers)]
    sinks: dict[int, ScoreSink] = {layer: one.add for layer, one in enumerate(sums)}
    plan = ForwardPlan.on(device, Slots(torch.arange(start, end)), end, scores=sinks, stop_after_scores=True)
    buffer = p.buffer.beginning(start, end)
    p.reader.forward(p.token_ids[start:end].tolist(), Positions(p.positions[start:end]), buffer, plan)
    p.flop_counter.charge(torch.arange(start, end), range(p.reader.layers), selectable=0)
    return buffer, torch.stack([torch.cat(one.rows) for one in sums]).cpu()


class _ChunkSums:
    """Sums one layer's attention probabilities over chunks, which lie between `edges`, block of rows by block."""

    def __init__(self, edges: Sequence[int]) -> None:
        self._edges = edges
        self.rows: list[Tensor] = []  # (rows, chunks) each

    def add(self, probabilities: Tensor) -> None:
        """Take in (heads, rows, keys)."""
        mean = probabilities.mean(0)  # (rows, keys)
        self.rows.append(torch.stack([mean[:, first:stop].sum(1) for first, stop in pairwise(self._edges)], 1))


def _describe(attention: Tensor, segments: Sequence[Segment]) -> PastPrompt:
    """The context of the last of some segments, whose tokens' attention to all of them is (layers, tokens, chunks)."""
    *before, own = segments
    sums = attention.sum(1)  # (layers, chunks)
    return PastPrompt(
        before=tuple(segment.chunk or "" for segment in before),
        lengths=tuple(map(len, before)),
        tokens=len(own),
        inter=tuple(tuple(layer) for layer in sums[:, : len(before)].tolist()),
        intra=tuple(sums[:, len(before)].tolist()),
    )
