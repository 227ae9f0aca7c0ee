"""Load: the KV of a planned prompt, in a buffer with room for the answer."""

from ragcache.engine.plan import Plan
from ragcache.engine.select import shared_recompute
from ragcache.errors import InvalidArgument
from ragcache.model.prefill_context import PrefillContext


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
    return loader.copy_shared(request.method.encode, plan.room, request.shared, shared_recompute(plan))
