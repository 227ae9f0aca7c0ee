"""Recomputed tokens keep what stood before their chunk in its document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragcache.errors import InvalidArgument
from ragcache.model.lazy import Tensor
from ragcache.model.plan import ForwardPlan, Positions, Slots
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.upload import upload
from ragcache.schedule.protocol import Schedule
from ragcache.schedule.ranking import best

if TYPE_CHECKING:
    from ragcache.model.buffer import KVBuffer


@dataclass(frozen=True)
class BehindDocument(Schedule):
    """The best-scored tokens, in all layers, each seeing the prompt and the left context of its own chunk (ours).

    A token that is recomputed over the prompt alone forgets its document: whose the section was, what a label stood
    for. Here the KV of what stood before a chunk in its document takes the positions in front of the chunk, beside the
    prompt's own text there, for the chunk's recomputed tokens only; the question and the answer never see it. Chunks
    are recomputed one after the other, so a token sees what was recomputed before it. A chunk with nothing before it in
    its document is recomputed as `Flat` does. Where everything is recomputed nothing is added: that is full prefill.

    The left context is read from the store for every chunk that has a chosen token, and there is a forward for each.
    """

    def rows(self, scores: Tensor, budget: float, p: PrefillContext) -> Slots:
        """The top share of the selectable slots; ties go to the earlier slot."""
        return best(scores, budget, p)

    def logits(self, scores: Tensor, rows: Slots, budget: float, p: PrefillContext) -> Tensor:
        """A forward for each run of fresh text and each chunk up to the last chosen token, and one for the rest.

        Raises
        ------
        InvalidArgument
            If attention is shaped, for that is said of the prompt's own keys.
        """
        if len(rows) in (0, int(p.selectable.sum())):
            return p.logits(p.with_fresh(rows))
        if p.score_mod is not None:
            raise InvalidArgument("BehindDocument takes plain attention; leave `attend` out, or take Flat()")
        todo, end = p.with_fresh(rows), int(rows[-1]) + 1
        scratch = p.buffer.beginning(0, len(p.prompt))
        for segment in range(len(p.prompt.segments)):
            span = p.span(segment)
            here = Slots(todo[(todo >= span.start) & (todo < min(span.stop, end))])
            if not len(here):
                continue
            if segment not in p.placed:
                p.forward(here, last=p.reader.last_kept)
                continue
            if (filled := scratch.length) < span.start:
                scratch.place(filled, p.buffer.read(filled, span.start))
            _recompute(p, segment, here, scratch)
        return p.logits(Slots(todo[todo >= end]))


def _recompute(p: PrefillContext, segment: int, rows: Slots, scratch: KVBuffer) -> None:
    """Recompute rows of a chunk behind its left context, in a copy of the prompt up to the chunk."""
    span, slot = p.span(segment), scratch.length
    left = p.left(segment)
    position, placements = p.prompt.starts[segment] - sum(map(len, left)), []
    for kv in left:
        placements.append((kv, slot, position))
        slot, position = slot + len(kv), position + len(kv)
    p.reader.place_all(scratch, placements)
    scratch.place(slot, p.buffer.read(span.start, span.stop))
    device, moved = p.reader.device, Slots(rows + (slot - span.start))
    plan = ForwardPlan.on(device, moved, slot + len(p.prompt.segments[segment]), last=p.reader.last_kept)
    p.reader.forward(p.token_ids[rows].tolist(), Positions(p.positions[upload(rows, device)]), scratch, plan)
    p.charge_elsewhere(rows, moved)
    p.stale[:, rows] = False
    p.buffer.place(span.start, scratch.read(slot, plan.end))
    scratch.truncate(span.start)
