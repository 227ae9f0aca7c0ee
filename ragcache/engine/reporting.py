"""What an answer was made from, as its report says it."""

import torch
from torch import Tensor

from ragcache.engine.context_loader import ContextLoader
from ragcache.engine.plan import Plan
from ragcache.index.chunks import Chunk, Loaded
from ragcache.model.prefill_context import PrefillContext
from ragcache.report import CacheReport, ChunkReport, Tokens


def build_report(plan: Plan, recomputed: Tensor, p: PrefillContext | None = None) -> CacheReport:
    """What a prompt was prefilled from.

    Parameters
    ----------
    plan : Plan
        Of the prompt.
    recomputed : Tensor
        (slots,) bool.
    p : PrefillContext, optional
        What the method's choices were handed.
    """
    loader, request = plan.loader, plan.request
    chunks, layers, counter = _report_chunks(loader, recomputed), loader.reader.layers, loader.flop_counter
    context = sum(chunk.tokens for chunk in chunks)
    selectable = sum(
        chunk.tokens
        for segment, chunk in zip(plan.prompt.chunks(), chunks, strict=True)
        if chunk.cache == "hit" or segment in loader.made
    )
    if p is not None:
        request.clock.ms.auxiliary = p.auxiliary_ms
    full = counter.dims.forward(torch.arange(len(plan.prompt.text_ids)), range(layers), logits=True)
    return CacheReport(
        method=request.method.name,
        recompute=None if request.method.recompute is None else request.ratio,
        chunks=chunks,
        tokens=Tokens(
            context=context,
            question=len(plan.prompt) - context,
            reused=sum(chunk.tokens - chunk.recomputed for chunk in chunks if chunk.cache != "miss"),
            recomputed=int(recomputed.sum()),
            charged=round(counter.token_layers / layers),
        ),
        charged=counter.token_layers / (selectable * layers) if selectable else 0.0,
        charged_flops=counter.flops / full,
        ms=request.clock.ms,
        notes=(*request.notes, *(p.notes if p else ())),
    )


def _report_chunks(loader: ContextLoader, recomputed: Tensor) -> tuple[ChunkReport, ...]:
    """What happened to each chunk; `recomputed` is (slots,) bool."""
    return tuple(
        _report_chunk(loader, segment, chunk, int(recomputed[loader.prompt.span(segment)].sum()))
        for segment, chunk in zip(loader.prompt.chunks(), loader.chunks, strict=True)
    )


def _report_chunk(loader: ContextLoader, segment: int, chunk: Chunk, recomputed: int) -> ChunkReport:
    found = loader.found.get(segment, Loaded(None, "", "the method loads nothing"))
    is_made = segment in loader.made
    return ChunkReport(
        id=chunk.id,
        source=chunk.reported,
        tokens=len(loader.prompt.segments[segment]),
        cache="miss" if found.kv is None or is_made else "exact" if found.exact else "hit",
        reason=loader.computed[chunk.id] if is_made else found.reason,
        left=found.left,
        recomputed=recomputed,
        ms=loader.chunk_ms.get(segment, 0.0),
    )
