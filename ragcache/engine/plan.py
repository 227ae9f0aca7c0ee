"""Plan: the prompt as the method arranges it, and what begins before any KV is there."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ragcache.encode import Encoder
from ragcache.engine.context_loader import ContextLoader, MadeKV
from ragcache.engine.request import Request
from ragcache.errors import InvalidArgument, PromptTooLong
from ragcache.index.index import Index
from ragcache.index.prefix_tree import find_longest_path
from ragcache.model.cost import FlopCounter
from ragcache.model.decode import Sampling
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt, Segment
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

    def close(self) -> None:
        """Break off what was begun ahead, if it is still at work."""
        if self.selector is not None:
            self.selector.close()


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
    flop_counter, computed = request.flop_counter or FlopCounter(index.reader.dims), dict[str, str]()
    made_kv = MadeKV(Counter(chunk.id for chunk in request.chunks))

    def loader(prompt: Prompt) -> ContextLoader:
        placed = [by_id[prompt.segments[i].chunk or ""] for i in prompt.chunks()]
        return ContextLoader(
            index, prompt, placed, request.clock, flop_counter, row.needs, computed=computed, made_kv=made_kv
        )

    segments = [chunk.segment for chunk in request.chunks]
    look = _Look(request, index, loader)
    # A layout may compute over what it looks at, and no order makes a prompt shorter.
    _check_length(request.frame.prompt(segments, request.question, prefix=index.prefix_segment), request, index)
    prompt = row.layout.place(request.frame, index.prefix_segment, segments, request.question, look)
    _check_length(prompt, request, index)  # once more, with link tokens
    selector = None
    if row.encode is not None and row.select is not None and 0 < request.ratio < 1:  # or there is nothing to choose
        selector = row.select.begin(prompt)  # what needs no KV runs while it is loaded
    return Plan(request, loader(prompt), selector)


@dataclass(frozen=True)
class _Look:
    """`ragcache.layout.Look` for one request."""

    request: Request
    index: Index
    loader: Callable[[Prompt], ContextLoader]

    def __call__(self, prompt: Prompt) -> PrefillContext:
        encoder, scratch = self._encoder(), self.loader(prompt)
        scratch.made_kv.awaited.update(chunk.id for chunk in scratch.chunks)  # beside the places in the prompt itself
        if self.request.shared is None:
            return scratch.load(encoder, len(prompt))
        return scratch.copy_shared(encoder, len(prompt), self.request.shared, None)

    def find_path(self, chunks: Sequence[Segment]) -> list[str]:
        recipe, catalog = self._encoder().recipe, self.index.catalog
        start = (self.index.prefix_key,) if self.index.prefix_segment else ()
        with self.request.clock.stage("match", waits=False):
            ids = [segment.chunk or "" for segment in chunks]
            return find_longest_path(ids, start, lambda chunk: catalog.encodings(chunk, recipe))

    def link_tokens(self, place: int) -> Segment:
        links = self.index.reader.links
        return Segment(links.ids(place) if links else (), link=True)

    def _encoder(self) -> Encoder:
        row = self.request.method
        if row.encode is None:
            raise InvalidArgument(f"method {row.name!r} loads no KV, so {row.layout!r} has nothing to look at")
        return row.encode


def fits(prompt: Prompt, sampling: Sampling, reader: Reader) -> bool:
    """Whether a model takes a prompt and its longest answer."""
    return len(prompt) + sampling.max_new_tokens <= reader.limit


def _check_length(prompt: Prompt, request: Request, index: Index) -> None:
    reader, most = index.reader, request.sampling.max_new_tokens
    if not fits(prompt, request.sampling, reader):
        left, chunks = reader.limit - len(prompt), any(one.chunk for one in prompt.segments)
        answer = [f"let the answer take {left:,} at most (--max-new-tokens, or a request's max_tokens)"] * (left > 0)
        shorter = (
            "ask with a smaller --top-k, or ingest with a smaller --chunk-tokens" if chunks else "ask in fewer words"
        )
        raise PromptTooLong(
            f"the prompt has {len(prompt):,} tokens and the answer may take {most:,}, but {reader.name} takes "
            f"{reader.limit:,}; {', or '.join((*answer, shorter))}"
        )
