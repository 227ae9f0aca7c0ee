"""Harvest: behind an answer, the KV of its prompt's chunks is kept for other questions, where the method does that."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from ragcache.encode import Harvested, LeftContext, PastPrompt, PrefixTree, PromptEncoder
from ragcache.engine.plan import Plan
from ragcache.errors import OutOfMemory, StorageFull, UnusableIndex
from ragcache.index.index import Index
from ragcache.index.prefix_tree import trim_tree, visit_nodes
from ragcache.index.variants import surplus
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
    """Keep the KV of chunks that had none, or none that suited this prompt, and evict what is over.

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
        With what it took, and why nothing was kept if the disk or the memory refused.
    """
    encoder, counter = plan.request.method.encode, context.flop_counter
    if not isinstance(encoder, PromptEncoder):
        return report
    shaped = encoder.exact_only and context.score_mod is not None  # others prefill their chunks once more
    if plan.prompt.positions is not None or shaped:
        return report  # what stands there is not what a full prefill makes of it
    if not plan.loader.index.writable:
        return replace(report, notes=(*report.notes, "the KV of this prompt was not kept: this account may only read"))
    places, before = list(_places(plan, encoder)), counter.flops
    while places and not places[-1].kept:
        places.pop()
    try:
        if places:
            _keep(plan.loader.index, encoder, context, places)
        _account(plan, encoder, places)
    except (StorageFull, UnusableIndex, OutOfMemory, torch.OutOfMemoryError) as error:  # the answer stands
        report = replace(report, notes=(*report.notes, f"the KV of this prompt was not kept: {error}"))
    full = counter.dims.forward(torch.arange(len(plan.prompt)), range(counter.dims.layers), logits=True)
    return replace(report, harvest_flops=(counter.flops - before) / full)


def _places(plan: Plan, encoder: PromptEncoder) -> Iterator[_Place]:
    """The chunks right behind the system prefix, up to the first whose KV may not be kept."""
    loader, prompt = plan.loader, plan.prompt
    prefix, ahead = loader.found.get(0), list[str]()
    if prompt.segments[0] and (prefix is None or not prefix.exact):
        return  # another beginning than the KV of this index is made behind
    left = (prefix.key,) if prefix else ()
    readable = loader.index.count_readable([chunk.id for chunk in loader.chunks])
    for number, segment in enumerate(prompt.chunks()[:readable]):
        chunk, found = loader.chunks[number], loader.found[segment]
        if segment != number + 1 or len(prompt.segments[segment]) != len(chunk.segment):
            return  # other text stands in between, or a part of the chunk is missing
        key, kept = found.key, False
        if found.kv is None or (not found.exact and encoder.renews(found.about or {}, ahead)):
            key = loader.index.make_key(encoder, left, chunk.segment)
            kept = key not in [row.key for row in loader.index.catalog.encodings(chunk.id, encoder.recipe)]
        yield _Place(segment, chunk.id, left, key, kept)
        left, ahead = (*left, key), [*ahead, chunk.id]


def _keep(index: Index, encoder: PromptEncoder, context: PrefillContext, places: Sequence[_Place]) -> None:
    """Store what is to be kept of a prompt."""
    made = encoder.harvest(context, [place.segment for place in places])
    chunks = [place.chunk for place in places]
    with index.writing, index.bound.pin(chunks):  # no thread changes access meanwhile, and no chunk drives out another
        readable, saved = index.count_readable(chunks), dict[int, str]()
        for number, (place, (kv, about)) in enumerate(list(zip(places, made, strict=True))[:readable]):
            if place.kept:
                words = f"system prefix + {number} of an earlier prompt"
                index.save(place.chunk, encoder, kv, LeftContext((), place.left, words, about=about))
                if not index.catalog.by_key([place.key]):
                    break  # there was no room, and what stands behind it would find no way
                saved[number] = place.key
        readable = index.count_readable(chunks)  # another process may have changed access all the same
        if hidden := [key for number, key in saved.items() if number >= readable]:
            index.forget(hidden)


def _account(plan: Plan, encoder: PromptEncoder, places: Sequence[_Place]) -> None:
    """Note which KV was of use, and let go of what is over the encoder's limits."""
    index, loader = plan.loader.index, plan.loader
    used = [found.key for found in loader.found.values() if found.kv is not None]
    if isinstance(encoder, PrefixTree):
        visit_nodes(index, [*used, *(place.key for place in places)])
        trim_tree(index, encoder)
    elif isinstance(encoder, Harvested):
        index.catalog.credit(_worths(plan))
        for chunk in dict.fromkeys(place.chunk for place in places if place.kept):
            index.evict(surplus(index.catalog.encodings(chunk, encoder.recipe), encoder.variants))


def _worths(plan: Plan) -> dict[tuple[str, str], float]:
    """What the variants that served were worth here."""
    loader, worths = plan.loader, dict[tuple[str, str], float]()
    chunks = [chunk.id for chunk in loader.chunks]
    for number, segment in enumerate(plan.prompt.chunks()):
        found = loader.found[segment]
        if found.kv is not None and found.about is not None:
            worths[chunks[number], found.key] = 1 - PastPrompt.from_dict(found.about).overhead(chunks[:number])
    return worths
