"""Engine: answers a question over chunks with a method; the only place where the axes meet."""

import time
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from ragcache import methods
from ragcache.engine.answer import Answer, compare_answers
from ragcache.engine.break_even import BreakEven
from ragcache.engine.load import ContextLoader, SharedContext, SharedRecompute
from ragcache.engine.parsed_prompt import Message, ParsedPrompt, build_chat
from ragcache.engine.prompt_parser import PromptParser
from ragcache.engine.stream import DecodeSession, Prefilled, Stream
from ragcache.errors import InvalidArgument, PromptTooLong
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.index.settings import check_encoding
from ragcache.method import Method
from ragcache.methods import DEFAULT_METHOD
from ragcache.model.cost import FlopCounter, ModelDims
from ragcache.model.decode import Sampling, Step
from ragcache.model.plan import Slots
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.reader import Reader
from ragcache.prompt import Frame, Prompt
from ragcache.report import Timings
from ragcache.select import Selector

_BLANK = "the question is blank; ask something"


class Engine:
    """Answers from cached chunks.

    Parameters
    ----------
    reader : Reader
        The model.
    index : Index
        Where the chunks' KV is.
    method : str or Method
        The row that answers where none is named.
    """

    def __init__(self, reader: Reader, index: Index, method: str | Method = DEFAULT_METHOD) -> None:
        self.reader = reader
        self.index = index
        self.method = methods.find_method(method)
        self._dims = ModelDims.of(reader)
        self._parser = PromptParser(index)

    def answer(
        self,
        question: str,
        chunks: Sequence[Chunk | str],
        *,
        method: str | Method | None = None,
        recompute: float | None = None,
        sampling: Sampling | None = None,
        history: Sequence[Message] = (),
        compare: bool = False,
    ) -> Answer:
        """Answer a question over chunks, in the order given.

        Parameters
        ----------
        question : str
            The user's words.
        chunks : sequence of Chunk or str
            From the index, or plain text that was never ingested.
        method : str or Method, optional
            A row of the table, or one's own; the engine's by default.
        recompute : float, optional
            Share of the reused tokens to recompute, in [0, 1]; the row's default otherwise.
        sampling : Sampling, optional
            Greedy by default.
        history : sequence of Message
            Earlier turns of the conversation, the system's own words among them if it has any; they are fresh text.
        compare : bool
            Measure the stock full prefill of the same ids too, after a warm-up of each.

        Raises
        ------
        InvalidArgument
            If the question is blank, or the method or share is not one.
        PromptTooLong
            If the prompt and the answer do not fit the model.
        MissingEncoding
            If the index holds KV, but none that the method loads.
        """
        ask = partial(self.stream, question, chunks, sampling=sampling, history=history)
        answer = ask(method=method, recompute=recompute).answer
        if not compare:
            return answer
        ask(method="full")  # a warm-up, as the answer was one
        again, full = ask(method=method, recompute=recompute), ask(method="full").answer
        return replace(answer, comparison=compare_answers(answer, again.report, full))

    def answers(
        self,
        pairs: Sequence[tuple[str, Sequence[Chunk | str]]],
        *,
        method: str | Method | None = None,
        recompute: float | None = None,
        sampling: Sampling | None = None,
    ) -> list[Answer]:
        """Answer several questions at once, each over its chunks.

        Their forwards are joined, which reads every weight once for all of them; questions over the same chunks in the
        same order start from copies of one assembled context. Its missing KV is charged to the first of them, and so is
        what a method recomputes of it, where that does not depend on the question and is shared, too. Each
        gets the answer it gets alone, up to the rounding of products over more rows. A first token is only as early as
        the slowest question's. Every question has a buffer of its own until all are answered.

        Parameters
        ----------
        pairs : sequence of (str, sequence of Chunk or str)
            Each question with its chunks.
        method, recompute, sampling
            As in `answer`.

        Raises
        ------
        InvalidArgument, PromptTooLong, MissingEncoding
            As `answer`, for the first question that does, once all others are answered.
        """
        shared: dict[Hashable, SharedContext] = {}
        known = [(question, self._known(chunks)) for question, chunks in pairs]
        often = Counter(_names(chunks) for _, chunks in known)

        def one(question: str, chunks: Sequence[Chunk]) -> Answer:
            common = shared if often[_names(chunks)] > 1 else None
            return self._streamed(question, chunks, method, recompute, sampling, shared=common, at_once=True).answer

        return self.reader.run_batch([partial(one, *pair) for pair in known])

    def stream(
        self,
        question: str,
        chunks: Sequence[Chunk | str],
        *,
        method: str | Method | None = None,
        recompute: float | None = None,
        sampling: Sampling | None = None,
        history: Sequence[Message] = (),
        drafts: Sequence[Sequence[int]] = (),
    ) -> Stream:
        """The same, piece by piece: iterate for the text, then read `.answer`.

        Token ids of answers that may well come are `drafts`: one that does costs a single forward, not one per token.
        Only greedy decoding looks at them. They change nothing but the rounding of rows that are forwarded together.
        """
        known = self._known(chunks)
        if history:
            if not question.strip():
                raise InvalidArgument(_BLANK)
            prompt = build_chat(question, known, history, self.index.template.system)
            return self._continued(prompt, method, recompute, sampling or Sampling(), question, drafts)
        return self._streamed(question, known, method, recompute, sampling, drafts)

    def _known(self, chunks: Sequence[Chunk | str]) -> list[Chunk]:
        return [self.index.uncached_chunk(chunk) if isinstance(chunk, str) else chunk for chunk in chunks]

    def _streamed(
        self,
        question: str,
        chunks: Sequence[Chunk],
        method: str | Method | None,
        recompute: float | None,
        sampling: Sampling | None,
        drafts: Sequence[Sequence[int]] = (),
        shared: dict[Hashable, SharedContext] | None = None,
        at_once: bool = False,
    ) -> Stream:
        """A prompt of the house's own, prefilled and ready to be answered."""
        sampling = sampling or Sampling()
        began = time.perf_counter()
        # Questions that are answered at once gain more by what they share.
        method, notes = (method, ()) if at_once else self._worthwhile(method, recompute, chunks)
        prefilled = self.prefill(
            question, chunks, method=method, recompute=recompute, max_new_tokens=sampling.max_new_tokens,
            shared=shared, notes=notes,
        )  # fmt: skip
        return Stream(self.reader, question, chunks, prefilled, sampling, began, drafts)

    def complete(
        self,
        prompt: str | Sequence[Message],
        *,
        method: str | Method | None = None,
        recompute: float | None = None,
        sampling: Sampling | None = None,
    ) -> Stream:
        """Continue a prompt that somebody else wrote, with the index's KV for every chunk that is found in it.

        Parameters
        ----------
        prompt : str or sequence of Message
            A string is continued as it is; messages go through the model's chat template. Chunks are those that a
            message names, those in `<chunk>` blocks, and all known ones that stand anywhere; the rest is prefilled.
        method, recompute, sampling
            As in `answer`.

        Raises
        ------
        InvalidArgument
            If the prompt is blank, or the method or share is not one.
        PromptTooLong
            If the prompt and the answer do not fit the model.
        MissingEncoding
            If the index holds KV, but none that the method loads.
        UnsupportedModel
            If the model's chat template refuses the messages.
        """
        return self._continued(prompt, method, recompute, sampling or Sampling())

    def _continued(
        self,
        prompt: str | Sequence[Message],
        method: str | Method | None,
        recompute: float | None,
        sampling: Sampling,
        question: str | None = None,
        drafts: Sequence[Sequence[int]] = (),
    ) -> Stream:
        """A prompt's continuation, which answers the question named, or else whatever its last words are."""
        began = time.perf_counter()
        self.check_encoding(methods.find_method(method or self.method))
        written = self._parser.parse(prompt)
        chunks, taken = written.chunks, (time.perf_counter() - began) * 1e3
        method, notes = self._worthwhile(method, recompute, chunks)
        prefilled = self.prefill(
            "", chunks, method=method, recompute=recompute, max_new_tokens=sampling.max_new_tokens,
            written=written, notes=notes,
        )  # fmt: skip
        ms = prefilled.report.ms
        ms.match, ms.first_token, ms.total = taken, ms.first_token + taken, ms.total + taken
        return Stream(self.reader, question or written.question, chunks, prefilled, sampling, began, drafts)

    def chunk(self, text: str, name: str | None = None) -> Chunk:
        """The index's chunk of this text, white space around it apart; a uncached one where it has none.

        Where several documents have the text, the chunk is the one of that `name`, which may be its id or a vector
        store's name for it.
        """
        return self._parser.chunk(text, name)

    def prefill(
        self,
        question: str,
        chunks: Sequence[Chunk],
        *,
        method: str | Method | None = None,
        recompute: float | None = None,
        max_new_tokens: int = 1,
        written: ParsedPrompt | None = None,
        shared: dict[Hashable, SharedContext] | None = None,
        notes: Sequence[str] = (),
    ) -> Prefilled:
        """Everything up to the first token's logits; of a prompt that was written elsewhere, if one is given.

        Contexts are taken from `shared`, and left there for the next question over them. The report has `notes` on it.
        """
        row = methods.find_method(method or self.method)
        budget = row.budget(recompute)
        if written is None and not question.strip():
            raise InvalidArgument(_BLANK)
        began = time.perf_counter()
        work = self._laid_out(row, question, chunks, written or self.index.template, shared)
        prompt = work.prompt
        self._check_length(prompt, max_new_tokens)
        p, verify_draft = None, None
        recomputed = torch.zeros(len(prompt), dtype=torch.bool)
        if row.encode is None:
            logits, step = self._stock(work)
        else:
            # What needs no KV runs while it is loaded; at 0 and 1 there is nothing to choose.
            select = row.select.begin(prompt) if row.select and 0 < budget < 1 else None
            shared_recompute = None
            if shared is not None and row.shares_recompute(budget):
                shared_recompute = SharedRecompute(
                    repr((row, budget)), partial(self._recompute_context, work, row, select, budget)
                )
            p = work.fill(row.encode, len(prompt) + max_new_tokens, shared_recompute)
            left = 0.0 if shared_recompute else budget
            with work.timed("select"):
                scores = self._scores(select, left, p)
                rows = row.schedule.rows(scores, left, p)
                p.score_mod = row.attend.score_mod(p, rows) if row.attend else None
            with work.timed("prefill"):
                logits = row.schedule.logits(scores, rows, left, p)
            recomputed = p.recomputed
            recomputed[rows] = True
            ahead = DecodeSession(p, logits)
            step, verify_draft = ahead.step, ahead.verify_draft
        work.ms.first_token = work.ms.total = work.now() - began * 1e3
        nominal = None if row.recompute is None else budget
        said = (*notes, *filter(None, [self.reader.refused]), *self._parser.notes(written, chunks))
        report = work.report(row.name, nominal, recomputed, said)
        return Prefilled(prompt, logits, step, verify_draft, report, recomputed, p)

    def _worthwhile(
        self, method: str | Method | None, recompute: float | None, chunks: Sequence[Chunk]
    ) -> tuple[str | Method | None, tuple[str, ...]]:
        """The method that answers: where none is named, full prefill, with a note, if it was measured to be sooner."""
        if method is not None or recompute is not None or not chunks:
            return method, ()
        known, context = BreakEven.of(self.index, self.method), sum(len(chunk.segment) for chunk in chunks)
        if known is None or context > known.tokens:
            return None, ()
        return "full", (known.note(context),)

    def _laid_out(
        self,
        row: Method,
        question: str,
        chunks: Sequence[Chunk],
        frame: Frame,
        shared: dict[Hashable, SharedContext] | None,
    ) -> ContextLoader:
        """The prompt as the method arranges it, with what looking at it has cost."""
        by_id = {chunk.id: chunk for chunk in chunks}
        flop_counter, ms, computed = FlopCounter(self._dims), Timings(), dict[str, str]()

        def assembly(prompt: Prompt) -> ContextLoader:
            placed = [by_id[prompt.segments[i].chunk or ""] for i in prompt.chunks()]
            return ContextLoader(
                self.reader, self.index, prompt, placed, flop_counter, ms, row.needs, computed=computed, shared=shared
            )

        def look(prompt: Prompt) -> PrefillContext:
            if row.encode is None:
                raise InvalidArgument(f"method {row.name!r} loads no KV, so {row.layout!r} has nothing to look at")
            return assembly(prompt).fill(row.encode, len(prompt))

        segments = [chunk.segment for chunk in chunks]
        return assembly(row.layout.place(frame, self.index.prefix_segment, segments, question, look))

    def _stock(self, work: ContextLoader) -> tuple[Tensor, Step]:
        """Full prefill, with transformers' own attention and cache."""
        with work.timed("prefill"):
            logits, cache = self.reader.stock(work.prompt.token_ids)
        work.flop_counter.charge(torch.arange(len(work.prompt)), self.reader.layers, selectable=0)
        work.flop_counter.add_lm_head()
        return logits, lambda token: self.reader.stock([token], cache)[0]

    def _recompute_context(
        self, work: ContextLoader, row: Method, select: Selector | None, budget: float, p: PrefillContext
    ) -> None:
        """Recompute a context's share ahead of any question over it."""
        with work.timed("select"):
            rows = row.schedule.rows(self._scores(select, budget, p), budget, p)
        if len(rows):
            context = p.with_fresh(rows)
            context = Slots(context[context < p.context_end])
            with work.timed("prefill"):
                p.forward(context, last=p.reader.layers - 1)  # of which keys and values are wanted, no more
            p.recomputed[rows] = True

    def _scores(self, select: Selector | None, budget: float, p: PrefillContext) -> Tensor:
        """What the schedule ranks by, (slots,)."""
        if budget >= 1:  # nothing to choose from
            return torch.full((len(p.prompt),), float("inf"))
        if select is None or budget <= 0 or not bool(p.selectable.any()):
            return torch.full((len(p.prompt),), float("-inf"))
        return select.scores(p)

    def check_encoding(self, row: Method) -> None:
        """Refuse a method whose encoding the index lacks altogether.

        Raises
        ------
        MissingEncoding
            The message names the command that makes it.
        """
        check_encoding(self.index.catalog, self.index.path, row)

    def _check_length(self, prompt: Prompt, max_new_tokens: int) -> None:
        if len(prompt) + max_new_tokens > self.reader.limit:
            raise PromptTooLong(
                f"the prompt has {len(prompt):,} tokens and the answer may take {max_new_tokens:,}, but "
                f"{self.reader.name} takes {self.reader.limit:,}; ask with a smaller --top-k, or ingest with a "
                "smaller --chunk-tokens"
            )


def _names(chunks: Sequence[Chunk]) -> tuple[str, ...]:
    return tuple(chunk.id for chunk in chunks)
