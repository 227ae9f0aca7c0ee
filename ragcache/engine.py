"""Engine: answers a question over chunks with a method; the only place where the axes meet."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ragcache import methods
from ragcache.assembly import Assembly
from ragcache.errors import InvalidArgument, MissingEncoding, PromptTooLong
from ragcache.index import Chunk, Index
from ragcache.methods import DEFAULT_METHOD, Method
from ragcache.model.cost import Ledger, Shape
from ragcache.model.decode import Sampling, Step, decode, pieces
from ragcache.model.passes import Pass
from ragcache.model.reader import Reader
from ragcache.report import Answer, CacheReport, Comparison, Source, Timings, Tokens
from ragcache.segments import Prompt
from ragcache.select import Selector


@dataclass(frozen=True, eq=False)
class Prefilled:
    """A prompt ready to be answered.

    Attributes
    ----------
    prompt : Prompt
        What was prefilled.
    logits : Tensor
        (vocabulary,) fp32, of the first token.
    step : callable
        Forwards one more token.
    follow : callable or None
        Forwards a draft of what comes next: how many of its tokens greedy decoding says too, and the logits behind
        those; None for full prefill, the baseline, which takes every step.
    report : CacheReport
        What it was made from.
    recomputed : Tensor
        (slots,) bool: reused tokens that were computed again.
    passed : Pass or None
        The buffer as it stands behind the prompt, and what it was made with; None for full prefill.
    """

    prompt: Prompt
    logits: Tensor
    step: Step
    follow: "Follow | None"
    report: CacheReport
    recomputed: Tensor
    passed: Pass | None


#: Takes a draft of the answer's next tokens; gives how many of them hold, and the logits behind those.
Follow = Callable[[Sequence[int]], tuple[int, Tensor]]


class _Ahead:
    """What comes behind a prompt, from our buffer."""

    def __init__(self, p: Pass, logits: Tensor) -> None:
        self._pass = p
        self._logits = logits
        self._count = 0

    def step(self, token: int) -> Tensor:
        """Forward one more token."""
        self._count += 1
        return self._pass.append([token], self._count - 1)[-1]

    def follow(self, draft: Sequence[int]) -> tuple[int, Tensor]:
        """Forward what a draft says next, and keep what greedy decoding says too."""
        rows = torch.cat([self._logits[None], self._pass.append(draft, self._count)])  # (tokens + 1, vocabulary)
        said = rows.argmax(-1).tolist()
        kept = next((i for i, token in enumerate(draft) if said[i] != token), len(draft))
        self._count, self._logits = self._count + kept, rows[kept]
        return kept, self._logits


class Engine:
    """Answers from cached chunks.

    Parameters
    ----------
    reader : Reader
        The model.
    index : Index
        Where the chunks' KV is.
    """

    def __init__(self, reader: Reader, index: Index) -> None:
        self.reader = reader
        self.index = index
        self._shape = Shape.of(reader)

    def answer(
        self,
        question: str,
        chunks: Sequence[Chunk | str],
        *,
        method: str | Method = DEFAULT_METHOD,
        recompute: float | None = None,
        sampling: Sampling | None = None,
        compare: bool = False,
    ) -> Answer:
        """Answer a question over chunks, in the order given.

        Parameters
        ----------
        question : str
            The user's words.
        chunks : sequence of Chunk or str
            From the index, or plain text that was never ingested.
        method : str or Method
            A row of the table, or one's own.
        recompute : float, optional
            Share of the reused tokens to recompute, in [0, 1]; the row's default otherwise.
        sampling : Sampling, optional
            Greedy by default.
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
        answer = self.stream(question, chunks, method=method, recompute=recompute, sampling=sampling).answer
        return self._compared(answer, chunks, method, sampling or Sampling()) if compare else answer

    def stream(
        self,
        question: str,
        chunks: Sequence[Chunk | str],
        *,
        method: str | Method = DEFAULT_METHOD,
        recompute: float | None = None,
        sampling: Sampling | None = None,
        drafts: Sequence[Sequence[int]] = (),
    ) -> "Stream":
        """The same, piece by piece: iterate for the text, then read `.answer`.

        Token ids of answers that may well come are `drafts`: one that does costs a single forward, not one per token.
        Only greedy decoding looks at them. They change nothing but the rounding of rows that are forwarded together.
        """
        sampling = sampling or Sampling()
        known = [self.index.loose(chunk) if isinstance(chunk, str) else chunk for chunk in chunks]
        began = time.perf_counter()
        prefilled = self.prefill(
            question, known, method=method, recompute=recompute, max_new_tokens=sampling.max_new_tokens
        )
        return Stream(self, question, known, prefilled, sampling, began, drafts)

    def prefill(
        self,
        question: str,
        chunks: Sequence[Chunk],
        *,
        method: str | Method = DEFAULT_METHOD,
        recompute: float | None = None,
        max_new_tokens: int = 1,
    ) -> Prefilled:
        """Everything up to the first token's logits."""
        row = methods.find(method)
        budget = row.budget(recompute)
        if not question.strip():
            raise InvalidArgument("the question is blank; ask something")
        began = time.perf_counter()
        work = self._laid_out(row, question, chunks)
        prompt = work.prompt
        self._check_length(prompt, max_new_tokens)
        p, follow = None, None
        recomputed = torch.zeros(len(prompt), dtype=torch.bool)
        if row.encode is None:
            logits, step = self._stock(work)
        else:
            # What needs no KV runs while it is loaded; at 0 and 1 there is nothing to choose.
            select = row.select.begin(prompt) if row.select and 0 < budget < 1 else None
            p = work.fill(row.encode, len(prompt) + max_new_tokens)
            with work.timed("select"):
                scores = self._scores(select, budget, p)
                rows = row.schedule.rows(scores, budget, p)
                p.reshape = row.attend.shape(p, rows) if row.attend else None
            with work.timed("prefill"):
                logits = row.schedule.logits(scores, rows, budget, p)
            recomputed = p.recomputed
            recomputed[rows] = True
            ahead = _Ahead(p, logits)
            step, follow = ahead.step, ahead.follow

        work.ms.first_token = work.ms.total = work.now() - began * 1e3
        nominal = None if row.recompute is None else budget
        report = self._report(row.name, nominal, work, recomputed)
        return Prefilled(prompt, logits, step, follow, report, recomputed, p)

    def _laid_out(self, row: Method, question: str, chunks: Sequence[Chunk]) -> Assembly:
        """The prompt as the method arranges it, with what looking at it has cost."""
        by_id = {chunk.id: chunk for chunk in chunks}
        ledger, ms, computed = Ledger(self._shape), Timings(), dict[str, str]()

        def assembly(prompt: Prompt) -> Assembly:
            placed = [by_id[prompt.segments[i].chunk or ""] for i in prompt.chunks()]
            return Assembly(self.reader, self.index, prompt, placed, ledger, ms, computed=computed)

        def look(prompt: Prompt) -> Pass:
            if row.encode is None:
                raise InvalidArgument(f"method {row.name!r} loads no KV, so {row.layout!r} has nothing to look at")
            return assembly(prompt).fill(row.encode, len(prompt))

        segments = [chunk.segment for chunk in chunks]
        return assembly(
            row.layout.place(self.index.template, self.index.prefix_segment, segments, question, look)
        )

    def _stock(self, work: Assembly) -> tuple[Tensor, Step]:
        """Full prefill, with transformers' own attention and cache."""
        with work.timed("prefill"):
            logits, cache = self.reader.stock(work.prompt.token_ids)
        work.ledger.charge(torch.arange(len(work.prompt)), self.reader.layers, selectable=0)
        work.ledger.head()
        return logits, lambda token: self.reader.stock([token], cache)[0]

    def _scores(self, select: Selector | None, budget: float, p: Pass) -> Tensor:
        """What the schedule ranks by, (slots,)."""
        if budget >= 1:  # nothing to choose from
            return torch.full((len(p.prompt),), float("inf"))
        if select is None or not bool(p.selectable.any()):
            return torch.full((len(p.prompt),), float("-inf"))
        return select.scores(p)

    def _report(self, name: str, recompute: float | None, work: Assembly, recomputed: Tensor) -> CacheReport:
        chunks, layers, ledger = work.reports(recomputed), self.reader.layers, work.ledger
        context = sum(chunk.tokens for chunk in chunks)
        selectable = sum(
            chunk.tokens
            for chunk in chunks
            if chunk.cache == "hit" or chunk.id in work.computed
        )
        full = self._shape.forward(torch.arange(len(work.prompt)), layers, logits=True)
        return CacheReport(
            method=name,
            recompute=recompute,
            chunks=chunks,
            tokens=Tokens(
                context=context,
                question=len(work.prompt) - context,
                reused=sum(chunk.tokens - chunk.recomputed for chunk in chunks if chunk.cache != "miss"),
                recomputed=int(recomputed.sum()),
                charged=round(ledger.token_layers / layers),
            ),
            charged=ledger.token_layers / (selectable * layers) if selectable else 0.0,
            charged_flops=ledger.flops / full,
            ms=work.ms,
        )

    def _compared(
        self, answer: Answer, chunks: Sequence[Chunk | str], method: str | Method, sampling: Sampling
    ) -> Answer:
        """Measure both paths once more now that both are warm."""
        asked = {"recompute": answer.report.recompute, "sampling": sampling}
        row = methods.find(method)
        full = self.answer(answer.question, chunks, method="full", sampling=sampling)
        again = self.answer(answer.question, chunks, method=row, **asked)  # type: ignore[arg-type]
        full = self.answer(answer.question, chunks, method="full", sampling=sampling)
        comparison = Comparison(
            full_prefill_first_token_ms=full.report.ms.first_token,
            first_token_ms=again.report.ms.first_token,
            same_answer=full.text == answer.text,
            full_prefill_answer=full.text,
        )
        return replace(answer, comparison=comparison)

    def check_encoding(self, row: Method) -> None:
        """Refuse a method whose encoding the index lacks altogether.

        Raises
        ------
        MissingEncoding
            The message names the command that makes it.
        """
        made = self.index.catalog.stats()["encodings"]
        if row.encode is not None and made and row.encode.recipe not in made:
            raise MissingEncoding(
                f"the index {self.index.path} holds {', '.join(made)} KV, but method {row.name!r} loads "
                f"{row.encode.recipe}; run `ragcache ingest --method {row.name}`"
            )

    def _check_length(self, prompt: Prompt, max_new_tokens: int) -> None:
        if len(prompt) + max_new_tokens > self.reader.limit:
            raise PromptTooLong(
                f"the prompt has {len(prompt):,} tokens and the answer may take {max_new_tokens:,}, but "
                f"{self.reader.name} takes {self.reader.limit:,}; ask with a smaller --top-k, or ingest with a "
                "smaller --chunk-tokens"
            )


