"""Load and select: a planned prompt's KV in a buffer, and which tokens of it are computed again."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from ragcache.engine.load import SharedRecompute
from ragcache.engine.plan import Plan
from ragcache.engine.request import Request
from ragcache.errors import InvalidArgument
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


def load_context(plan: Plan) -> PrefillContext:
    """Load the prompt's KV into a buffer with room for the answer.

    A context that questions share is loaded once, and recomputed once where nothing about that depends on a question.

    Raises
    ------
    InvalidArgument
        If the method loads no KV.
    """
    request, loader = plan.request, plan.loader
    if request.method.encode is None:
        raise InvalidArgument(f"method {request.method.name!r} loads no KV; it answers by full prefill")
    if request.shared is None:
        return loader.load(request.method.encode, plan.room)
    return loader.copy_shared(request.method.encode, plan.room, request.shared, _shared_recompute(plan))


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


def _shared_recompute(plan: Plan) -> SharedRecompute | None:
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
            context.forward(slots, last=context.reader.layers - 1)  # of which keys and values are wanted, no more
        context.recomputed[tokens] = True


def _score(plan: Plan, ratio: float, context: PrefillContext) -> Tensor:
    """What the schedule ranks by, (slots,)."""
    if ratio >= 1:  # nothing to choose from
        return torch.full((len(plan.prompt),), float("inf"))
    if plan.selector is None or ratio <= 0 or not bool(context.selectable.any()):
        return torch.full((len(plan.prompt),), float("-inf"))
    return plan.selector.scores(context)
