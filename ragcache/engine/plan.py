"""Plan: the prompt as the method arranges it, and what begins before any KV is there."""

from dataclasses import dataclass

from ragcache.engine.context_loader import ContextLoader
from ragcache.engine.request import Request
from ragcache.errors import InvalidArgument, PromptTooLong
from ragcache.index.index import Index
from ragcache.model.cost import FlopCounter
from ragcache.model.prefill_context import PrefillContext
from ragcache.prompt import Prompt
from ragcache.select import Selector


@dataclass(frozen=True, eq=False)
class Plan:
    """A request with its prompt.

    Attributes
    ----------
    request : Request
        What is asked.
    loader : ContextLoader
        Loads the prompt's KV; it has counted what arranging the prompt took.
    selector : Selector or None
        At work since the plan was made; None where there is nothing to choose from.
    """

    request: Request
    loader: ContextLoader
    selector: Selector | None

    @property
    def prompt(self) -> Prompt:
        """Segments in causal order."""
        return self.loader.prompt

    @property
    def room(self) -> int:
        """Slots of the prompt and the longest answer."""
        return len(self.prompt) + self.request.sampling.max_new_tokens


def plan_prompt(request: Request, index: Index) -> Plan:
    """Arrange a request's chunks as its method lays them out.

    Raises
    ------
    InvalidArgument
        If the layout looks at KV, and the method loads none.
    PromptTooLong
        If the prompt and the answer do not fit the model.
    """
    row, by_id = request.method, {chunk.id: chunk for chunk in request.chunks}
    flop_counter, computed = FlopCounter(index.reader.dims), dict[str, str]()

    def loader(prompt: Prompt) -> ContextLoader:
        placed = [by_id[prompt.segments[i].chunk or ""] for i in prompt.chunks()]
        return ContextLoader(index, prompt, placed, request.clock, flop_counter, row.needs, computed=computed)

    def look(prompt: Prompt) -> PrefillContext:
        if row.encode is None:
            raise InvalidArgument(f"method {row.name!r} loads no KV, so {row.layout!r} has nothing to look at")
        scratch = loader(prompt)
        if request.shared is None:
            return scratch.load(row.encode, len(prompt))
        return scratch.copy_shared(row.encode, len(prompt), request.shared, None)

    segments = [chunk.segment for chunk in request.chunks]
    prompt = row.layout.place(request.frame, index.prefix_segment, segments, request.question, look)
    _check_length(prompt, request, index)
    selector = None
    if row.encode is not None and row.select is not None and 0 < request.ratio < 1:  # or there is nothing to choose
        selector = row.select.begin(prompt)  # what needs no KV runs while it is loaded
    return Plan(request, loader(prompt), selector)


def _check_length(prompt: Prompt, request: Request, index: Index) -> None:
    reader, most = index.reader, request.sampling.max_new_tokens
    if len(prompt) + most > reader.limit:
        raise PromptTooLong(
            f"the prompt has {len(prompt):,} tokens and the answer may take {most:,}, but {reader.name} takes "
            f"{reader.limit:,}; ask with a smaller --top-k, or ingest with a smaller --chunk-tokens"
        )