class Stream:
    """An answer being written: iterate for its pieces, then read `answer`."""

    def __init__(
        self,
        engine: Engine,
        question: str,
        chunks: Sequence[Chunk],
        prefilled: Prefilled,
        sampling: Sampling,
        began: float,
        drafts: Sequence[Sequence[int]] = (),
    ) -> None:
        self._engine = engine
        self._question = question
        self._chunks = chunks
        self._prefilled = prefilled
        self._sampling = sampling
        self._began = began
        self._drafts = drafts
        self._text: list[str] = []
        self._ids: list[int] = []
        self._pieces = self._written()  # one decode, however often the stream is iterated

    def __iter__(self) -> Iterator[str]:
        return self._pieces

    def _written(self) -> Iterator[str]:
        reader, ready, sampling = self._engine.reader, self._prefilled, self._sampling
        said, logits = self._followed()
        tokens = decode(
            ready.step, logits, [*ready.prompt.token_ids, *said],
            replace(sampling, max_new_tokens=sampling.max_new_tokens - len(said)), reader.stop_ids,
        )  # fmt: skip
        for piece in pieces(itertools.chain(said, tokens), reader.tokenizer, self._sampling.stop, self._ids):
            self._text.append(piece)
            yield piece
        ready.report.ms.total = (time.perf_counter() - self._began) * 1e3

    def _followed(self) -> tuple[Sequence[int], Tensor]:
        """What greedy decoding says of drafts, each taken where it says all that was said so far, and the logits."""
        ready, sampling = self._prefilled, self._sampling
        said: tuple[int, ...] = ()
        logits = ready.logits
        if ready.follow is None or sampling.temperature or sampling.repetition_penalty != 1:
            return said, logits
        drafts = [tuple(draft[: sampling.max_new_tokens - 1]) for draft in self._drafts]
        while True:
            begun = (*said, int(logits.argmax()))
            draft = next((one for one in drafts if one[: len(begun)] == begun), None)
            if draft is None:
                return said, logits
            count, logits = ready.follow(draft[len(said) :])
            said = draft[: len(said) + count]

    @property
    def report(self) -> CacheReport:
        """What the answer is made from; complete before its first piece."""
        return self._prefilled.report

    @property
    def logits(self) -> Tensor:
        """Of the first token, (vocabulary,) fp32."""
        return self._prefilled.logits

    @property
    def answer(self) -> Answer:
        """The whole answer; reads the rest of the stream first."""
        for _ in self:
            pass
        sources = tuple(Source(chunk.id, chunk.source, chunk.text, chunk.score) for chunk in self._chunks)
        return Answer(
            text="".join(self._text).strip(),
            question=self._question,
            model=self._engine.reader.name,
            sources=sources,
            report=self._prefilled.report,
            token_ids=tuple(self._ids),
        )
