"""Harvest: behind an answer, the KV of its prompt's chunks is kept for other questions, where the method does that."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from ragcache.encode import Harvested, LeftContext
from ragcache.engine.plan import Plan
from ragcache.errors import StorageFull
from ragcache.index.variants import count_readable, surplus
from ragcache.model.prefill_context import PrefillContext
from ragcache.report import CacheReport


@dataclass(frozen=True)
class _Place:
    """A chunk in the prompt: its segment, the keys of what stands in front, its own key, and whether it is kept."""

    segment: int
    chunk: str
    left: tuple[str, ...]
    key: str
    kept: bool


def harvest_context(plan: Plan, context: PrefillContext, report: CacheReport) -> CacheReport:
    """Keep the KV of chunks that had none, or none that suited this prompt, as a full prefill of it makes it.

    Variants that served are credited with it, and those that are over the encoder's number go.

    Parameters
    ----------
    plan : Plan
        Of the prompt that was answered.
    context : PrefillContext
        Its buffer, which is left as it is.
    report : CacheReport
        Of the answer.

    Returns
    -------
    CacheReport
        With what it took, and why nothing was kept if the disk refused.
    """
    encoder = plan.request.method.encode
    if not isinstance(encoder, Harvested):
        return report
    _credit(plan)
    places = list(_places(plan, encoder))
    while places and not places[-1].kept:
        places.pop()
    if not places:
        return report
    try:
        _keep(plan, encoder, context, places)
    except StorageFull as error:
        report = replace(report, notes=(*report.notes, f"the KV of this prompt was not kept: {error}"))
    dims, slots = plan.loader.reader.dims, torch.arange(len(plan.prompt))
    span = slice(plan.prompt.slots[places[0].segment], plan.prompt.slots[places[-1].segment + 1])
    taken = dims.forward(slots[span], dims.layers, logits=False) / dims.forward(slots, dims.layers, logits=True)
    return replace(report, harvest_flops=taken)


def _places(plan: Plan, encoder: Harvested) -> Iterator[_Place]:
    """The chunks right behind the system prefix, up to the first whose KV may not be kept."""
    loader, prompt = plan.loader, plan.prompt
    prefix, ahead = loader.found.get(0), list[str]()
    if prompt.segments[0] and (prefix is None or not prefix.exact):
        return  # another beginning than the KV of this index is made behind
    left = (prefix.key,) if prefix else ()
    readable = count_readable(loader.index.catalog, [chunk.id for chunk in loader.chunks])
    for number, segment in enumerate(prompt.chunks()[:readable]):
        chunk, found = loader.chunks[number], loader.found[segment]
        if segment != number + 1 or len(prompt.segments[segment]) != len(chunk.segment):
            return  # other text stands in between, or a part of the chunk is missing
        key, kept = found.key, False
        if found.kv is None or (found.past and not found.exact and found.past.overlap(ahead) < encoder.overlap):
            key = loader.index.make_key(encoder, left, chunk.segment)
            kept = key not in [row.key for row in loader.index.catalog.encodings(chunk.id, encoder.recipe)]
        yield _Place(segment, chunk.id, left, key, kept)
        left, ahead = (*left, key), [*ahead, chunk.id]


def _keep(plan: Plan, encoder: Harvested, context: PrefillContext, places: list[_Place]) -> None:
    """Prefill the chunks in full, store what is to be kept of them, and evict what is over."""
    index = plan.loader.index
    made = encoder.harvest(context, [place.segment for place in places])
    with index.writing:  # nobody's access changes meanwhile; it may have before
        readable = count_readable(index.catalog, [place.chunk for place in places])
        for place, (kv, past) in list(zip(places, made, strict=True))[:readable]:
            if place.kept:
                words = f"system prefix + {len(past.before)} of an earlier prompt"
                index.save(place.chunk, encoder, kv, LeftContext((), place.left, words, past=past))
        for chunk in dict.fromkeys(place.chunk for place in places if place.kept):
            index.evict(surplus(index.catalog.encodings(chunk, encoder.recipe), encoder.variants))


def _credit(plan: Plan) -> None:
    """Note what the variants that served were worth here."""
    loader, worths = plan.loader, dict[tuple[str, str], float]()
    chunks = [chunk.id for chunk in loader.chunks]
    for number, segment in enumerate(plan.prompt.chunks()):
        found = loader.found[segment]
        if found.kv is not None and found.past is not None:
            worths[chunks[number], found.key] = 1 - found.past.overhead(chunks[:number])
    loader.index.catalog.credit(worths)
