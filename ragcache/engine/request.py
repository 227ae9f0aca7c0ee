"""Request: one answer to be made, with all that can be decided about it before the model is run."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from ragcache.checks import check_kind, check_question
from ragcache.engine.break_even import BreakEven
from ragcache.engine.chat import Message, build_chat, check_history
from ragcache.engine.clock import Clock
from ragcache.engine.context_loader import SharedContexts
from ragcache.engine.parsed_prompt import ParsedPrompt
from ragcache.engine.prompt_parser import PromptParser
from ragcache.index.chunks import Chunk
from ragcache.index.copies import note_copies, resolve_copies
from ragcache.index.index import Index
from ragcache.index.settings import check_encoding
from ragcache.method import Method
from ragcache.methods import DEFAULT_METHOD, find_method
from ragcache.model.cost import FlopCounter
from ragcache.model.decode import Sampling
from ragcache.prompt import Prompt, Template

#: A row of the method table by its name, or a row.
AnyMethod = str | Method


@dataclass(frozen=True, eq=False)
class Request:
    """One answer to be made.

    Attributes
    ----------
    question : str
        The user's words.
    chunks : tuple of Chunk
        In the order given.
    frame : Template or ParsedPrompt
        Arranges them as a prompt: the built-in template, or a prompt that somebody else wrote.
    method : Method
        The row of the method table that answers.
    ratio : float
        Share of the reused tokens to recompute.
    sampling : Sampling
        How tokens are chosen, and how many at the most.
    clock : Clock
        Runs since the request began.
    drafts : sequence of sequence of int
        Token ids of answers that may well come.
    notes : tuple of str
        What is worth saying in the answer's report.
    shared : SharedContexts or None
        Contexts that several questions are asked over at once.
    flop_counter : FlopCounter or None
        Adds up what is computed before the first token; one of the plan's own by default.
    instead_of : Method or None
        The row in whose place full prefill answers, being sooner.
    """

    question: str
    chunks: tuple[Chunk, ...]
    frame: Template | ParsedPrompt
    method: Method
    ratio: float
    sampling: Sampling
    clock: Clock
    drafts: Sequence[Sequence[int]] = ()
    notes: tuple[str, ...] = ()
    shared: SharedContexts | None = None
    flop_counter: FlopCounter | None = None
    instead_of: Method | None = None

    def repeated(self) -> Self:
        """The same once more, on a clock of its own, its chunks found already."""
        return replace(self, clock=self.clock.restarted(), flop_counter=None)

    def repeated_in_full(self, prompt: Prompt) -> Self:
        """Full prefill of the very prompt that was answered: its chunks stand as the method has put them."""
        by_id = {chunk.id: chunk for chunk in self.chunks}
        stood = tuple(by_id[prompt.segments[place].chunk or ""] for place in prompt.chunks())
        again = replace(self.repeated(), chunks=stood if len(stood) == len(self.chunks) else self.chunks)
        return again.by_full_prefill()

    def by_full_prefill(self, *notes: str) -> Self:
        """The same, answered by full prefill; notes say why."""
        return replace(self, method=find_method("full"), ratio=0.0, notes=(*self.notes, *notes))


@dataclass(frozen=True)
class RequestOptions:
    """How a request is to be answered, as far as the caller says.

    Attributes
    ----------
    method : str or Method, optional
        A row of the table, or one's own; the engine's by default.
    recompute : float, optional
        Share of the reused tokens to recompute, in [0, 1]; the row's default otherwise.
    sampling : Sampling, optional
        Greedy by default.
    drafts : sequence of sequence of int
        Token ids of answers that may well come.
    clock : Clock, optional
        Begun already, say in front of retrieval.
    shared : SharedContexts, optional
        Contexts are taken from there, and left there for the next question over them.
    at_once : bool
        Whether it is one of several that are answered at once: they gain more by what they share than by full prefill
        of a few, so break-even is not looked at.
    check : bool
        Whether a method whose encoding the index lacks altogether is refused; else its KV is made, for this once.
    flop_counter : FlopCounter, optional
        As in `Request`.
    """

    method: AnyMethod | None = None
    recompute: float | None = None
    sampling: Sampling | None = None
    drafts: Sequence[Sequence[int]] = ()
    clock: Clock | None = None
    shared: SharedContexts | None = None
    at_once: bool = False
    check: bool = True
    flop_counter: FlopCounter | None = None

    def __post_init__(self) -> None:
        check_kind("sampling", self.sampling, Sampling | None, "Sampling(max_new_tokens=100), for instance")


class RequestBuilder:
    """Makes requests over the chunks of an index.

    Parameters
    ----------
    index : Index
        Whose chunks are found in prompts, and whose KV is loaded.
    method : str or Method, optional
        The row that answers where none is named; the table's default otherwise.
    """

    def __init__(self, index: Index, method: AnyMethod | None = None) -> None:
        self._index = index
        self.method = find_method(method or DEFAULT_METHOD)
        self.parser = PromptParser(index)

    def from_question(
        self,
        question: str,
        chunks: Sequence[Chunk | str],
        options: RequestOptions | None = None,
        history: Sequence[Message] = (),
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> Request:
        """A question over chunks, in the built-in template.

        Behind earlier turns, or with tools, it goes through the chat template.

        Raises
        ------
        InvalidArgument, MissingEncoding
            As `Engine.answer`.
        """
        check_question(question)
        check_history(history)
        options = options or RequestOptions()
        options = replace(options, clock=options.clock or Clock(self._index.reader.device))
        known = self.resolve_chunks(chunks)
        if not history and not tools:
            return self._build(question, known, self._index.template, options)
        chat = build_chat(question, known, history, self._index.template.system)
        return self.from_prompt(chat, options, question=question, tools=tools)

    def from_prompt(
        self,
        prompt: str | Sequence[Message],
        options: RequestOptions | None = None,
        *,
        question: str = "",
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> Request:
        """A prompt that somebody else wrote, with the index's chunks found in it.

        It answers the question named, or else whatever its last words are. To a conversation the chat template adds the
        tools that the model may call.

        Raises
        ------
        InvalidArgument, MissingEncoding, UnsupportedModel
            As `Engine.complete`.
        """
        options = options or RequestOptions()
        if options.check:
            self.check_encoding(options.method or self.method)
        clock = options.clock or Clock(self._index.reader.device)
        with clock.stage("match", waits=False):
            parsed = self.parser.parse(prompt, tools)
        return self._build(
            question or parsed.question, parsed.chunks, parsed, replace(options, clock=clock, check=False)
        )

    def from_pairs(
        self, pairs: Sequence[tuple[str, Sequence[Chunk | str]]], options: RequestOptions | None = None
    ) -> list[Callable[[], Request]]:
        """What builds the request of each question and its chunks, when its turn comes.

        Questions over the same chunks in the same order share a context.
        """
        options = replace(options or RequestOptions(), at_once=True, clock=None)
        shared: SharedContexts = {}
        known = [(question, self.resolve_chunks(chunks)) for question, chunks in pairs]
        often = Counter(tuple(chunk.id for chunk in chunks) for _, chunks in known)

        def build(question: str, chunks: Sequence[Chunk]) -> Request:
            common = often[tuple(chunk.id for chunk in chunks)] > 1
            return self.from_question(question, chunks, replace(options, shared=shared) if common else options)

        return [partial(build, *pair) for pair in known]

    def resolve_chunks(self, chunks: Sequence[Chunk | str]) -> list[Chunk]:
        """Chunks as they are, of their documents; plain text as chunks that were never ingested."""
        known = [self._index.uncached_chunk(chunk) if isinstance(chunk, str) else chunk for chunk in chunks]
        return resolve_copies(self._index, known)

    def check_encoding(self, method: AnyMethod) -> None:
        """Refuse a method whose encoding the index lacks altogether, as `Engine.check_encoding`."""
        check_encoding(self._index.catalog, self._index.path, find_method(method))

    def _build(
        self, question: str, chunks: Sequence[Chunk], frame: Template | ParsedPrompt, options: RequestOptions
    ) -> Request:
        asked = find_method(options.method or self.method)
        row, notes = self._choose(asked, options, chunks, frame)
        row.check_tuning(self._index.reader.tuning, self._index.reader.label)
        ratio, whole = self._share(row, options)
        if options.check and any(chunk.source for chunk in chunks):  # of others there is no KV anyway
            self.check_encoding(row)
        said = (
            *notes,
            *whole,
            *filter(None, [self._index.reader.refused]),
            *self.parser.notes(frame, chunks),
            *note_copies(chunks),
        )
        clock, sampling = options.clock or Clock(self._index.reader.device), options.sampling or Sampling()
        return Request(
            question, tuple(chunks), frame, row, ratio, sampling, clock, options.drafts, said, options.shared,
            options.flop_counter, None if row is asked else asked,
        )  # fmt: skip

    def _share(self, row: Method, options: RequestOptions) -> tuple[float, tuple[str, ...]]:
        """The share to recompute; none of the default's, with a note, where the model's layers carry a state."""
        reader, share = self._index.reader, row.budget(options.recompute)
        if not reader.states or row.encode is None:
            return share, ()
        notes = []
        if 0 < share < 1 and options.recompute is None and row.name == DEFAULT_METHOD:
            notes.append(
                f"nothing was recomputed: {len(reader.states)} of the model's {reader.layers} layers carry a state, "
                "which passes through a chunk as a whole"
            )
            share = 0.0
        row.check_states(share, reader.label)
        return share, tuple(notes)

    def _choose(
        self, row: Method, options: RequestOptions, chunks: Sequence[Chunk], frame: Template | ParsedPrompt
    ) -> tuple[Method, tuple[str, ...]]:
        """The method that answers: where none is named, full prefill, with a note, if it is sooner."""
        named = options.method is not None or options.recompute is not None
        if options.at_once or named or not chunks:
            return row, ()
        known, context = BreakEven.of(self._index, self.method), sum(len(chunk.segment) for chunk in chunks)
        if known is not None and context <= known.tokens:
            return find_method("full"), (known.note(context),)
        fresh = frame.fresh_tokens if isinstance(frame, ParsedPrompt) else 0
        if self._gains_by_full(row, chunks) and fresh > (1 - row.budget(None)) * context:
            return find_method("full"), (_note_fresh(fresh, context),)
        return row, ()

    def _gains_by_full(self, row: Method, chunks: Sequence[Chunk]) -> bool:
        """Whether full prefill is as good at the least, and one pass over fresh text where the row takes two.

        The default reads fresh text to choose what it recomputes, and again to answer. What chunks know of a document
        whose other chunks were not retrieved, full prefill does not.
        """
        return row.name == DEFAULT_METHOD and not self._index.reader.states and not any(one.source for one in chunks)


def _note_fresh(fresh: int, context: int) -> str:
    return (
        f"prefilled in full: {fresh:,} tokens of the prompt are in no known chunk, and reuse would compute them twice "
        f"to save the {context:,} that are; name a method to have it all the same"
    )
