"""The best-scored share of a prompt's selectable slots."""

from ragcache.errors import UnsupportedModel
from ragcache.model.lazy import Tensor, torch
from ragcache.model.plan import Slots
from ragcache.model.prefill_context import PrefillContext


def best(scores: Tensor, budget: float, p: PrefillContext) -> Slots:
    """The top share of the selectable slots, ascending; ties go to the earlier slot.

    Parameters
    ----------
    scores : Tensor
        (slots,): +inf always, -inf never.
    budget : float
        Share of the selectable slots.
    p : PrefillContext
        Says which slots those are.
    """
    candidates = p.selectable.nonzero().squeeze(1)  # (selectable,)
    return Slots(candidates[top(scores[candidates], budget * candidates.numel())])


def top(values: Tensor, count: float) -> Tensor:
    """Indices, ascending, of the `count` greatest values, of all that are +inf, and of none that is -inf.

    Raises
    ------
    UnsupportedModel
        If one is no number: the model's number format does not hold what its layers compute.
    """
    found = [values == float("inf"), values > float("-inf"), values.isnan()]
    always, allowed, nans = torch.stack(found).sum(1).tolist()  # one wait for a GPU
    if nans:
        raise UnsupportedModel(
            "scores of tokens to recompute are no numbers; load the model in another number format, by --dtype "
            "float32, or give --recompute 0"
        )
    # A budget of 0.05 of 30 tokens is 2 tokens: rounding down would silently give short prompts nothing.
    order = values.argsort(descending=True, stable=True)[: min(max(round(count), always), allowed)]
    return order.sort().values
