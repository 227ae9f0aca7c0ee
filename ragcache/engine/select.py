"""Select: which of the reused tokens are computed again, ahead of the question or for it."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from ragcache.engine.context_loader import SharedRecompute
from ragcache.engine.plan import Plan
from ragcache.engine.request import Request
from ragcache.model.plan import Slots
from ragcache.model.prefill_context import PrefillContext


@dataclass(frozen=True, eq=False)
class Selection:
    """What is to be recomputed.

    Attributes
    ----------
    scores : Tensor
        (slots,) fp32, what the schedule ranks by.
    tokens : Slots
        Selected slots, ascending: those recomputed from the first layer on.
    ratio : float
        Share of the reused tokens that is left to recompute.
    """

    scores: Tensor
    tokens: Slots
    ratio: float


def select_tokens(plan: Plan, context: PrefillContext) -> Selection:
    """Choose what is recomputed for this question."""
    row, ratio = plan.request.method, 0.0 if _is_shared(plan.request) else plan.request.ratio
    with plan.request.clock.stage("select"):
        scores = _score(plan, ratio, context)
        tokens = row.schedule.rows(scores, ratio, context)
        context.score_mod = row.attend.score_mod(context, tokens) if row.attend else None
    return Selection(scores, tokens, ratio)


def _is_shared(request: Request) -> bool:
    return request.shared is not None and request.method.shares_recompute(request.ratio)


def shared_recompute(plan: Plan) -> SharedRecompute | None:
    """What is recomputed of a context that questions share, ahead of all of them; None where each chooses its own."""
    request = plan.request
    if not _is_shared(request):
        return None
    return SharedRecompute(repr((request.method, request.ratio)), partial(_recompute_context, plan))


def _recompute_context(plan: Plan, context: PrefillContext) -> None:
    """Recompute a context's share ahead of any question over it."""
    request = plan.request
    with request.clock.stage("select"):
        tokens = request.method.schedule.rows(_score(plan, request.ratio, context), request.ratio, context)
    if len(tokens):
        slots = context.with_fresh(tokens)
        slots = Slots(slots[slots < context.context_end])
        with request.clock.stage("prefill"):
            context.forward(slots, last=context.reader.last_kept)  # of which keys and values are wanted, no more
        context.recomputed[tokens] = True


def _score(plan: Plan, ratio: float, context: PrefillContext) -> Tensor:
    """What the schedule ranks by, (slots,)."""
    if ratio >= 1:  # nothing to choose from
        return torch.full((len(plan.prompt),), float("inf"))
    if plan.selector is None or ratio <= 0 or not bool(context.selectable.any()):
        return torch.full((len(plan.prompt),), float("-inf"))
    return plan.selector.scores(context)
